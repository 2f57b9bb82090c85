"""The kd plan: every cell chooses its own dimension and cut, and below the tree cells are cut where most cuts lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadPlan
from flowsieve.index.axes.cut_axis import AxisCuts, Number, as_cuts, axis_of
from flowsieve.index.axes.grid import Line
from flowsieve.index.covers.walk import Cell, DzColumn, Spans, root, spans
from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.index.extent import Extent
from flowsieve.index.plans import kd_kernel
from flowsieve.index.plans.cell_plan import CellPlan
from flowsieve.index.plans.levels import chunks, places_of
from flowsieve.index.plans.reading import (
    check_axes,
    check_bits,
    check_dimensions,
    cuts_of,
    indices_of,
    names_of,
    need,
    only,
)
from flowsieve.index.plans.splitter import FREE, NEVER, SPARE, SPARE_PLACES, SplitState, Splitter

LEAF = -1
MOST_NODES = 1 << 17


@dataclass(frozen=True)
class KdPlan(CellPlan):
    """A tree of cuts over axes that have all of its cuts, and more.

    The tree is written in preorder: a node is a dimension's number and a place on its axis, the first of the
    upper half; then come the nodes of the lower half, then those of the upper one. A leaf has dimension -1.
    A cell below a leaf is cut on the axis with most cuts inside it, the first of several, at the median one.

    >>> schema = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
    >>> tree = [("A", 10), None, ("B", 50), None, None]
    >>> plan = KdPlan.make(schema, tree, bits=4, cuts={"A": [5, 70], "B": [60]})
    >>> plan.encode({"A": 65, "B": 55})
    (Dz('1100'),)
    """

    kind: ClassVar[str] = "kd"
    fields: ClassVar[tuple[str, ...]] = ("bits", "dimensions", "cuts", "axis", "place")
    single_places: ClassVar[bool] = False

    schema: Schema
    dimensions: tuple[str, ...]
    cuts: tuple[AxisCuts, ...]
    axis: tuple[int, ...]
    place: tuple[int, ...]
    bits: int

    def __post_init__(self) -> None:
        check_axes(self.schema, self.dimensions, self.cuts)
        check_bits(self.bits)
        if len(self.axis) != len(self.place) or len(self.axis) > 2 * MOST_NODES + 1:
            raise BadPlan(
                f"a tree of {len(self.axis)} dimensions and {len(self.place)} places; right are as many of both, "
                f"{2 * MOST_NODES + 1} at most"
            )
        assert self.splitter is not None  # which looks at the whole tree

    @classmethod
    def make(
        cls,
        schema: Schema,
        tree: Iterable[tuple[str, Number] | None],
        bits: int,
        cuts: Mapping[str, Any],
        room: int = MAX_LENGTH,
    ) -> KdPlan:
        """A plan from a tree in preorder and the further cuts of each dimension, which are used below the tree.

        A node is a dimension and the number to cut it at: of a string, which has bits in place of cuts, a
        place. None is a leaf.
        """
        names, nodes = tuple(cuts), list(tree)
        check_dimensions(schema, names)
        check_bits(bits, room)
        rows = [as_cuts(schema[name], row) for name, row in cuts.items()]
        for node in nodes:
            if node is not None and node[0] not in names:
                raise BadPlan(f"the tree cuts {node[0]!r}, and only {', '.join(names)} have an axis")
        for i, (name, row) in enumerate(zip(names, rows, strict=True)):
            if not isinstance(row, int):
                own = as_cuts(
                    schema[name], [node[1] for node in nodes if node is not None and node[0] == name]
                )
                assert not isinstance(own, int)
                rows[i] = _ascending(schema[name], {*row, *own})
        where = [{} if isinstance(row, int) else {cut: i + 1 for i, cut in enumerate(row)} for row in rows]
        axis = [LEAF if node is None else names.index(node[0]) for node in nodes]
        place = [
            0 if node is None else where[i].get(node[1], node[1]) for i, node in zip(axis, nodes, strict=True)
        ]
        return cls(schema, names, tuple(rows), tuple(axis), tuple(map(int, place)), bits)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema, room: int) -> KdPlan:
        """The plan that `to_json` wrote down; the caller has checked kind and schema."""
        only(data, cls.kind, cls.fields)
        names = names_of(need(data, cls.kind, "dimensions"))
        rows = cuts_of(schema, names, need(data, cls.kind, "cuts"))
        axis = indices_of("axis", need(data, cls.kind, "axis"), LEAF, len(names) - 1)
        place = indices_of("place", need(data, cls.kind, "place"), 0, (1 << 64) - 1)
        return cls(schema, names, rows, axis, place, check_bits(need(data, cls.kind, "bits"), room))

    @cached_property
    def axes(self) -> tuple[Line, ...]:
        return tuple(map(axis_of, self.attributes, self.cuts))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (*(axis.cells for axis in self.axes), SPARE_PLACES)

    @cached_property
    def splitter(self) -> Splitter:
        """The tree's inner nodes in preorder; each is checked to cut its cell in two."""
        free = len(self.axis) - self.axis.count(LEAF)  # the state below the tree
        halves = [[free, free] for _ in range(free)]
        cuts: list[tuple[int, int]] = []  # of each state the axis, and the last place of the lower half
        leaves: list[tuple[int, Cell]] = []
        waiting = [(free, 0, root(self))]  # the parent's state, which half, the cell
        for i, (axis, place) in enumerate(zip(self.axis, self.place, strict=True)):
            if not waiting:
                raise BadPlan(f"the tree is complete after {i} of its {len(self.axis)} nodes")
            parent, half, cell = waiting.pop()
            if axis == LEAF:
                leaves.append((parent, cell))
                continue
            if not cell.first[axis] < place <= cell.last[axis]:
                raise BadPlan(
                    f"node {i} cuts {self.dimensions[axis]} at place {place}; right is one from "
                    f"{cell.first[axis] + 1} to {cell.last[axis]}, inside its cell"
                )
            if cuts:
                halves[parent][half] = len(cuts)
            low, high = _parts(cell, axis, place)
            waiting += [(len(cuts), 1, high), (len(cuts), 0, low)]
            cuts.append((axis, place - 1))
        if waiting:
            raise BadPlan(f"the tree ends after {len(self.axis)} nodes, and {len(waiting)} are still to come")
        states = [SplitState(*cut, *pair) for cut, pair in zip(cuts, halves, strict=True)]
        states.append(SplitState(FREE, None, free, free))
        reach = np.full((len(states), len(self.shape)), NEVER, np.uint8)
        out = Splitter.of(0, states, np.zeros(len(states), np.bool_), reach)
        corners = np.array([(cell.first, cell.last) for _, cell in leaves], np.uint64)
        kd_kernel.fill_reach(out.axis, out.next, np.array([parent for parent, _ in leaves]), corners, reach)
        return out

    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: the way down the cells that it lies in."""
        places = [*places_of(self.axes, values), 0]
        cell = root(self)
        while halves := self.split(cell):
            low, high = halves
            cell = low if all(map(int.__le__, places, low.last)) else high
        return (cell.dz,)

    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once; raises BadCell at the first one without a place in the index."""
        self._check_schema(events.schema)
        hi, lo = np.zeros(len(events), np.uint64), np.zeros(len(events), np.uint64)
        for rows, some in chunks(self.axes, events):
            kd_kernel.locate(self._nodes, self.axis_last, self.bits, some, hi[rows], lo[rows])
        return DzColumn(np.arange(len(events)), hi, lo, self.bits)

    @cached_property
    def _nodes(self) -> NDArray[np.unsignedinteger[Any]]:
        """The tree as its kernel takes it: the fields of a node stand side by side in memory."""
        tree = self.splitter
        rows = np.column_stack((tree.axis.astype(np.uint64), tree.cut, tree.next.astype(np.uint64)))[:-1]
        small = not len(rows) or rows.max() < 1 << 32
        return np.ascontiguousarray(rows, np.uint32 if small else np.uint64)

    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        self._check_schema(wanted.schema)
        return tuple((*box, SPARE) for box in spans(self.axes, wanted))

    def places(self, events: EventBatch) -> NDArray[np.uint64]:
        out = np.zeros((len(events), len(self.shape)), np.uint64)
        for i, axis in enumerate(self.axes):
            out[:, i] = axis.places(events.columns[axis.attribute.name])
        return out

    def cells(self, places: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        first, last = np.zeros_like(places), np.zeros_like(places)
        inner = np.s_[:, :-1]  # the spare axis has no events
        start, axis, _, cut, after, *_ = self.splitter
        tree = start, axis, cut, after, self.axis_last, self.bits
        kd_kernel.fill_cells(*tree, places[inner], first[inner], last[inner])
        return first, last

    def extents(self, cell: Cell) -> tuple[Extent, ...]:
        if cell.first[-1]:
            return ()
        return (Extent(self.axes, cell.first[:-1], cell.last[:-1], self.schema.whole),)

    def shortened(self, bits: int) -> KdPlan:
        return replace(self, bits=bits)


def _parts(cell: Cell, axis: int, place: int) -> tuple[Cell, Cell]:
    """The halves of a cell; their dz are not needed, and would be too long in a deep tree."""
    first, last = cell.first, cell.last
    low = Cell(cell.dz, first, (*last[:axis], place - 1, *last[axis + 1 :]))
    return low, Cell(cell.dz, (*first[:axis], place, *first[axis + 1 :]), last)


def _ascending(attribute: Attribute, cuts: set[Number]) -> tuple[Number, ...]:
    try:
        return tuple(sorted(cuts))
    except TypeError:
        raise BadPlan(f"{attribute.name} has cuts that are not numbers") from None
