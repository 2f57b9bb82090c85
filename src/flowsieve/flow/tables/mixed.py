"""The tables of all switches where some hosts' events are addressed by dz and others' by labels, told apart by the tag.

Every subscription is in both: what dz publishers send is forwarded by entries for it, what the others send is labelled
for it. An advertisement is in one, by its host. Entries for labels follow the network, so that dz make do with the room
that they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowsieve.errors import TableFull
from flowsieve.flow.capacity.fitted import Fit, FittedTables
from flowsieve.flow.capacity.weights import Weights
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.flow.tables.labelled import LabelledTables
from flowsieve.index.dz import Dz
from flowsieve.network.tree import TreeMap


class MixedTables:
    """The aims of all switches, those for `dz` beside those for `labels`; what a host that is `labelled` advertises is
    the labels' alone."""

    def __init__(self, compiler: Compiler, labels: LabelledTables, labelled: Callable[[str], bool]) -> None:
        self.labels, self._labelled = labels, labelled
        self.dz = FittedTables(
            compiler, {switch: self._beside(switch, room) for switch, room in labels.capacity.items()}
        )
        self._moved: set[str] = (
            set()
        )  # switches whose entries for labels have changed, which was not told yet

    # Interests.

    def add(self, interests: Sequence[tuple[Interest, Side]]) -> None:
        """Take up many interests at once."""
        self.dz.add([each for each in interests if self._in_dz(*each)])
        self.labels.add([each for each in interests if self._in_labels(*each)])

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes; the next update tells what follows."""
        if self._in_dz(interest, side):
            self.dz.change(interest, side, adding=adding)
        if self._in_labels(interest, side):
            self.labels.change(interest, side, adding=adding)

    def told(self) -> dict[str, list[FilterChange]]:
        """What each publisher that labels its events has to learn since the last time."""
        return self.labels.told()

    def begun(self) -> tuple[int, ...]:
        """Nothing waits until tables have followed."""
        return ()

    # Rooms.

    @property
    def capacity(self) -> Mapping[str, int]:
        """How many entries of either kind switches have room for."""
        return self.labels.capacity

    @property
    def bounded(self) -> bool:
        return self.dz.bounded

    def bound(self, switch: str, capacity: int | None) -> None:
        """From the next update on, a switch has room for so many entries, or for any number of them."""
        self.labels.bound(switch, capacity)
        self._make_room([switch])

    @property
    def weights(self) -> Weights:
        return self.dz.weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self.dz.weights = weights

    @property
    def fit(self) -> Fit:
        """How the tables were made to fit; those for labels cannot be."""
        return self.dz.fit

    def recall(self, fit: Fit) -> None:
        """Have the tables as they were made to fit before."""
        self.dz.recall(fit)

    def waste(self) -> dict[str, float]:
        """Per coarsened switch: the unwanted copies per event that its table is expected to send."""
        return self.dz.waste()

    # What follows.

    def rewire(self, trees: TreeMap) -> None:
        """Go over to other trees; the next update tells what follows."""
        self.dz.rewire(trees)
        self.labels.rewire(trees)

    def update(self) -> dict[str, list[Change]]:
        """The net difference of all aims since the last update, in dz; a switch at which labels alone change is there.

        Labels go first, since dz make do with what they leave. Where either has no room, TableFull is raised and what
        is not told is told by a later update.
        """
        try:
            moved = self.labels.update()
        except TableFull:
            self.dz.hold_back()
            raise
        self._moved |= moved.keys()
        self._make_room(moved)
        try:
            changes = self.dz.update()
        except TableFull as full:
            there = self.capacity[full.switch] - full.capacity
            raise TableFull(
                switch=full.switch, needed=full.needed + there, capacity=self.capacity[full.switch]
            ) from None
        found: dict[str, list[Change]] = {switch: [] for switch in self._moved}
        self._moved.clear()
        return found | changes

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold for dz."""
        return self.dz.table(switch)

    def size(self, switch: str) -> int:
        return self.dz.size(switch) + self.labels.size(switch)

    def meaning(self, switch: str) -> object:
        """What tells the table of a switch from another."""
        return self.dz.meaning(switch), self.labels.meaning(switch)

    def changes(self, before: object, after: object) -> list[Change]:
        """How two meanings differ, in dz."""
        assert isinstance(before, tuple) and isinstance(after, tuple)
        return self.dz.changes(before[0], after[0])

    def _in_dz(self, interest: Interest, side: Side) -> bool:
        return side is Side.SUBSCRIBER or not self._labelled(interest.endpoint)

    def _in_labels(self, interest: Interest, side: Side) -> bool:
        return side is Side.SUBSCRIBER or self._labelled(interest.endpoint)

    def _beside(self, switch: str, room: int) -> int:
        """The room for dz beside entries for labels, and beside those that take their places when trees are mended."""
        size = self.labels.size(switch)
        return max(0, room - size - size // 2)

    def _make_room(self, switches: Sequence[str] | Mapping[str, object]) -> None:
        for switch in switches:
            whole = self.capacity.get(switch)
            beside = None if whole is None else self._beside(switch, whole)
            if self.dz.capacity.get(switch) != beside:
                self.dz.bound(switch, beside)
