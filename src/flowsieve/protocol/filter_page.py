"""What a publisher's host is told of others' filters, where packets name receivers: versioned state, page by page.

A host says what it holds (`HeldVersion`), and is told what is new since then, or all of it again. With the last page of
a version it may publish for a `lease` of so many seconds, counted from when it asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.errors import BadMessage
from flowsieve.protocol.limits import LONGEST_FILTER, LONGEST_LEASE, LONGEST_NAME, MAX_NUMBER

MOST_RECEIVERS = 1 << 21  # numbers that receivers can have
Row = tuple[str, tuple[int, ...]]  # a filter's text, and the numbers of receivers


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """The version that a host holds, of a controller's `epoch`; while it is being told that of which it has `rows`."""

    epoch: str
    version: int
    rows: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "version": self.version, "rows": self.rows}

    @classmethod
    def parse(cls, data: object) -> HeldVersion:
        """What `to_json` wrote down, or BadMessage."""
        if isinstance(data, Mapping):
            epoch, numbers = data.get("epoch"), (data.get("version"), data.get("rows"))
            if isinstance(epoch, str) and len(epoch) <= LONGEST_NAME and all(map(_is_count, numbers)):
                return cls(epoch, *numbers)  # type: ignore[arg-type]
        raise BadMessage(
            "held has an epoch, which is a text, and a version and rows, which are whole numbers"
        )


@dataclass(frozen=True, slots=True)
class FilterPage:
    """A step to a version: rows that are wanted from now on, and rows that are not any more.

    `anew` says that nothing which was held before counts. With `more`, another page of the same version follows.
    `set_bits` of an address tell the number of a set of receivers, whose bits follow: receiver n of `per_set` is in set
    n // per_set. A `lease` of 0 is none.
    """

    epoch: str
    version: int
    anew: bool
    more: bool
    add: tuple[Row, ...]
    remove: tuple[Row, ...]
    set_bits: int
    lease: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "version": self.version,
            "anew": self.anew,
            "more": self.more,
            "add": [[text, list(numbers)] for text, numbers in self.add],
            "remove": [[text, list(numbers)] for text, numbers in self.remove],
            "set_bits": self.set_bits,
            "lease": self.lease,
        }

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> FilterPage:
        """What `to_json` wrote down, or BadMessage."""
        try:
            lease = float(data["lease"])
            if not isinstance(data["epoch"], str) or not _is_count(data["version"]):
                raise ValueError("neither epoch nor version")
            if not 0 <= lease <= LONGEST_LEASE or not 0 <= int(data["set_bits"]) <= 112:
                raise ValueError("no lease or no bits for sets")
            return cls(
                data["epoch"],
                data["version"],
                bool(data["anew"]),
                bool(data["more"]),
                tuple(_rows(data["add"])),
                tuple(_rows(data["remove"])),
                int(data["set_bits"]),
                lease,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadMessage(f"the controller's filters cannot be read: {error}") from None


def _rows(data: Iterable[Any]) -> Iterable[Row]:
    for text, numbers in data:
        if not isinstance(text, str) or len(text) > LONGEST_FILTER:
            raise ValueError("a filter is a text")
        if not all(type(number) is int and 0 <= number < MOST_RECEIVERS for number in numbers):
            raise ValueError("receivers are numbers")
        yield text, tuple(numbers)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER
