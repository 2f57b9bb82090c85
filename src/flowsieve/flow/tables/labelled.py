"""The tables of all switches where packets name their receivers: they follow the network, and no interest changes them.

What `flow.capacity.fitted` is for dz.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsieve.errors import TableFull
from flowsieve.flow.capacity.fitted import Fit
from flowsieve.flow.capacity.weights import BY_VOLUME
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange, PublisherFilters
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.tables.receiver_tables import receiver_tables
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap


class LabelledTables:
    """The aims of all switches; labels of a set go along its tree, one of the first `set_trees` of the map.

    A table cannot be made coarser: a switch that has no room for it keeps the one that it has, and is in the way of
    what crosses it alone. Whatever it holds leads along the trees.
    """

    bounded = False  # interests are never refused
    weights, fit = BY_VOLUME, Fit()

    def __init__(
        self,
        topology: Topology,
        trees: TreeMap,
        labels: ReceiverLabels,
        capacity: int | None,
        policy: SendPolicy = EVERYBODY,
        set_trees: int = 1,
    ) -> None:
        self._topology, self._labels, self._trees = topology, labels, trees
        self._set_trees = set_trees
        self.filters = PublisherFilters(policy)
        self.capacity: Mapping[str, int] = (
            {} if capacity is None else dict.fromkeys(topology.switches, capacity)
        )
        self._held: dict[str, tuple[Flow, ...]] = self._made()
        self._due = False  # whether something has changed since the last update
        self._bounded = ""  # the switch of which it was said since then how much room it has

    def add(self, interests: Sequence[tuple[Interest, Side]]) -> None:
        """Take up many interests at once."""
        for interest, side in interests:
            self.filters.change(interest, side, adding=True)

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes, which is the publishers' business."""
        self.filters.change(interest, side, adding=adding)

    def told(self) -> dict[str, list[FilterChange]]:
        """What each publisher has to learn since the last time."""
        return self.filters.update()

    def begun(self) -> tuple[int, ...]:
        """Publishers need not wait for tables."""
        return ()

    def recall(self, fit: Fit) -> None:
        """Nothing of the tables depends on what was before."""

    def waste(self) -> dict[str, float]:
        """No table is coarse."""
        return {}

    def rewire(self, trees: TreeMap) -> None:
        """Go over to other trees; the next update tells what follows."""
        self._trees, self._due = trees, True

    def bound(self, switch: str, capacity: int | None) -> None:
        """From the next update on, a switch has room for so many entries, or for any number of them."""
        others = {other: room for other, room in self.capacity.items() if other != switch}
        self.capacity, self._due = others if capacity is None else {**others, switch: capacity}, True
        self._bounded = switch

    def update(self) -> dict[str, list[Change]]:
        """The switches whose tables changed since the last update; TableFull where one turned out to have no room."""
        if not self._due:
            return {}
        self._due = False  # also where there is no room: no interest is to blame for that
        before, self._held = self._held, self._made()
        switch, self._bounded = self._bounded, ""
        room = self.capacity.get(switch)
        if room is not None and self.size(switch) > room:
            raise TableFull(switch=switch, needed=self.size(switch), capacity=room)
        return {switch: [] for switch, table in self._held.items() if table != before[switch]}

    def entries(self, switch: str) -> tuple[Flow, ...]:
        """What a switch should hold."""
        return self._held[switch]

    def size(self, switch: str) -> int:
        return len(self._held[switch])

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, in dz: events of any kind may leave by some ports."""
        ports = {action.port for entry in self._held[switch] for action in entry.actions}
        return {WHOLE_SPACE: tuple(sorted(ports))} if ports else {}

    def meaning(self, switch: str) -> object:
        """What tells the table of a switch from another."""
        return self._held[switch]

    def changes(self, before: object, after: object) -> list[Change]:
        """In dz nothing changes."""
        return []

    def _made(self) -> dict[str, tuple[Flow, ...]]:
        return receiver_tables(self._topology, SetTrees.first_of(self._trees, self._set_trees), self._labels)
