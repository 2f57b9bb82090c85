"""Which switches an interest depends on: those between its host and the hosts that it makes it talk to."""

from __future__ import annotations

from contextlib import suppress

from flowsieve.control.state import ControlState
from flowsieve.errors import BadTopology
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.tree import TreeMap

_OTHER = {Side.SUBSCRIBER: Side.PUBLISHER, Side.PUBLISHER: Side.SUBSCRIBER}


class Dependencies:
    """Paths on the trees, remembered for as long as these stay."""

    def __init__(self) -> None:
        self._trees: TreeMap | None = None
        self._between: dict[tuple[str, str], frozenset[str]] = {}

    def of(self, state: ControlState, side: Side, mine: Interest) -> set[str]:
        """The switches on the way of an interest; without a capacity, no other's table changes with it."""
        home, ends = state.topology.attached, set[str]()
        for other in state.interests(_OTHER[side]).values():
            end = home[other.endpoint]
            if end not in ends and other.dz.overlaps(mine.dz):
                ends.add(end)
        return set[str]().union(*(self._path(state.trees, home[mine.endpoint], end) for end in ends))

    def _path(self, trees: TreeMap, a: str, b: str) -> frozenset[str]:
        """The switches between two, on all trees."""
        if trees is not self._trees:
            self._trees, self._between = trees, {}
        found = self._between.get((a, b))
        if found is None:
            both: set[str] = set()
            for tree in trees.trees:
                with suppress(BadTopology):  # cut off from each other: nothing is owed
                    both.update(tree.path(a, b))
            found = self._between[a, b] = frozenset(both)
        return found
