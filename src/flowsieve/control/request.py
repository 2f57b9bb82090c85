"""What hosts ask of the control plane."""

from __future__ import annotations

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
        """The op that ends what this one adds, or adds what this one ends."""
        return _REVERSE[self]


_REVERSE = {
    Op.ADVERTISE: Op.UNADVERTISE,
    Op.SUBSCRIBE: Op.UNSUBSCRIBE,
    Op.UNADVERTISE: Op.ADVERTISE,
    Op.UNSUBSCRIBE: Op.SUBSCRIBE,
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a host; only those that add something carry a filter."""

    op: Op
    id: str
    host: str
    filter: Filter | None = None

    def __post_init__(self) -> None:
        assert (self.filter is not None) == self.op.adding, "a filter is for a request that adds something"
