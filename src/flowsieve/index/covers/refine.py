"""Covers under a budget: few dz, spent where they save most unwanted traffic.

The cover starts as the smallest cell around all boxes. Each move then goes down from one of its cells, always
into the half with more waste to hope for, until parts turn up that no box touches and that can be dropped. A move of n
halvings costs n more dz. The move that saves most waste per dz is made first; what it opens competes with the
rest. Where dz have a price, a move is made only if each dz of it saves as much; the first ones may be free, so
that a filter where nothing happened is not blind to what may come.

This is the meaning, for any plan. `refine_kernel` computes the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from flowsieve.index.covers.cover import Boxes, encloses, fills, touching
from flowsieve.index.covers.walk import Cell, Spans, Walk, root
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet

FEW_BOXES = 4  # up to here the union of boxes in a cell is measured exactly
LEAST_SHARE = 2.0**-30  # of what lies between boxes may be left when rounding has eaten the rest
PATIENCE = 1  # where waste is spread evenly, the first thing to drop is as good as any
PATIENCE_WITH_SAMPLE = 8  # where it comes in lumps, a larger one may lie deeper
EFFORT_PER_CELL = 16  # what looking at a cell costs, in boxes looked at


class Weight(NamedTuple):
    """What a cell weighs in a search."""

    waste: float  # the traffic in it that no box wants; all that counts in the end
    volume: float  # the part of the space in it that lies outside all boxes
    hits: int = 0  # the events of a sample in it that lie in no box


# Weighs a cell, given the boxes that touch it and the weight of the cell above; None: there is none above.
Weigh = Callable[[Cell, Boxes, Weight | None], Weight]


def outside(cell: Cell, boxes: Boxes) -> float:
    """The share of a cell's volume outside all boxes that touch it; 0 only if one of them encloses the cell.

    Exact but for rounding up to a few boxes; beyond, as if the boxes had nothing to do with each other.
    """
    shares = [_outside_one(cell, box) for box in boxes]
    if 0.0 in shares:
        return 0.0
    apart = 1.0
    for share in shares:
        apart *= share
    apart = max(apart, 1e-300)
    if not 1 < len(boxes) <= FEW_BOXES:
        return apart
    inside = 0.0
    for chosen in range(1, 1 << len(boxes)):  # inclusion and exclusion
        some = [box for i, box in enumerate(boxes) if chosen >> i & 1]
        inside += _inside_all(cell, some) if len(some) % 2 else -_inside_all(cell, some)
    return max(1.0 - inside, LEAST_SHARE * apart)


def _outside_one(cell: Cell, box: Spans) -> float:
    """Axis by axis, what is outside there and inside on all axes before: a sum without cancellation."""
    share, before = 0.0, 1.0
    for span, first, last in zip(box, cell.first, cell.last, strict=True):
        size = float(last - first) + 1.0
        gap = float(max(span.below - first, 0)) + float(max(last - span.above, 0))
        share += before * (gap / size)
        before *= (size - gap) / size
    return share


def _inside_all(cell: Cell, boxes: Boxes) -> float:
    share = 1.0
    for axis, (first, last) in enumerate(zip(cell.first, cell.last, strict=True)):
        low = max(first, *(box[axis].below for box in boxes))
        high = min(last, *(box[axis].above for box in boxes))
        if low > high:
            return 0.0
        share *= (float(high - low) + 1.0) / (float(last - first) + 1.0)
    return share


def volume_weight(walk: Walk) -> Weigh:
    """Weighs as if the traffic were everywhere alike."""
    cells = [float(places) for places in walk.shape]

    def weigh(cell: Cell, boxes: Boxes, above: Weight | None) -> Weight:
        volume = 1.0
        for first, last, whole in zip(cell.first, cell.last, cells, strict=True):
            volume *= (float(last - first) + 1.0) / whole
        volume *= outside(cell, boxes)
        return Weight(volume, volume)

    return weigh


@dataclass(slots=True)
class _Node:
    """A cell that the search has looked at: as small as it gets around what touches it."""

    serial: int
    cell: Cell
    boxes: Boxes
    weight: Weight
    shrunk: bool  # smaller than the half of the cell above that it stands for
    hope: float  # how much of the waste may be dropped yet; 0: boxes touch everything in here
    halves: tuple[_Node, _Node] | None = None

    @property
    def waste(self) -> float:
        return self.weight.waste


@dataclass(slots=True)
class _Move:
    """A way down from a cell, `cost` halvings long; at each the half with more waste is followed."""

    gain_per_dz: float
    cost: int


@dataclass(slots=True)
class _Search:
    """The cells looked at so far hang below each other, so that each is weighed once."""

    walk: Walk
    weigh: Weigh
    patience: int
    most_effort: int
    nodes: int = 0
    effort: int = 0

    def node(self, cell: Cell, boxes: Boxes, above: Weight | None) -> _Node:
        """The smallest cell around what the boxes touch in this one; shrinking is free."""
        shrunk = False
        near = touching(cell, boxes)
        while not (filled := any(encloses(box, cell) or fills(self.walk, box, cell) for box in near)):
            halves = self.walk.split(cell)
            if halves is None:
                break
            touched = [(half, some) for half in halves if (some := touching(half, near))]
            if len(touched) == 2:
                break
            (cell, near), shrunk = touched[0], True
        self.nodes += 1
        self.effort += EFFORT_PER_CELL + len(near)
        weight = self.weigh(cell, near, above)
        return _Node(self.nodes - 1, cell, near, weight, shrunk, 0.0 if filled else weight.waste)

    def halve(self, node: _Node) -> tuple[_Node, _Node] | None:
        """What is left of the two halves of a cell; None if it is not halved, or the effort is spent."""
        if node.halves is None and self.effort <= self.most_effort:
            halves = self.walk.split(node.cell)
            if halves is not None:
                low, high = (self.node(half, node.boxes, node.weight) for half in halves)
                node.halves = low, high
        return node.halves

    def best_move(self, start: _Node, most: int) -> _Move | None:
        """The move of `most` halvings or fewer that saves most waste per dz; None: nothing can be dropped."""
        while start.hope > 0.0:
            node, gain, best, drops = start, 0.0, None, 0
            for cost in range(1, most + 1):
                halves = self.halve(node)
                if halves is None:
                    break
                low, high = halves
                gain += node.waste - low.waste - high.waste
                if low.shrunk or high.shrunk:
                    if best is None or gain / cost > best.gain_per_dz:
                        best = _Move(gain / cost, cost)
                    drops += 1
                    bound = start.waste / (cost + 1)  # more than all waste no further halving can save
                    if drops == self.patience or bound <= best.gain_per_dz:
                        return best
                heavier = low if low.hope >= high.hope else high
                if heavier.hope == 0.0:
                    break
                node = heavier
            else:
                return best
            if best is not None:
                return best
            # A dead end: boxes touch everything down there, if only together. Look elsewhere.
            node.hope = 0.0
        return None

    def make(self, start: _Node, cost: int) -> list[_Node]:
        """The cells that take the place of one after a move."""
        out, node = [], start
        for _ in range(cost):
            assert node.halves is not None
            low, high = node.halves
            node, other = (low, high) if low.hope >= high.hope else (high, low)
            out.append(other)
        return [*out, node]


def most_effort(budget: int) -> int:
    """How many boxes a search may look at, repeats included; only filters of many boxes come near it."""
    return 5_000_000 + 1_000 * budget


def refine(
    walk: Walk,
    boxes: Boxes,
    budget: int,
    weigh: Weigh,
    patience: int,
    price: float = 0.0,
    free: int = 0,
) -> DzSet:
    """A cover of at most `budget` dz: again and again the move that saves most waste per dz, while it fits.

    It ends where a dz saves less than its price and `free` ones are there; so covers at a higher price contain those at
    a lower one.

    To find the best move from a cell means going down until something has been dropped `patience` times.
    """
    search = _Search(walk, weigh, patience, most_effort(budget))
    done: list[Dz] = []
    heap: list[tuple[float, int, int, _Node]] = []  # by gain per dz, the first found first
    new, size = [search.node(root(walk), boxes, None)], 1
    while new or heap:
        for node in new:
            move = search.best_move(node, budget - size)
            if move is None:
                done.append(node.cell.dz)
            else:
                heapq.heappush(heap, (-move.gain_per_dz, node.serial, move.cost, node))
        new = []
        if heap:
            less_gain, _, cost, node = heapq.heappop(heap)
            if size >= free and -less_gain < price:
                done.append(node.cell.dz)
            elif size + cost > budget:
                new = [node]  # perhaps a cheaper move fits
            else:
                size += cost
                new = search.make(node, cost)
    return DzSet(done)
