"""Covers: the dz that stand for a filter.

A box *touches* a cell if it reaches into it, and *encloses* it if nothing in the cell lies outside the box.
The exact cover of some boxes is every cell of the finest level that one of them touches; `refine` finds
coarser ones.

This is the meaning, for any plan. `cover_kernel` computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.index.covers.walk import Cell, Spans, Walk, cell_of, root
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.splitter import SPARE

MOST_LISTED = 100_000  # dz that an exact cover may have

Boxes = Sequence[Spans]


def touching(cell: Cell, boxes: Boxes) -> Boxes:
    """The boxes that touch a cell."""
    return [
        box
        for box in boxes
        if all(
            span.first <= last and first <= span.last
            for span, first, last in zip(box, cell.first, cell.last, strict=True)
        )
    ]


def encloses(box: Spans, cell: Cell) -> bool:
    return all(
        span.below <= first and last <= span.above
        for span, first, last in zip(box, cell.first, cell.last, strict=True)
    )


def fills(walk: Walk, box: Spans, cell: Cell) -> bool:
    """Whether a box surely touches all cells inside a cell, though it may enclose none.

    It does if it touches every place on the axes that cells in here may be cut on. The spare axis has no say:
    nothing lies beyond its first place.
    """
    return all(
        not cut or span is SPARE or (span.first <= first and last <= span.last)
        for cut, span, first, last in zip(walk.may_cut(cell), box, cell.first, cell.last, strict=True)
    )


def touches(walk: Walk, boxes: Boxes, cells: DzSet) -> list[bool]:
    """Which dz of a set name cells that some box touches."""
    return [bool(touching(cell_of(walk, dz), boxes)) for dz in cells]


def exact(walk: Walk, boxes: Boxes, most: int = MOST_LISTED) -> DzSet | None:
    """Every cell that the boxes touch, in canonical form; None if these are more than `most` dz."""
    found: list[Dz] = []
    stack = [(root(walk), boxes)]
    while stack:
        cell, near = stack.pop()
        near = touching(cell, near)
        if not near:
            continue
        halves = None if any(encloses(box, cell) for box in near) else walk.split(cell)
        if halves is None:
            found.append(cell.dz)
        else:
            stack += [(half, near) for half in halves]
    out = DzSet(found)
    return out if len(out) <= most else None


def count(walk: Walk, boxes: Boxes) -> int:
    """How many dz the exact cover has."""

    def below(cell: Cell, near: Boxes) -> tuple[int, bool]:
        """Of the part of the cover in a cell: its dz, and whether they are the whole cell."""
        near = touching(cell, near)
        if not near:
            return 0, False
        halves = None if any(encloses(box, cell) for box in near) else walk.split(cell)
        if halves is None:
            return 1, True
        (low, low_whole), (high, high_whole) = (below(half, near) for half in halves)
        return (1, True) if low_whole and high_whole else (low + high, False)

    return below(root(walk), boxes)[0]
