"""Which filters are wanted by whom and may be published by whom, and so at which ports tables have to know them.

A filter has to be known at a port if somebody behind it wants it, and somebody who is not behind it has advertised
events that match it; unless a filter that covers it has to be known there as well. All of this is told filter by
filter, so that a request costs what it touches: the filters that it names, and those that they cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.flow.covering import Covering
from flowsieve.flow.held_filters import HeldFilter, HeldFilters
from flowsieve.flow.tables.bloom_tables import BloomLabelling


class _Wanted(NamedTuple):
    """Who wants a filter, and the ports where it has to be known or one that covers it.

    A host that has one that covers it is not among those who want it.
    """

    hosts: frozenset[str]
    ports: int


_NOWHERE = _Wanted(frozenset(), 0)


class FilterBook:
    """All that is asked for and advertised, and what of it publishers hold and tables know.

    The second follows the first when it is told to: `changes` says what is to come, `settle` that it is there.
    """

    def __init__(
        self,
        labelling: BloomLabelling,
        name: Callable[[Filter], str] = canonical,
        covering: Covering | None = None,
    ) -> None:
        """Filters with the same `name` are one; which cover others, a `covering` knows."""
        self._labelling = labelling
        self._name = name
        self.covering = covering or Covering()
        self._asked: dict[str, Counter[str]] = {}  # how often each host asks for a filter
        self._offers: dict[str, Counter[Filter]] = {}  # of each publisher
        self._reached: dict[str, dict[str, int]] = {}  # for a filter, by publisher: ports that events come to
        self._wanted: dict[str, _Wanted] = {}
        self._held: dict[str, HeldFilter] = {}
        self._patterns: dict[str, int] = {}
        self._alike: dict[int, set[str]] = {}  # the filters of a pattern: nearly always one
        self._ports: dict[int, int] = {}  # at which ports a pattern is asked for
        self._changed: set[str] = set()

    # What is asked for.

    def subscribe(self, host: str, filter: Filter) -> None:
        text = self._name(filter)
        if text not in self._asked:
            self.covering.add(text, filter)
            self._asked[text] = Counter()
            pattern = self._patterns[text] = self._labelling.labels.pattern(text)
            self._alike.setdefault(pattern, set()).add(text)
            self._reached[text] = {
                publisher: self._away(publisher)
                for publisher, offers in self._offers.items()
                if any(map(filter.overlaps, offers))
            }
        self._asked[text][host] += 1
        if self._asked[text][host] == 1:
            self._touch(text)

    def unsubscribe(self, host: str, filter: Filter) -> None:
        text = self._name(filter)
        self._asked[text] -= Counter([host])
        if host not in self._asked[text]:
            self._touch(text)

    def advertise(self, host: str, filter: Filter) -> None:
        offers = self._offers.setdefault(host, Counter())
        offers[filter] += 1
        if offers[filter] == 1:
            for text, wanted in self.covering.filters.items():
                if host not in self._reached[text] and wanted.overlaps(filter):
                    self._reached[text][host] = self._away(host)
                    self._changed.add(text)

    def unadvertise(self, host: str, filter: Filter) -> None:
        offers = self._offers[host]
        offers -= Counter([filter])
        if filter in offers:
            return
        for text, wanted in self.covering.filters.items():
            if host in self._reached[text] and not any(map(wanted.overlaps, offers)):
                del self._reached[text][host]
                self._changed.add(text)

    def _away(self, publisher: str) -> int:
        """The ports that a publisher is not behind: those that its events may leave by."""
        return (1 << len(self._labelling.ports)) - 1 & ~self._labelling.behind[publisher]

    def _touch(self, text: str) -> None:
        """What is wanted of a filter may have changed, and so may what is of those that it covers."""
        self._changed |= {text, *self.covering.below(text)}

    # What follows.

    def changes(self) -> dict[int, tuple[int, int]]:
        """The ports at which each pattern is asked for now, and those at which it has to be, where these differ.

        A filter is asked for where it has to be known and none that covers it has to be.
        """
        now = {text: self._now(text) for text in self._changed}
        moved = {text for text, wanted in now.items() if wanted.ports != self._before(text).ports}
        affected = moved.union(*(self.covering.below(text) for text in moved))

        def ports(text: str) -> int:
            return now[text].ports if text in now else self._before(text).ports

        found: dict[int, tuple[int, int]] = {}
        for pattern in {self._patterns[text] for text in affected}:
            before, after = self._ports.get(pattern, 0), 0
            for text in self._alike[pattern]:
                after |= ports(text) & ~_union(map(ports, self.covering.above(text)))
            if after != before:
                found[pattern] = before, after
        return found

    def held(self) -> HeldFilters:
        """What publishers are to hold."""
        held = self._held | self._newly_held()
        for text in self._changed:
            if not held[text].hosts:
                del held[text]
        return HeldFilters(held, self._labelling.nearness)

    def settle(self, changes: dict[int, tuple[int, int]]) -> None:
        """Tables and publishers are what follows from all that is asked for."""
        for pattern, (_, now) in changes.items():
            self._ports[pattern] = now
            if not now:
                del self._ports[pattern]
        self._held |= self._newly_held()
        self._wanted |= {text: self._now(text) for text in self._changed}
        for text in self._changed:
            if not self._wanted[text].hosts:
                del self._held[text], self._wanted[text]
            if not self._asked[text]:
                self._forget(text)
        self._changed = set()

    def _newly_held(self) -> dict[str, HeldFilter]:
        """What changes of what publishers hold, with filters that no host is left to want."""
        found = {}
        for text in self._changed:
            above = (each for each in self.covering.above(text) if self._now(each).hosts)
            found[text] = HeldFilter(self.covering.filters[text], self._now(text).hosts, frozenset(above))
        return found

    def _before(self, text: str) -> _Wanted:
        return self._wanted.get(text, _NOWHERE)

    def _now(self, text: str) -> _Wanted:
        hosts = frozenset(self._asked[text])
        if hosts:
            hosts = hosts.difference(*(self._asked[each] for each in self.covering.above(text)))
        behind = _union(self._labelling.behind[host] for host in hosts)
        return _Wanted(hosts, behind & _union(self._reached[text].values()))

    def _forget(self, text: str) -> None:
        self.covering.discard(text)
        pattern = self._patterns.pop(text)
        self._alike[pattern].discard(text)
        if not self._alike[pattern]:
            del self._alike[pattern]
        del self._asked[text], self._reached[text]


def _union(some: Iterable[int]) -> int:
    found = 0
    for each in some:
        found |= each
    return found
