"""The content space: attributes, each with its range of values, in order."""

from __future__ import annotations

import hashlib
import json
import keyword
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np

from flowsieve.content.box import ANY_TEXT, Box, Constraint, Interval
from flowsieve.errors import BadSchema, BadValue, nearest

KINDS = {  # the keys that an attribute of each kind has beside `type`
    "int": ("min", "max"),
    "float": ("min", "max"),
    "enum": ("values",),
    "bool": (),
    "string": ("prefix",),
}
RESERVED = ("id", "host")  # columns of every table of events
LARGEST_INT = 2**53  # up to here a 64-bit float, and so a column of numbers, holds every integer
FLOAT_BITS = 52
STRING_BITS = 64


@dataclass(frozen=True)
class Attribute:
    """A dimension of the content space.

    `min` and `max` are the ends of its number line: the values themselves of an int or float, positions in
    `values` for an enum, 0 and 1 for a bool. A string has no number line, its value is the string itself;
    its ends are those of the 64 bits that stand for it in an index. With `prefix` these keep its order.
    """

    name: str
    kind: str
    min: int | float
    max: int | float
    values: tuple[str, ...] = ()
    prefix: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_kind(self.name, self.kind)
        if self.kind == "int":
            _check_int_range(self.name, self.min, self.max)
        elif self.kind == "float":
            _check_float_range(self.name, self.min, self.max)
        elif self.kind == "enum":
            _check_values(self.name, self.values)
        if self.kind not in ("int", "float") and (self.min, self.max) != _ends(self.kind, self.values):
            raise _bad(self.name, f"the ends of this {self.kind} are {_ends(self.kind, self.values)}")

    @classmethod
    def parse(cls, name: str, table: object) -> Attribute:
        """An attribute from its table in a scenario: `{ type = "int", min = 0, max = 1023 }`."""
        _check_name(name)
        if not isinstance(table, Mapping):
            raise _bad(name, f"{shown(table)} is not a table such as {{ type = 'int', min = 0, max = 9 }}")
        if "type" not in table:
            raise _bad(name, f"the type is missing: one of {', '.join(KINDS)}")
        kind = table["type"]
        _check_kind(name, kind)
        keys = KINDS[kind]
        for key in table:
            if key != "type" and key not in keys:
                right = ", ".join(("type", *keys))
                hint = nearest(str(key), keys)
                raise _bad(name, f"an attribute of type {kind} has no {shown(key)}, only {right}{hint}")
        for key in keys:
            if key not in table and key != "prefix":
                raise _bad(name, f"an attribute of type {kind} needs {' and '.join(keys)}; {key} is missing")
        if kind == "int":
            return cls(name, kind, table["min"], table["max"])
        if kind == "float":
            _check_float_range(name, table["min"], table["max"])
            return cls(name, kind, float(table["min"]) + 0.0, float(table["max"]) + 0.0)  # no -0.0
        if kind == "enum":
            _check_values(name, table["values"])
        values = tuple(table.get("values", ()))
        prefix = table.get("prefix", False)
        if not isinstance(prefix, bool):
            raise _bad(name, f"prefix is true or false, not {shown(prefix)}")
        return cls(name, kind, *_ends(kind, values), values, prefix)

    def to_json(self) -> dict[str, Any]:
        """The table that `parse` reads."""
        fields = {"min": self.min, "max": self.max, "values": list(self.values), "prefix": self.prefix}
        return {"type": self.kind} | {key: fields[key] for key in KINDS[self.kind]}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each value of an enum stands in its order."""
        return {value: i for i, value in enumerate(self.values)}

    @property
    def resolution(self) -> int:
        """How many bits tell all its values apart; of a float and a string, how many are used."""
        if self.kind == "float":
            return FLOAT_BITS
        return (int(self.max) - int(self.min)).bit_length()

    @property
    def whole(self) -> Constraint:
        """The constraint that every value of the attribute meets."""
        return ANY_TEXT if self.kind == "string" else Interval(self.min, self.max)

    def number(self, value: object) -> int | float:
        """A value's place on the attribute's number line; for all kinds but string."""
        number: int | float
        if self.kind == "enum":
            if not isinstance(value, str) or value not in self.places:
                hint = nearest_of(value, self.values) if isinstance(value, str) else ""
                raise self._bad_value(value, f"is none of {listed(self.values)}{hint}")
            return self.places[value]
        if self.kind == "bool":
            if not isinstance(value, bool | np.bool_):
                raise self._bad_value(value, "is neither True nor False")
            return int(value)
        if self.kind == "string":
            raise self._bad_value(value, "is a string: it has no number line")
        if not isinstance(value, int | float | Real) or isinstance(value, bool):
            raise self._bad_value(value, f"is not a number; {self.name} is {self.range_text}")
        if self.kind == "float":
            number = _as_float(value)
        elif isinstance(value, Integral) or _as_float(value).is_integer():
            number = int(value)  # type: ignore[arg-type]
        else:
            raise self._bad_value(value, f"is not a whole number; {self.name} is {self.range_text}")
        if not self.min <= number <= self.max:  # NaN too
            raise self._bad_value(value, f"is outside the range; {self.name} is {self.range_text}")
        return number

    def point(self, value: object) -> int | float | str:
        """What constraints compare: a value's number, or the string itself."""
        if self.kind != "string":
            return self.number(value)
        if not isinstance(value, str):
            raise self._bad_value(value, "is not a string")
        if not is_unicode(value):
            raise self._bad_value(value, "is not valid Unicode")
        return value

    def point_of(self, event: Mapping[str, object]) -> int | float | str:
        """The point of an event's value of this attribute."""
        try:
            value = event[self.name]
        except KeyError:
            raise BadValue(f"{self.name} is missing; it is {self.range_text}") from None
        return self.point(value) if self.kind == "string" else self.number(value)  # one call less for numbers

    def value(self, point: int | float | str) -> object:
        """The value at a point: the inverse of `point`."""
        if self.kind == "enum":
            return self.values[int(point)]
        if self.kind == "bool":
            return bool(point)
        return {"int": int, "float": float, "string": str}[self.kind](point)

    @property
    def range_text(self) -> str:
        """What its values are, for people: `an int from 0 to 1023`."""
        if self.kind in ("int", "float"):
            return f"{'an' if self.kind == 'int' else 'a'} {self.kind} from {self.min} to {self.max}"
        if self.kind == "enum":
            return f"one of {listed(self.values)}"
        return "True or False" if self.kind == "bool" else "a string"

    def _bad_value(self, value: object, what: str) -> BadValue:
        return BadValue(f"{self.name} = {shown(value)} {what}")


