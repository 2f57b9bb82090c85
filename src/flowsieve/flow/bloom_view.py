"""One frozen view of a network whose labels are Bloom filters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Deliveries, Flow
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_view import Label, OnTree
from flowsieve.flow.others import Others
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree


@dataclass(frozen=True, slots=True, eq=False)
class BloomView(OnTree):
    """What a proof and an explanation look at; a switch that `tables` does not name holds nothing.

    `held` is what publishers hold, and `copies` how they share it out. `passing` is what entries may ask for besides,
    since filters come and go.
    """

    labelling: BloomLabelling
    copies: Shares
    schema: Schema
    held: HeldFilters
    tables: Mapping[str, tuple[Flow, ...]]
    advertisements: Collection[Interest]
    subscriptions: Collection[Interest]
    others: Mapping[str, Others] = field(default_factory=dict)
    passing: frozenset[int] = frozenset()

    @property
    def topology(self) -> Topology:
        return self.labelling.topology

    def tree_to(self, host: str) -> SpanningTree:
        return self.labelling.tree

    def names(self, label: Label, host: str) -> bool:
        return True  # whom a filter's bits are for, they do not say

    @property
    def group(self) -> Prefix:
        return self.labelling.labels.tag.group

    @property
    def family(self) -> int:
        return self.labelling.labels.family

    @property
    def deliveries(self) -> Deliveries:
        return self.labelling.deliveries

    def around(self, deliveries: Deliveries, others: Mapping[str, Others], before: BloomView) -> BloomView:
        """The same with what is done at ports to hosts, and by others, given the view before tables were read.

        What came or went meanwhile is no matter: it may be there or not.
        """
        held = self.held.shared_with(before.held)
        passing = self.passing | before.passing
        passing |= {self.labelling.labels.pattern(text) for text in {*self.held, *before.held} - {*held}}
        labelling = replace(self.labelling, deliveries=deliveries)
        return replace(self, labelling=labelling, held=held, others=others, passing=passing)

    def sent(self, host: str, values: Mapping[str, object]) -> list[Label]:
        shares = self.copies.shared_out(self.held.matched(host, values), self.held)
        return [self.label(self.bits(share)) for share in shares]

    def bits(self, texts: Iterable[str]) -> int:
        """The bits of a packet for filters."""
        labels = self.labelling.labels
        return labels.bits_of(map(labels.pattern, texts))

    def label(self, bits: int) -> Label:
        """The packet that has these bits."""
        return Label(*self.labelling.labels.addresses(bits))
