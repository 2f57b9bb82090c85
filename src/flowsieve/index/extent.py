"""What a cell stands for in the content space, and boxes taken out of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flowsieve.content.box import Box, Constraint, Interval, Text
from flowsieve.content.cuts import neighbour
from flowsieve.content.schema import Schema
from flowsieve.index.axes.grid import Line

MOST_PIECES = 20_000  # looked at while boxes are taken out of one


@dataclass(frozen=True, slots=True)
class Extent:
    """The events that lie at the places from `first` to `last` of some axes, in a box and in none of others."""

    axes: tuple[Line, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    within: Box
    without: tuple[Box, ...] = ()


def intersection(one: Box, two: Box) -> Box | None:
    """What two boxes share; None if they share nothing."""
    out = []
    for a, b in zip(one, two, strict=True):
        both = _both(a, b)
        if both is None:
            return None
        out.append(both)
    return tuple(out)


def _both(a: Constraint, b: Constraint) -> Constraint | None:
    if isinstance(a, Interval) and isinstance(b, Interval):
        low, high = max(a.low, b.low), min(a.high, b.high)
        return Interval(low, high) if low <= high else None
    assert isinstance(a, Text) and isinstance(b, Text)
    if a.equals is not None:
        return a if b.admits(a.equals) else None
    if b.equals is not None:
        return b if a.admits(b.equals) else None
    low_string = max(a.low, b.low)
    high_string = min((text.high for text in (a, b) if text.high is not None), default=None)
    if high_string is not None and high_string <= low_string:
        return None
    return Text(none_of=a.none_of | b.none_of, low=low_string, high=high_string)


def remainders(schema: Schema, box: Box, others: Sequence[Box]) -> Iterator[Box]:
    """What is left of a box outside all others, piece by piece; these bound numbers alone, not strings.

    After many pieces the rest comes as it is, not all of it outside: too much is safer than too little.
    """
    stack, looked_at = [(box, 0)], 0
    while stack:
        piece, i = stack.pop()
        looked_at += 1
        while i < len(others) and not _overlap(piece, others[i]):
            i += 1
        if i == len(others) or looked_at > MOST_PIECES:
            yield piece
        else:
            stack += [(part, i + 1) for part in _around(schema, piece, others[i])]


def _overlap(one: Box, two: Box) -> bool:
    return all(
        a.overlaps(b)
        for a, b in zip(one, two, strict=True)
        if isinstance(a, Interval) and isinstance(b, Interval)
    )


def _around(schema: Schema, box: Box, hole: Box) -> Iterator[Box]:
    """The parts of a box around one that overlaps it: axis by axis, what lies below it and what lies above."""
    for i, attribute in enumerate(schema):
        whole, taken = box[i], hole[i]
        if not isinstance(whole, Interval) or not isinstance(taken, Interval):
            continue
        if whole.low < taken.low:
            below = Interval(whole.low, neighbour(attribute, taken.low, -1))
            yield (*box[:i], below, *box[i + 1 :])
        if taken.high < whole.high:
            above = Interval(neighbour(attribute, taken.high, +1), whole.high)
            yield (*box[:i], above, *box[i + 1 :])
        inside = Interval(max(whole.low, taken.low), min(whole.high, taken.high))
        box = (*box[:i], inside, *box[i + 1 :])
