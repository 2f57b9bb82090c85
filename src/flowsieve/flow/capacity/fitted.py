"""Tables that fit their switches: exact where there is room, otherwise coarsened where it costs least."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import TableFull
from flowsieve.flow.capacity import coarsen_kernel
from flowsieve.flow.capacity.weights import BY_VOLUME, Weights
from flowsieve.flow.diff import Change, Ports, changes_between, growth, joined
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange
from flowsieve.flow.tables import trie_kernel
from flowsieve.flow.tables.compiler import Compiler, Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.network.tree import TreeMap

SLACK = 0.98  # a table that overflowed is coarsened to this share of its room, so that the next request fits
WASTEFUL = 0.7  # a coarse table that fills less than this share of its room is refined again
CLOSE, LARGE = 0.995, 200  # a table of so many entries is full if it fills this share of its goal
LOWEST, HIGHEST, FINE = -60.0, 8.0, 68 / 2**18  # prices that are tried, as powers of two, and how finely
STEP = 1 / 16  # the first one away from the price of the table before


@dataclass(frozen=True, slots=True)
class Coarse:
    """A coarsened table, the price of an entry that it was made at, and the unwanted copies per event to expect."""

    table: dict[Dz, Ports]
    price: float
    waste: float


@dataclass(frozen=True, slots=True)
class Fit:
    """How tables were made to fit: all that they owe to the past, and not to the interests alone.

    `withheld` is what could not be had, and `loose` the switches that are coarse or have been.
    """

    weights: Weights = BY_VOLUME
    coarse: Mapping[str, Coarse] = field(default_factory=dict)
    withheld: Mapping[str, list[Change]] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()


def room(capacity: int) -> int:
    """How many entries a table may hold at rest: one is kept for the covering entry of a tight update (flow.order)."""
    return max(capacity - 1, min(capacity, 1))


class FittedTables:
    """The aims of all switches: what the compiler wants, made to fit each switch's capacity."""

    def __init__(
        self,
        compiler: Compiler,
        capacity: Mapping[str, int] | int | None = None,
        weights: Weights = BY_VOLUME,
    ) -> None:
        self.compiler = compiler
        if isinstance(capacity, int):
            capacity = dict.fromkeys(compiler.topology.switches, capacity)
        self.capacity: Mapping[str, int] = capacity or {}
        self.weights = weights
        self._coarse: dict[str, Coarse] = {}
        self._withheld: dict[str, list[Change]] = {}
        self._loose: set[str] = set()  # switches that are coarse or have been

    @property
    def bounded(self) -> bool:
        """Whether some table has a capacity."""
        return bool(self.capacity)

    def add(self, interests: Sequence[tuple[Interest, Side]]) -> None:
        """Take up many interests at once."""
        self.compiler.add([(each.endpoint, side, each.dz) for each, side in interests])

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes; the next update tells what follows."""
        self.compiler.change(interest.endpoint, side, interest.dz, adding=adding)

    def told(self) -> dict[str, list[FilterChange]]:
        """Publishers need to know nothing."""
        return {}

    def begun(self) -> tuple[int, ...]:
        """Nor is there anything that they would have to wait for."""
        return ()

    def rewire(self, trees: TreeMap) -> None:
        """Go over to trees of the same partitions; the next update tells what follows."""
        self.compiler.rewire(trees)

    def bound(self, switch: str, capacity: int | None) -> None:
        """From the next update on, a switch has room for so many entries, or for any number of them."""
        others = {other: room for other, room in self.capacity.items() if other != switch}
        self.capacity = others if capacity is None else {**others, switch: capacity}
        self._withheld.setdefault(switch, [])

    def update(self, anyway: bool = False) -> dict[str, list[Change]]:
        """The net difference of all aims since the last update.

        Where not even the coarsest table fits, TableFull is raised and the aims stay: take the change back
        and update again. `anyway`, the coarsest is what is aimed at then.
        """
        update = self.compiler.update()
        exact = update.by_switch()
        if not self.capacity and not self._withheld:
            return exact
        was = dict(self._coarse)
        exact = joined(self._withheld, exact)
        pending = update.touched | self._withheld.keys()
        try:
            while pending:
                pending, more = self._expect_more_from(
                    {switch for switch in sorted(pending) if self._fit(switch, anyway)}
                )
                exact = joined(exact, more)
        except TableFull:
            self._coarse = was
            self._withhold(update.touched, exact)
            raise
        self._withheld = {}
        for switch in sorted(was.keys() | self._coarse.keys()):
            if was.get(switch) is self._coarse.get(switch):  # not fitted again: what it holds has not changed
                exact.pop(switch, None)
                continue
            before = was[switch].table if switch in was else self._exact_before(switch, exact.get(switch, []))
            changes = changes_between(before, self.table(switch))
            exact.pop(switch, None)
            if changes:
                exact[switch] = changes
        return exact

    def hold_back(self) -> None:
        """Have what has changed since the last update be told by the next one; the aims stay as they were."""
        update = self.compiler.update()
        self._withhold(update.touched, joined(self._withheld, update.by_switch()))

    def _withhold(self, touched: set[str], changes: Mapping[str, list[Change]]) -> None:
        again = touched | self._withheld.keys()  # also what is full and changes nothing by itself
        self._withheld = {switch: [] for switch in again} | dict(changes)

    @property
    def fit(self) -> Fit:
        """How the tables were made to fit."""
        return Fit(self.weights, dict(self._coarse), dict(self._withheld), frozenset(self._loose))

    def recall(self, fit: Fit) -> None:
        """Have the tables as they were made to fit before, for the interests that there were then."""
        if fit.loose != self._loose:
            self.compiler.loosen_only(fit.loose)
        self.compiler.update()
        self.weights, self._loose = fit.weights, set(fit.loose)
        self._coarse, self._withheld = dict(fit.coarse), dict(fit.withheld)

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold: as the last update that was not refused had it."""
        coarse = self._coarse.get(switch)
        return coarse.table if coarse else self._exact_before(switch, self._withheld.get(switch, []))

    def meaning(self, switch: str) -> object:
        """What tells the table of a switch from another."""
        return self.table(switch)

    def changes(self, before: object, after: object) -> list[Change]:
        """How two meanings differ."""
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        return changes_between(before, after)

    def size(self, switch: str) -> int:
        """How many entries `table` has, without making it."""
        coarse = self._coarse.get(switch)
        return (
            len(coarse.table)
            if coarse
            else self.compiler.entries(switch) - growth(self._withheld.get(switch, ()))
        )

    def waste(self) -> dict[str, float]:
        """Per coarsened switch: the unwanted copies per event that its table is expected to send."""
        return {switch: coarse.waste for switch, coarse in sorted(self._coarse.items())}

    def _exact_before(self, switch: str, changes: list[Change]) -> dict[Dz, Ports]:
        table = self.compiler.table(switch)
        for change in changes:
            if change.old is None:
                del table[change.dz]
            else:
                table[change.dz] = change.old
        return table

    def _expect_more_from(self, coarse: set[str]) -> tuple[set[str], dict[str, list[Change]]]:
        """Tell the neighbours of newly coarse switches that more may arrive than they asked for; what that changes."""
        fresh = coarse - self._loose
        if not fresh or self.compiler.tables is not Tables.FREE:
            return set(), {}
        self._loose |= fresh
        for switch in fresh:
            self.compiler.loosen_around(switch)
        update = self.compiler.update()
        return update.touched, update.by_switch()

    def _fit(self, switch: str, anyway: bool) -> bool:
        """Decide on a switch's table; whether it is a coarse one."""
        capacity = self.capacity.get(switch)
        if capacity is None:
            self._coarse.pop(switch, None)
            return False
        limit, needed = room(capacity), self.compiler.entries(switch)
        coarse = self._coarse.get(switch)
        if needed <= limit * (WASTEFUL if coarse else 1) and (capacity != 1 or needed == 0):
            self._coarse.pop(switch, None)
            return False
        known = (
            coarse is not None and coarse.price < math.inf
        )  # the coarsest may have been so for want of room
        price = math.inf if capacity == 1 else coarse.price if coarse and known else None
        made = coarsened(self.compiler, switch, limit, self.weights, price)
        if (fewest := len(made.table)) > limit and not anyway:
            self._coarse.pop(switch, None)
            needed = fewest + (fewest > 1)  # with the one that is kept
            raise TableFull(switch=switch, needed=needed, capacity=capacity)
        self._coarse[switch] = made
        return True


