"""What an interest depends on: switches and links between its host and the hosts that it makes it talk to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import pairwise

from flowsieve.control.state import ControlState
from flowsieve.errors import BadTopology
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.mend import Edge
from flowsieve.network.tree import TreeMap

Way = tuple[frozenset[str], frozenset[Edge]]  # switches and links
_OTHER = {Side.SUBSCRIBER: Side.PUBLISHER, Side.PUBLISHER: Side.SUBSCRIBER}


class Dependencies:
    """Paths on the trees, remembered for as long as these stay."""

    def __init__(self) -> None:
        self._trees: TreeMap | None = None
        self._between: dict[tuple[str, str, int | None], Way] = {}

    def of(self, state: ControlState, side: Side, mine: Interest) -> set[str]:
        """The switches on the way of an interest; without a capacity, no other's table changes with it."""
        return set[str]().union(*(switches for switches, _ in self._ways(state, side, mine)))

    def edges(self, state: ControlState, side: Side, mine: Interest) -> set[Edge]:
        """The links on the way of an interest."""
        return set[Edge]().union(*(edges for _, edges in self._ways(state, side, mine)))

    def _ways(self, state: ControlState, side: Side, mine: Interest) -> list[Way]:
        """The ways to each switch with a host that it talks to."""
        home, ends = state.topology.attached, set[tuple[str, int | None]]()
        part = _parts_between(state, side, mine.endpoint)
        for other in state.interests(_OTHER[side]).values():
            end = home[other.endpoint], part(other.endpoint)
            if end not in ends and other.dz.overlaps(mine.dz):
                ends.add(end)
        return [self._path(state.trees, home[mine.endpoint], *end) for end in ends]

    def _path(self, trees: TreeMap, a: str, b: str, part: int | None) -> Way:
        """The switches and links between two, on the tree of one part or on all trees."""
        if trees is not self._trees:
            self._trees, self._between = trees, {}
        found = self._between.get((a, b, part))
        if found is None:
            switches, edges = set[str](), set[Edge]()
            for tree in trees.trees if part is None else (trees.parts[part][1],):
                with suppress(BadTopology):  # cut off from each other: nothing is owed
                    path = tree.path(a, b)
                    switches.update(path)
                    edges.update(map(frozenset, pairwise(path)))
            found = self._between[a, b, part] = frozenset(switches), frozenset(edges)
        return found


def _parts_between(state: ControlState, side: Side, mine: str) -> Callable[[str], int | None]:
    """Which part's tree packets go along between a host and each other; None for those by dz, perhaps along any."""
    if not state.labelled or state.bloom is not None:
        return lambda other: None
    sets, trees = state.sets, len(state.set_trees)

    @cache
    def part(other: str) -> int | None:
        publisher, subscriber = (mine, other) if side is Side.PUBLISHER else (other, mine)
        return sets.set_of(subscriber) % trees if state.labels_events_of(publisher) else None

    return part
