"""What hosts, and other endpoints, ask of the control plane."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from types import NoneType

from flowsieve.content.filter import Filter
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import DzSet


class Op(Enum):
    """What a request does; the value is its name in a file of requests."""

    ADVERTISE = "adv"
    SUBSCRIBE = "sub"
    UNADVERTISE = "unadv"
    UNSUBSCRIBE = "unsub"

    side: Side
    adding: bool

    def __init__(self, name: str) -> None:
        self.side = Side.PUBLISHER if name.endswith("adv") else Side.SUBSCRIBER
        self.adding = not name.startswith("un")

    __hash__ = object.__hash__  # there is one of each

    @property
    def reverse(self) -> Op:
        """The op that ends what this one adds, or adds what this one ends."""
        return Op(f"un{self.value}" if self.adding else self.value.removeprefix("un"))


@dataclass(frozen=True, slots=True)
class Request:
    """One request of an endpoint. One that adds something says what: a filter, or dz where there is no filter text."""

    op: Op
    id: str
    endpoint: str
    filter: Filter | None = None
    dz: DzSet | None = None

    def __post_init__(self) -> None:
        told = (self.filter is not None) + (self.dz is not None)
        assert told == self.op.adding, "a request that adds something has a filter or dz, another neither"

    @property
    def told(self) -> str | list[str] | None:
        """What it asks for, as a JSON value: a filter's text, or dz."""
        if self.filter is not None:
            return self.filter.text
        return None if self.dz is None else self.dz.texts()

    @classmethod
    def read(
        cls, op: Op, id: str, endpoint: str, told: str | list[str] | None, read: Callable[[str], Filter]
    ) -> Request:
        """The request that asks for what was `told`; ValueError where that does not fit the op."""
        if (told is not None) != op.adding or not isinstance(told, str | list | NoneType):
            raise ValueError(f"{op.value} that asks for {told!r}")
        if isinstance(told, list):
            return cls(op, id, endpoint, dz=DzSet.of(told))
        return cls(op, id, endpoint, None if told is None else read(told))


def free_id(start: str, taken: Container[str], numbers: Iterable[int]) -> str:
    """An id that is not taken: the start and the first of the numbers that makes it so."""
    return next(id for n in numbers if (id := f"{start}-{n}") not in taken)


def broad_first(kinds: Sequence[Hashable], breadth: Callable[[int], float]) -> list[int]:
    """An order in which to serve requests one by one: of those of one kind that follow each other, broad ones first.

    What is broad makes entries that narrow ones then do without. Requests of different kinds never swap.

    >>> broad_first(["sub", "sub", "unsub", "sub", "sub"], [1, 2, 3, 4, 5].__getitem__)
    [1, 0, 2, 4, 3]
    """
    runs = groupby(range(len(kinds)), key=lambda at: kinds[at])
    return [at for _, run in runs for at in sorted(run, key=lambda at: -breadth(at))]