@dataclass(frozen=True)
class Schema:
    """The attributes of a content space, in order.

    >>> schema = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
    >>> schema.names, schema["price"].resolution
    (('price', 'live'), 10)
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise BadSchema("a schema has at least one attribute")
        if len(set(self.names)) < len(self.names):
            raise BadSchema(f"attributes have different names, not {listed(self.names)}")

    @classmethod
    def parse(cls, table: object) -> Schema:
        """A schema from the `[schema]` table of a scenario, or from what `to_json` gave."""
        if not isinstance(table, Mapping):
            raise BadSchema(f"{shown(table)} is not a table of attributes")
        return cls(tuple(Attribute.parse(name, spec) for name, spec in table.items()))

    def to_json(self) -> dict[str, Any]:
        return {attribute.name: attribute.to_json() for attribute in self.attributes}

    @cached_property
    def digest(self) -> str:
        """A name for this very schema: equal schemas have equal digests, on any machine."""
        canonical = json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=True)
        return hashlib.blake2b(canonical.encode("ascii"), digest_size=16).hexdigest()

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each attribute stands, by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def whole(self) -> Box:
        """The box of all events."""
        return tuple(attribute.whole for attribute in self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        position = self.positions.get(name)
        if position is None:
            raise BadValue(f"there is no attribute {shown(name)}{nearest_of(name, self.names)}")
        return self.attributes[position]

    def __contains__(self, name: object) -> bool:
        return name in self.positions

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)


def shown(value: object, limit: int = 60) -> str:
    """A value as an error shows it: never long, never failing."""
    try:
        text = repr(value)
    except Exception:  # an int of thousands of digits, an object that cannot show itself
        return f"a huge {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def listed(values: Iterable[str], limit: int = 8) -> str:
    """The first few values, as an error lists them: `buy, sell, …`."""
    few = [value if len(value) <= 40 else f"{value[:39]}…" for value in islice(values, limit + 1)]
    return ", ".join(few[:limit] + ["…"] * (len(few) > limit))


def nearest_of(name: str, known: Iterable[str]) -> str:
    """`nearest`, bounded: among the first thousand names, and for a name that is not too long."""
    return nearest(name, islice(known, 1000)) if len(name) <= 100 else ""


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bad(name: object, message: str) -> BadSchema:
    return BadSchema(message, place=f"attribute {name if isinstance(name, str) else shown(name)}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise _bad(name, "an attribute's name is made of letters, digits and _, and starts with no digit")
    if keyword.iskeyword(name):
        raise _bad(name, f"{name!r} is a word of the filter language; an attribute needs another name")
    if unicodedata.normalize("NFKC", name) != name:
        raise _bad(
            name, f"write the name as {unicodedata.normalize('NFKC', name)!r}, as filters will read it"
        )
    if name in RESERVED:
        raise _bad(name, f"events have a column {name!r} of their own; an attribute needs another name")


def _check_kind(name: str, kind: object) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise _bad(name, f"type {shown(kind)} is none of {', '.join(KINDS)}{nearest_of(str(kind), KINDS)}")


def _check_int_range(name: str, low: Any, high: Any) -> None:
    for key, end in (("min", low), ("max", high)):
        if not isinstance(end, int) or isinstance(end, bool):
            raise _bad(name, f"{key} = {shown(end)} is not an integer")
        if abs(end) > LARGEST_INT:
            raise _bad(name, f"{key} = {shown(end)} is beyond ±2^53 ({LARGEST_INT})")
    if low > high:
        raise _bad(name, f"min = {low} is above max = {high}")


def _check_float_range(name: str, low: Any, high: Any) -> None:
    for key, end in (("min", low), ("max", high)):
        if not isinstance(end, int | float) or isinstance(end, bool):
            raise _bad(name, f"{key} = {shown(end)} is not a number")
        if not math.isfinite(_as_float(end)):
            raise _bad(name, f"{key} = {shown(end)} is not finite")
    if not _as_float(low) < _as_float(high):
        raise _bad(name, f"min = {low} is not below max = {high}")


def _check_values(name: str, values: object) -> None:
    if not isinstance(values, list | tuple) or not values:
        raise _bad(name, f"values = {shown(values)} is not a list of one or more texts")
    for value in values:
        if not isinstance(value, str) or not is_unicode(value):
            raise _bad(name, f"the value {shown(value)} is not a text")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise _bad(name, f"the value {shown(twice)} stands twice")


def _ends(kind: str, values: tuple[str, ...]) -> tuple[int, int]:
    return 0, {"enum": len(values) - 1, "bool": 1, "string": 2**STRING_BITS - 1}[kind]


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
