"""What hosts ask of the control plane."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import Enum

from flowsieve.content.filter import Filter
from flowsieve.flow.tables.compiler import Side


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
        """What ends what this adds, or adds again what this ends."""
        return Op(f"un{self.value}" if self.adding else self.value.removeprefix("un"))


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a host; only those that add something carry a filter."""

    op: Op
    id: str
    host: str
    filter: Filter | None = None

    def __post_init__(self) -> None:
        assert (self.filter is not None) == self.op.adding, "a filter is for a request that adds something"


def free_id(start: str, taken: Container[str], numbers: Iterable[int]) -> str:
    """An id that is not taken: the start and the first of the numbers that makes it so."""
    return next(id for n in numbers if (id := f"{start}-{n}") not in taken)