def coarsened(
    compiler: Compiler, switch: str, limit: int, weights: Weights, price: float | None = None
) -> Coarse:
    """A table of at most `limit` entries where that is possible, at the given price of an entry if that still fits."""
    ports = len(compiler.topology.neighbours(switch))
    pruning = [Pruning(compiler, trie, ports, weights) for trie in compiler.tries(switch)]

    def size(price: float) -> int:
        return sum(part.size(price) for part in pruning)

    if price is None or not (limit * WASTEFUL <= size(price) <= limit or price == math.inf):
        goal = limit if limit < 20 else math.floor(limit * SLACK)
        price = _cheapest(size, goal, price)
    table: dict[Dz, Ports] = {}
    waste = 0.0
    for part in pruning:
        entries, more = part.table(price)
        table |= entries
        waste += more
    return Coarse(table, price, waste)


def _cheapest(size: Callable[[float], int], goal: int, near: float | None = None) -> float:
    """The lowest price per entry at which the table is no larger than the goal, or one where it is hardly smaller.

    A price `near` it, that of the table before, saves most of the search.
    """
    low, high = _around(size, goal, near)
    if high == HIGHEST and size(2.0**high) > goal:
        return math.inf
    while high - low > FINE:
        middle = (low + high) / 2
        found = size(2.0**middle)
        if found > goal:
            low = middle
            continue
        high = middle
        if goal >= LARGE and found >= goal * CLOSE:
            break
    return float(2.0**high)


