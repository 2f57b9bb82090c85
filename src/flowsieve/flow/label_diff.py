"""What makes a table of labels another one, in an order in which no packet is lost or sent twice on the way.

Entries are changed in one batch, which a switch makes at once; the order matters to one that does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.header.address import Prefix


def label_ops(held: Iterable[Flow], wanted: Sequence[Flow]) -> list[FlowOp]:
    """The smallest difference: what is new, in the order of `wanted`, then what is to go.

    Tables come last one first, so a packet is handed on when all that it comes to is there.
    """
    there, right = {flow.key: flow for flow in held}, {flow.key for flow in wanted}
    ops = []
    for flow in wanted:
        if flow.key not in there:
            ops.append(FlowOp(OpKind.INSTALL, flow))
        elif flow != there[flow.key] or flow.owner != there[flow.key].owner:
            ops.append(FlowOp(OpKind.MODIFY, flow))
    return ops + [FlowOp(OpKind.REMOVE, flow) for key, flow in there.items() if key not in right]


def within(group: Prefix, flows: Iterable[Flow]) -> list[Flow]:
    """The entries that are for labels of a group; all others stay as they are."""
    return [flow for flow in flows if flow.match.within(group)]


def size_after(size: int, ops: Iterable[FlowOp]) -> int:
    """How many entries a table has after some operations."""
    return size + sum((op.kind is OpKind.INSTALL) - (op.kind is OpKind.REMOVE) for op in ops)
