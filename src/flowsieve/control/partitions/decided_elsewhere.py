"""In the place of tables, where others decide on them: what is asked for goes to them, and comes back as aims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from flowsieve.flow.capacity.fitted import Fit
from flowsieve.flow.capacity.weights import BY_VOLUME
from flowsieve.flow.diff import Change, Ports, changes_between, joined
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

Interests = Iterable[tuple[Side, Interest]]


class Deciders(Protocol):
    """Those who decide. What follows at once is returned; what follows later, they tell whoever has them decide."""

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> Mapping[str, list[Change]]:
        """Interests come (True) and go, in this order; Refused where there is no room."""
        ...

    def rewire(self, trees: TreeMap) -> Mapping[str, list[Change]]: ...

    def bound(self, switch: str, room: int | None) -> Mapping[str, list[Change]]: ...

    def begin(
        self, topology: Topology, trees: TreeMap, room: Mapping[str, int], interests: Interests
    ) -> None:
        """Go on with another network, in which these interests are in force."""
        ...

    def table(self, switch: str) -> dict[Dz, Ports]: ...

    def size(self, switch: str) -> int: ...

    def waste(self) -> dict[str, float]: ...


class Nobody:
    """For a state that keeps up with a journal, and decides on no table."""

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> Mapping[str, list[Change]]:
        return {}

    def rewire(self, trees: TreeMap) -> Mapping[str, list[Change]]:
        return {}

    def bound(self, switch: str, room: int | None) -> Mapping[str, list[Change]]:
        return {}

    def begin(
        self, topology: Topology, trees: TreeMap, room: Mapping[str, int], interests: Interests
    ) -> None:
        pass

    def table(self, switch: str) -> dict[Dz, Ports]:
        return {}

    def size(self, switch: str) -> int:
        return 0

    def waste(self) -> dict[str, float]:
        return {}


class DecidedElsewhere:
    """What a state has instead of tables of its own; `deciders` are those who decide."""

    def __init__(self, topology: Topology, trees: TreeMap, capacity: int | None) -> None:
        self.deciders: Deciders = Nobody()
        self.weights = BY_VOLUME  # deciders know better
        self.trees = trees
        self.capacity: Mapping[str, int] = _each(topology, capacity)
        self._parts: list[tuple[bool, Side, Interest]] = []
        self._trees: TreeMap | None = None  # to go over to
        self._rooms: dict[str, int | None] = {}  # of switches, that are news

    @property
    def bounded(self) -> bool:
        return bool(self.capacity)

    def add(self, interests: Sequence[tuple[Interest, Side]]) -> None:
        self._parts += [(True, side, interest) for interest, side in interests]

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        self._parts.append((adding, side, interest))

    def rewire(self, trees: TreeMap) -> None:
        self.trees = self._trees = trees

    def bound(self, switch: str, capacity: int | None) -> None:
        others = {other: room for other, room in self.capacity.items() if other != switch}
        self.capacity = others if capacity is None else {**others, switch: capacity}
        self._rooms[switch] = capacity

    def grow(self, topology: Topology, trees: TreeMap, capacity: int | None, interests: Interests) -> None:
        """Go on with another network, in which these interests are in force."""
        self.trees, self.capacity = trees, _each(topology, capacity)
        self._parts.clear()
        self._rooms.clear()
        self._trees = None
        self.deciders.begin(topology, trees, self.capacity, interests)

    def update(self) -> dict[str, list[Change]]:
        """Have decided what has come since the last update; what of it follows at once."""
        found: dict[str, list[Change]] = {}
        trees, self._trees = self._trees, None
        rooms, self._rooms = self._rooms, {}
        parts, self._parts = self._parts, []
        if trees is not None:
            found = joined(found, self.deciders.rewire(trees))
        for switch, room in rooms.items():
            found = joined(found, self.deciders.bound(switch, room))
        return joined(found, self.deciders.take(parts)) if parts else found

    def told(self) -> dict[str, list[FilterChange]]:
        return {}

    def begun(self) -> tuple[int, ...]:
        return ()

    @property
    def fit(self) -> Fit:
        """How tables were made to fit is up to those who decide."""
        return Fit()

    def recall(self, fit: Fit) -> None:
        self.update()

    def table(self, switch: str) -> dict[Dz, Ports]:
        return self.deciders.table(switch)

    def meaning(self, switch: str) -> object:
        return self.table(switch)

    def changes(self, before: object, after: object) -> list[Change]:
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        return changes_between(before, after)

    def size(self, switch: str) -> int:
        return self.deciders.size(switch)

    def waste(self) -> dict[str, float]:
        return self.deciders.waste()


def _each(topology: Topology, capacity: int | None) -> dict[str, int]:
    return {} if capacity is None else dict.fromkeys(topology.switches, capacity)
