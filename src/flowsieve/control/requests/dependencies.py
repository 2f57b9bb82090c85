"""What an interest depends on: switches and links between its host and the hosts that it makes it talk to."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from flowsieve.control.state import ControlState
from flowsieve.errors import BadTopology
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.mend import Edge
from flowsieve.network.tree import TreeMap

_OTHER = {Side.SUBSCRIBER: Side.PUBLISHER, Side.PUBLISHER: Side.SUBSCRIBER}


class Dependencies:
    """Paths on the trees, remembered for as long as these stay."""

    def __init__(self) -> None:
        self._trees: TreeMap | None = None
        self._between: dict[tuple[str, str], tuple[frozenset[str], frozenset[Edge]]] = {}

    def of(self, state: ControlState, side: Side, mine: Interest) -> set[str]:
        """The switches on the way of an interest; without a capacity, no other's table changes with it."""
        return set[str]().union(*(switches for switches, _ in self._ways(state, side, mine)))

    def edges(self, state: ControlState, side: Side, mine: Interest) -> set[Edge]:
        """The links on the way of an interest."""
        return set[Edge]().union(*(edges for _, edges in self._ways(state, side, mine)))

    def _ways(
        self, state: ControlState, side: Side, mine: Interest
    ) -> list[tuple[frozenset[str], frozenset[Edge]]]:
        """The ways to each switch with a host that it talks to."""
        home, ends = state.topology.attached, set[str]()
        for other in state.interests(_OTHER[side]).values():
            end = home[other.endpoint]
            if end not in ends and other.dz.overlaps(mine.dz):
                ends.add(end)
        return [self._path(state.trees, home[mine.endpoint], end) for end in ends]

    def _path(self, trees: TreeMap, a: str, b: str) -> tuple[frozenset[str], frozenset[Edge]]:
        """The switches and links between two, on all trees."""
        if trees is not self._trees:
            self._trees, self._between = trees, {}
        found = self._between.get((a, b))
        if found is None:
            switches, edges = set[str](), set[Edge]()
            for tree in trees.trees:
                with suppress(BadTopology):  # cut off from each other: nothing is owed
                    path = tree.path(a, b)
                    switches.update(path)
                    edges.update(map(frozenset, pairwise(path)))
            found = self._between[a, b] = frozenset(switches), frozenset(edges)
        return found
