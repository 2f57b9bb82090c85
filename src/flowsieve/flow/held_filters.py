"""What publishers hold where labels are Bloom filters: the filters that are wanted, by whom, and what covers what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter


class HeldFilter(NamedTuple):
    """A filter, the hosts that want it, and the texts of those others that are held and cover it."""

    filter: Filter
    hosts: frozenset[str]
    above: frozenset[str]


class HeldFilters:
    """Filters by their canonical texts, those of neighbours on the tree side by side.

    A host that has a filter which covers another one is not among those that want this; one that nobody wants is not
    there. `nearness` is the place of each host among all, neighbours next to each other.
    """

    def __init__(self, each: Mapping[str, HeldFilter], nearness: Mapping[str, int]) -> None:
        self._each = each
        self._nearness = nearness

    def __getitem__(self, text: str) -> HeldFilter:
        return self._each[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self._each)

    def shared_with(self, other: HeldFilters) -> HeldFilters:
        """What there is in another as well: filters, those who want them, and what covers them."""
        found = {}
        for text in self._each.keys() & other._each.keys():
            mine, its = self._each[text], other._each[text]
            if hosts := mine.hosts & its.hosts:
                found[text] = HeldFilter(mine.filter, hosts, mine.above & its.above)
        kept = {text: each._replace(above=each.above & found.keys()) for text, each in found.items()}
        return HeldFilters(kept, self._nearness)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All filters; a host's stand together, with those that others want as well at the first of them."""
        near = self._nearness
        first = {text: min(near[host] for host in held.hosts) for text, held in self._each.items()}
        return tuple(sorted(first, key=lambda text: (first[text], text)))

    @cached_property
    def wanted(self) -> Mapping[str, frozenset[str]]:
        """The filters of each host."""
        found: dict[str, set[str]] = {}
        for text in self.texts:
            for host in self._each[text].hosts:
                found.setdefault(host, set()).add(text)
        return {host: frozenset(texts) for host, texts in found.items()}

    def matched(self, publisher: str, values: Mapping[str, object]) -> list[str]:
        """The filters of others that an event of a publisher matches."""
        return [
            text
            for text in self.texts
            if self._each[text].hosts != {publisher} and self._each[text].filter.matches(values)
        ]

    def matched_batch(self, events: EventBatch) -> NDArray[np.bool_]:
        """`matched` for many events: a row for each, in it a place for each of the `texts`."""
        own = {publisher: events.hosts == publisher for publisher in dict.fromkeys(events.hosts.tolist())}
        found = np.zeros((len(events), len(self)), np.bool_)
        for at, text in enumerate(self.texts):
            filter, hosts, _ = self._each[text]
            found[:, at] = filter.matches_batch(events)
            if len(hosts) == 1:
                (host,) = hosts
                if host in own:
                    found[own[host], at] = False
        return found

    def with_covers(self, texts: Iterable[str]) -> frozenset[str]:
        """Filters and those that cover them, without which a packet gets stuck where tables ask for a cover alone."""
        some = frozenset(texts)
        return some.union(*(self._each[text].above for text in some))
