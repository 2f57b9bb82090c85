"""The difference between two flow tables, and the orders in which it may be carried out.

Both orders keep every port that a packet is sent to before and after, at every moment (design: what keeps it correct, 5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from flowsieve.flow.entry import Flow, Match

Table = Mapping[tuple[Match, int], Flow]


class Kind(Enum):
    INSTALL = "install"
    MODIFY = "modify"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FlowOp:
    """One operation on one table."""

    kind: Kind
    flow: Flow


@dataclass(frozen=True, slots=True)
class FlowDiff:
    """What turns one table into another; `modify` holds the new flows."""

    install: tuple[Flow, ...] = field(default=())
    modify: tuple[Flow, ...] = field(default=())
    remove: tuple[Flow, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.install) + len(self.modify) + len(self.remove)

    def __iter__(self) -> Iterator[FlowOp]:
        yield from (FlowOp(Kind.INSTALL, flow) for flow in self.install)
        yield from (FlowOp(Kind.MODIFY, flow) for flow in self.modify)
        yield from (FlowOp(Kind.REMOVE, flow) for flow in self.remove)


def difference(old: Table, new: Table) -> FlowDiff:
    """The smallest set of operations from `old` to `new`."""
    return FlowDiff(
        install=tuple(flow for key, flow in new.items() if key not in old),
        modify=tuple(flow for key, flow in new.items() if key in old and old[key] != flow),
        remove=tuple(flow for key, flow in old.items() if key not in new),
    )
