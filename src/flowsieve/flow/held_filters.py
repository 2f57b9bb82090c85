"""What publishers hold where labels are Bloom filters: the filters that are wanted, by whom, and what covers what."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.flow.covering import Covering
from flowsieve.flow.interest import Interest
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


@dataclass(frozen=True, slots=True, eq=False)
class HeldFilters:
    """Filters by their canonical texts, those of neighbours on the tree side by side.

    A filter that another one of the same host covers is not there. `wanted` are the filters of each host, `hosts` the
    hosts that want each, and `above` those others that cover it.
    """

    filters: Mapping[str, Filter]
    wanted: Mapping[str, frozenset[str]]
    hosts: Mapping[str, frozenset[str]]
    above: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        subscriptions: Collection[Interest],
        covering: Covering,
        topology: Topology,
        tree: SpanningTree,
    ) -> HeldFilters:
        """What follows from subscriptions; `covering` is made to know their filters."""
        by_host: dict[str, set[str]] = {}
        known: dict[str, Filter] = {}
        for each in subscriptions:
            for filter in each.filters:
                text = canonical(filter)
                known.setdefault(text, filter)
                by_host.setdefault(each.endpoint, set()).add(text)
        covering.keep(known)
        wanted = {
            host: covering.widest(by_host[host])
            for host in hosts_by_locality(topology, tree)
            if host in by_host
        }
        hosts: dict[str, set[str]] = {}
        for host, texts in wanted.items():
            for text in sorted(texts):
                hosts.setdefault(text, set()).add(host)
        return cls(
            {text: covering.filters[text] for text in hosts},
            wanted,
            {text: frozenset(some) for text, some in hosts.items()},
            {text: frozenset(hosts.keys() & covering.above(text)) for text in hosts},
        )

    def matched(self, publisher: str, values: Mapping[str, object]) -> list[str]:
        """The filters of others that an event of a publisher matches."""
        return [
            text
            for text, filter in self.filters.items()
            if self.hosts[text] != {publisher} and filter.matches(values)
        ]

    def with_covers(self, texts: Iterable[str]) -> frozenset[str]:
        """Filters and those that cover them, without which a packet gets stuck where tables ask for a cover alone."""
        some = frozenset(texts)
        return some.union(*(self.above[text] for text in some))