def _around(size: Callable[[float], int], goal: int, near: float | None) -> tuple[float, float]:
    """Two powers of two between which the price lies: the table is too large at the lower one."""
    if near is None or not 2.0**LOWEST < near < 2.0**HIGHEST:
        return LOWEST, HIGHEST
    at, step = math.log2(near), STEP
    if size(near) > goal:
        while at + step < HIGHEST and size(2.0 ** (at + step)) > goal:
            at, step = at + step, 2 * step
        return at, min(at + step, HIGHEST)
    while at - step > LOWEST and size(2.0 ** (at - step)) <= goal:
        at, step = at - step, 2 * step
    return max(at - step, LOWEST), at


class Pruning:
    """One trie laid out with what its cells need and what they would waste."""

    def __init__(self, compiler: Compiler, trie: int, ports: int, weights: Weights) -> None:
        view, words = compiler.view(trie), compiler.words
        n = int(trie_kernel.count_nodes(view.nodes, view.root, view.scratch))
        self._ends, self._keys = np.zeros(n, np.int64), np.zeros((n, 3), np.uint64)
        self._needs, self._waste = np.zeros((n, words), np.uint64), np.zeros((n, ports))
        self._labels = np.zeros((n, coarsen_kernel.FEW, words), np.uint64)
        self._costs, self._alike = np.zeros((n, coarsen_kernel.FEW)), np.zeros(n, np.bool_)
        self._price = math.nan  # that the labels were weighed at
        self._size = 0  # of the table then
        coarsen_kernel.weigh_nodes(
            view.nodes,
            view.root,
            view.start,
            view.first,
            weights.traffic,
            view.hosts,
            view.scratch,
            self._ends,
            self._keys,
            self._needs,
            self._waste,
        )

    def size(self, price: float) -> int:
        """How many entries the table at a price per entry has."""
        if price != self._price:
            self._size = self._make(price, 0)[1]
        return self._size

    def table(self, price: float) -> tuple[dict[Dz, Ports], float]:
        """The table at a price per entry, and the unwanted copies per event to expect of it."""
        rows, _, waste = self._make(price, self.size(price))
        return Compiler.named(rows), waste

    def _make(self, price: float, room: int) -> tuple[NDArray[np.uint64], int, float]:
        """The rows of the table if there is room for them; how many it has, and its waste."""
        if price != self._price:
            coarsen_kernel.weigh_labels(
                self._ends, self._needs, self._waste, price, self._labels, self._costs, self._alike
            )
            self._price = price
        rows = np.zeros((room, 3 + self._needs.shape[1]), np.uint64)
        size, waste = coarsen_kernel.make_table(
            self._ends, self._keys, self._waste, price, self._labels, self._costs, self._alike, rows, room > 0
        )
        return rows, int(size), float(waste)
