"""The lines of numbers on which boxes and events are compared, whatever the attributes are.

Strings have no numbers of their own. One that some filter asks for by name has a number while there is such a filter;
all others share one. Where strings have an order (`prefix = true`), their first bytes are a line as well. What numbers
do not tell of a constraint is left over, to be asked of the string itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import ANY_TEXT, Box, Interval, Text
from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema

FIRST_BYTES = 6  # of a string; a float holds every number that they make
UNKNOWN = -1.0  # the number of a string that no filter asks for

Rest = tuple[
    tuple[str, Text], ...
]  # constraints that numbers alone do not decide, with the names of their attributes


class Bounds(NamedTuple):
    """A box by numbers, a low and a high per column, and what these leave open."""

    ends: list[tuple[float, float]]
    rest: Rest


class NamedStrings:
    """Numbers for the strings that filters ask for by name, each as long as somebody does."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self._holders: dict[str, int] = {}
        self._free: list[float] = []

    def hold(self, string: str) -> float:
        if string not in self.numbers:
            self.numbers[string] = self._free.pop() if self._free else float(len(self.numbers))
        self._holders[string] = self._holders.get(string, 0) + 1
        return self.numbers[string]

    def release(self, string: str) -> None:
        self._holders[string] -= 1
        if not self._holders[string]:
            del self._holders[string]
            self._free.append(self.numbers.pop(string))


class NumberLines:
    """A schema's attributes as columns of numbers: one each, and a second one for strings that have an order."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.columns = len(schema) + sum(attribute.prefix for attribute in schema)
        self.strings = tuple(attribute.name for attribute in schema if attribute.kind == "string")
        self._named = {name: NamedStrings() for name in self.strings}

    def hold(self, box: Box) -> Bounds:
        """The bounds of a box; the strings that it names keep their numbers until it is released."""
        ends, rest = list[tuple[float, float]](), list[tuple[str, Text]]()
        for attribute, constraint in zip(self.schema, box, strict=True):
            if isinstance(constraint, Interval):
                ends.append((constraint.low, constraint.high))
                continue
            if constraint.equals is not None:
                number = self._named[attribute.name].hold(constraint.equals)
                ends.append((number, number))
            else:
                ends.append((-math.inf, math.inf))
                if constraint != ANY_TEXT:
                    rest.append((attribute.name, constraint))
            if attribute.prefix:
                ends.append(_order_ends(constraint))
        return Bounds(ends, tuple(rest))

    def release(self, box: Box) -> None:
        for attribute, constraint in zip(self.schema, box, strict=True):
            if isinstance(constraint, Text) and constraint.equals is not None:
                self._named[attribute.name].release(constraint.equals)

    def point(self, values: Mapping[str, object]) -> NDArray[np.float64]:
        """Where an event stands in each column; its values are such as the schema allows."""
        numbers = list[float]()
        for attribute in self.schema:
            value = values[attribute.name]
            if isinstance(value, str):
                if attribute.kind == "enum":
                    numbers.append(attribute.places[value])
                    continue
                numbers.append(self._named[attribute.name].numbers.get(value, UNKNOWN))
                if attribute.prefix:
                    numbers.append(order_number(value))
            else:
                numbers.append(value)  # type: ignore[arg-type]
        return np.array(numbers, np.float64)

    def points(self, events: EventBatch) -> NDArray[np.float64]:
        """A row per event."""
        columns = list[NDArray[np.float64]]()
        for attribute in self.schema:
            column = events.columns[attribute.name]
            if attribute.kind != "string":
                columns.append(column)
                continue
            numbers = self._named[attribute.name].numbers
            columns.append(np.array([numbers.get(string, UNKNOWN) for string in column], np.float64))
            if attribute.prefix:
                columns.append(np.array([*map(order_number, column)], np.float64))
        return np.stack(columns, axis=1)


def order_number(string: str) -> float:
    """A number by which strings are in their order, as far as their first bytes tell."""
    return float(int.from_bytes(string[:FIRST_BYTES].encode()[:FIRST_BYTES].ljust(FIRST_BYTES, b"\0")))


def _order_ends(text: Text) -> tuple[float, float]:
    if text.equals is not None:
        return order_number(text.equals), order_number(text.equals)
    return order_number(text.low), math.inf if text.high is None else order_number(text.high)
