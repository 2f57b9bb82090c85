"""Sets of values of one attribute, as the cuts where they begin and end.

A set is the sorted tuple of the points of the attribute's line at which membership changes: (3, 7, 9) is
everything from 3 to below 7, and from 9 up. The empty set is (); an odd number of cuts means that the set
reaches the top. Numbers and strings are both such lines, so that one sweep does for unions and intersections
of any number of sets of any kind. Where a comparison is strict, the cut is at the next value: the next
integer, the next float, the next string.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

from flowsieve.content.box import Constraint, Interval, Text
from flowsieve.content.schema import Attribute

Cuts = tuple[Any, ...]  # all int, all float, or all str
NOTHING: Cuts = ()


def bottom(attribute: Attribute) -> int | float | str:
    """The lowest point of the attribute's line."""
    return "" if attribute.kind == "string" else attribute.min


def whole(attribute: Attribute) -> Cuts:
    return (bottom(attribute),)


def at_least(attribute: Attribute, point: Any) -> Any:
    """The first point of the line that is not below a constant, which may be no point of it itself."""
    if isinstance(point, str):
        return point
    if attribute.kind == "float":
        try:
            near = float(point)
        except OverflowError:  # an int with hundreds of digits
            return math.inf if point > 0 else -math.inf
        return math.nextafter(near, math.inf) if near < point else near + 0.0  # + 0.0: no -0.0
    return point if isinstance(point, int) or math.isinf(point) else math.ceil(point)


def above(attribute: Attribute, point: Any) -> Any:
    """The first point of the line that is above a constant."""
    first = at_least(attribute, point)
    if first > point:
        return first
    return f"{first}\0" if isinstance(first, str) else neighbour(attribute, first, +1)


def neighbour(attribute: Attribute, number: int | float, step: int) -> int | float:
    """The next number of an attribute's line above (+1) or below (-1) one."""
    return math.nextafter(number, step * math.inf) if attribute.kind == "float" else number + step


def between(attribute: Attribute, low: Any, high: Any) -> Cuts:
    """From `low` to below `high`, either None where there is no bound, clipped to the attribute's range."""
    first = bottom(attribute)
    if low is None or low < first:
        low = first
    if attribute.kind != "string":
        if low > attribute.max:
            return NOTHING
        if high is not None and high > attribute.max:
            high = None
    if high is None:
        return (low,)
    return (low, high) if low < high else NOTHING


def compare(attribute: Attribute, operator: type[ast.cmpop], point: Any) -> Cuts:
    """The values for which `value <operator> point` holds."""
    if operator is ast.Lt:
        return between(attribute, None, at_least(attribute, point))
    if operator is ast.LtE:
        return between(attribute, None, above(attribute, point))
    if operator is ast.Gt:
        return between(attribute, above(attribute, point), None)
    if operator is ast.GtE:
        return between(attribute, at_least(attribute, point), None)
    equal = between(attribute, at_least(attribute, point), above(attribute, point))
    return equal if operator is ast.Eq else complement(attribute, equal)


def complement(attribute: Attribute, cuts: Cuts) -> Cuts:
    first = bottom(attribute)
    return cuts[1:] if cuts and cuts[0] == first else (first, *cuts)


def union(sets: Sequence[Cuts]) -> Cuts:
    return combine(sets, 1)


def intersection(sets: Sequence[Cuts]) -> Cuts:
    return combine(sets, len(sets))


def combine(sets: Sequence[Cuts], enough: int) -> Cuts:
    """What lies in `enough` of the sets or more: one sweep over all their cuts."""
    if len(sets) == 1:
        return sets[0]
    steps = [step for cuts in sets for step in zip(cuts, cycle((1, -1)), strict=False)]
    steps.sort()
    out: list[Any] = []
    depth, inside, last = 0, False, len(steps) - 1
    for i, (cut, step) in enumerate(steps):
        depth += step
        if i < last and steps[i + 1][0] == cut:
            continue  # all that happens at one cut happens at once
        if (depth >= enough) != inside:
            inside = not inside
            out.append(cut)
    return tuple(out)


def covers(cuts: Cuts, other: Cuts) -> bool:
    if 0 < len(cuts) <= 2 and other:  # a single range: the ends of the other tell
        return cuts[0] <= other[0] and (len(cuts) == 1 or (len(other) % 2 == 0 and other[-1] <= cuts[1]))
    return intersection((cuts, other)) == other


def segments(cuts: Cuts) -> Iterable[tuple[Any, Any]]:
    """The set as ranges from low to below high; the last high is None where the set reaches the top."""
    return zip(cuts[::2], (*cuts[1::2], None)[: (len(cuts) + 1) // 2], strict=True)


def constraints(attribute: Attribute, cuts: Cuts) -> list[Constraint]:
    """The set as few constraints, which together mean the same."""
    if attribute.kind == "string":
        return [*texts(cuts)]
    return [
        Interval(low, attribute.max if high is None else neighbour(attribute, high, -1))
        for low, high in segments(cuts)
    ]


def texts(cuts: Cuts) -> Iterable[Text]:
    """A set of strings as `Text`s, with ranges joined where a single string is missing between them.

    So `s != "a"` is one `Text` and not a range below and a range above, which a hash could not tell apart. It
    rests on constants having no NUL in them: then only a range [x, x + NUL) is a single string.
    """
    run_low, run_high, missing = None, "", set[str]()
    for low, high in segments(cuts):
        if run_low is None and low == "\0":
            run_low, missing = "", {""}  # all but the empty string, so far
        elif run_low is not None and low == run_high + "\0":
            missing.add(run_high)
        else:
            if run_low is not None:
                yield Text(low=run_low, high=run_high, none_of=frozenset(missing))
            run_low, missing = low, set()
        if high == low + "\0":
            yield Text(equals=low)
            run_low = None
        elif high is None:
            yield Text(low=run_low, none_of=frozenset(missing))
            run_low = None
        else:
            run_high = high
    if run_low is not None:
        yield Text(low=run_low, high=run_high, none_of=frozenset(missing))


def cuts_of(attribute: Attribute, constraint: Constraint) -> Cuts:
    """The inverse of `constraints`, for one of them."""
    if isinstance(constraint, Interval):
        return between(attribute, constraint.low, neighbour(attribute, constraint.high, +1))
    if constraint.equals is not None:
        return (constraint.equals, constraint.equals + "\0")
    holes = [complement(attribute, (string, string + "\0")) for string in constraint.none_of]
    return intersection([between(attribute, constraint.low, constraint.high), *holes])
