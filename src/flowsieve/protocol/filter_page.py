"""What a publisher's host is told of others' filters, where packets name receivers: versioned state, page by page.

A host says what it holds (`HeldVersion`), and is told what is new since then, or all of it again. With the last page of
a version it may publish for a `lease` of so many seconds, counted from when it asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class FilterPacking(NamedTuple):
    """How filters stand in packets that are Bloom filters of them: bits of each, filters of a packet, most packets."""

    bits: int
    filters: int
    packets: int | None

    @classmethod
    def parse(cls, data: object) -> FilterPacking | None:
        """What `to_json` of a page wrote down; ValueError if it is none."""
        if data is None:
            return None
        if not isinstance(data, list) or len(data) != len(cls._fields):
            raise ValueError("packing is a list of three")
        bits, filters, packets = data
        if not all(_is_count(each) and each for each in (bits, filters)) or not (
            packets is None or (_is_count(packets) and packets)
        ):
            raise ValueError("packing is of whole numbers from 1 on")
        return cls(bits, filters, packets)


@dataclass(frozen=True, slots=True)
class FilterPage:
    """A step to a version: rows that are wanted from now on, and rows that are not any more.

    `anew` says that nothing which was held before counts. With `more`, another page of the same version follows.
    `set_bits` of an address tell the number of a set of receivers, whose bits follow: receiver n of `per_set` is in set
    n // per_set. A `lease` of 0 is none. Where packets have the bits of filters instead, `packing` says how.
    """

    epoch: str
    version: int
    anew: bool
    more: bool
    add: tuple[Row, ...]
    remove: tuple[Row, ...]
    set_bits: int
    lease: float = 0.0
    packing: FilterPacking | None = None

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
            "packing": None if self.packing is None else list(self.packing),
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
                FilterPacking.parse(data.get("packing")),
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
