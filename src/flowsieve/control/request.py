"""What hosts ask of the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flowsieve.content.filter import Filter
from flowsieve.flow.compiler import Side


class Op(Enum):
    """What a request does; the value is its name in a file of requests."""

    ADVERTISE = "adv"
    SUBSCRIBE = "sub"
    UNADVERTISE = "unadv"
    UNSUBSCRIBE = "unsub"

    @property
    def side(self) -> Side:
        return Side.PUBLISHER if self in (Op.ADVERTISE, Op.UNADVERTISE) else Side.SUBSCRIBER

    @property
    def adding(self) -> bool:
        return self in (Op.ADVERTISE, Op.SUBSCRIBE)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a host; only those that add something carry a filter."""

    op: Op
    id: str
    host: str
    filter: Filter | None = None

    def __post_init__(self) -> None:
        assert (self.filter is not None) == self.op.adding, "a filter is for a request that adds something"
