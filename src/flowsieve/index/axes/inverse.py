"""Back from the grid: values that lie at given places of an axis and meet a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from flowsieve.content.box import Interval, Text
from flowsieve.index.axes.cut_axis import CutAxis
from flowsieve.index.axes.grid import STRING_BYTES, Axis, Line

TRIES = 50_000  # strings that are hashed in search of one; about a tenth of a second
LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Unfound:
    """A string that cannot be named: one that hashes to the places from `first` to `last` of an axis.

    It can only be found by trying. There are almost surely many.
    """

    first: int
    last: int
    bits: int

    def __str__(self) -> str:
        return f"a string whose hash begins {self.first:0{self.bits}b}…"


def number_in(axis: Line, first: int, last: int, interval: Interval) -> int | float | None:
    """The lowest number of an interval that lies at a place from `first` to `last`; None: there is none."""
    number = max(_lowest_number(axis, first), interval.low)
    return number if number <= interval.high and axis.place(number) <= last else None


def _lowest_number(axis: Line, place: int) -> int | float:
    """The lowest number of the attribute that lies at a place or above it; beyond its end if there is none."""
    attribute = axis.attribute
    if isinstance(axis, CutAxis):
        return axis.cuts[place - 1] if place else attribute.min
    assert isinstance(axis, Axis)
    if attribute.kind == "float":
        return _lowest_float(axis, place)
    values = int(attribute.max) - int(attribute.min) + 1
    return int(attribute.min) + -(-place * values >> axis.bits)


def string_in(axis: Line, first: int, last: int, text: Text) -> str | Unfound | None:
    """A string that a constraint admits and that lies at one of these places; None: there is none, surely."""
    assert isinstance(axis, Axis)
    if text.equals is not None:
        return text.equals if first <= axis.place(text.equals) <= last else None
    if axis.attribute.prefix:
        return _lowest_string_in(axis, first, last, text)
    if first == 0 and last == axis.cells - 1:
        return any_string(text)
    for string in islice(map(str, count()), TRIES):
        if first <= axis.place(string) <= last and text.admits(string):
            return string
    return Unfound(first, last, axis.bits)


def any_string(text: Text) -> str | None:
    """Some string that a constraint admits, a short one."""
    if text.equals is not None:
        return text.equals
    if text.high is not None and text.high <= text.low:
        return None
    # The first strings from `low` on. No constant has a NUL in it, so that `none_of` lacks the second.
    found = next(string for string in (text.low, text.low + "\0") if string not in text.none_of)
    return found if text.admits(found) else None


def _lowest_string_in(axis: Axis, first: int, last: int, text: Text) -> str | None:
    spare = 8 * STRING_BYTES - axis.bits
    lowest = _lowest_string((first << spare).to_bytes(STRING_BYTES, "big"))
    if lowest is None:
        return None
    found = any_string(Text(none_of=text.none_of, low=max(lowest, text.low), high=text.high))
    return found if found is not None and axis.place(found) <= last else None


def _lowest_string(data: bytes) -> str | None:
    """The lowest string whose first bytes, as a number, are not below these eight; None: there is none."""
    try:
        return data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        pass
    # Some character is cut off or none at all: keep as many as possible and raise the one that follows.
    for kept in range(STRING_BYTES - 1, -1, -1):
        try:
            start = data[:kept].decode()
        except UnicodeDecodeError:
            continue
        low, high = 0, LAST_CHARACTER + 1
        while low < high:
            middle = (low + high) // 2
            if chr(middle).encode("utf-8", "surrogatepass") > data[kept:]:
                high = middle
            else:
                low = middle + 1
        if 0xD800 <= low <= 0xDFFF:  # halves of surrogate pairs are no characters
            low = 0xE000
        if low <= LAST_CHARACTER:
            return start + chr(low)
    return None


def _lowest_float(axis: Axis, place: int) -> float:
    """The lowest float of the attribute that lies at a place or above it."""
    lowest, highest = _rank(float(axis.attribute.min)), _rank(float(axis.attribute.max))
    while lowest < highest:
        middle = (lowest + highest) // 2
        if axis.place(_unrank(middle)) >= place:
            highest = middle
        else:
            lowest = middle + 1
    return _unrank(lowest)


def _rank(number: float) -> int:
    """Where a float stands among all floats in order: neighbours differ by one."""
    bits = int(np.float64(number).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _unrank(rank: int) -> float:
    number = float(np.int64(abs(rank)).view(np.float64))
    return number if rank >= 0 else -number
