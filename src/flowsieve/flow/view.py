"""One frozen view of a network: what it looks like, what its switches hold, and who wants and publishes what."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from flowsieve.flow.detours import Protection
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.others import Others
from flowsieve.flow.owner import SOLE, Owner
from flowsieve.header.encoding import Encoding
from flowsieve.index.plan import IndexPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap


@dataclass(frozen=True, slots=True, eq=False)
class NetworkView:
    """What a proof, an explanation and a replay look at; a switch that `tables` does not name holds nothing.

    Links that are `down` carry nothing, unless the `protections` of switches lead around them. Only an explanation asks
    for the `trees`. What lies outside the `owner`'s part of the space is owed by others. `others` is what somebody else
    has made of switches. Where there are `deliveries`, an event that leaves by one of these ports arrives only if it
    was readdressed like that, by another port to a host only if it was not; for None nobody looks at it.
    """

    topology: Topology
    plan: IndexPlan
    encoding: Encoding
    tables: Mapping[str, tuple[Flow, ...]]
    advertisements: Collection[Interest]
    subscriptions: Collection[Interest]
    down: Collection[Edge] = ()
    trees: TreeMap | None = None
    owner: Owner = SOLE
    others: Mapping[str, Others] = field(default_factory=dict)
    deliveries: Mapping[str, Mapping[int, Deliver]] | None = None
    protections: Mapping[str, Protection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for switch in (*self.tables, *self.others):
            self.topology.neighbours(switch)  # raises an error that says which switch would be right
        for interest in (*self.advertisements, *self.subscriptions):
            self.topology.endpoint(interest.endpoint)  # likewise
        tables = {switch: tuple(self.tables.get(switch, ())) for switch in self.topology.switches}
        object.__setattr__(self, "tables", tables)
