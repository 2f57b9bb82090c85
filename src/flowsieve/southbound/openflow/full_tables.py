"""What a switch that refused an entry had room for; it does not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsieve.errors import TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.southbound.openflow.entries import SwitchEntry
from flowsieve.southbound.openflow.packed import match_bytes
from flowsieve.southbound.openflow.wire import CONTENT_TABLE


def full_table(switch: str, entries: Iterable[SwitchEntry], ops: Sequence[FlowOp], at: int) -> TableFull:
    """What to make of a batch that was refused as a whole since a table was full when it came to one operation.

    The table had room for what the owner held in it at that moment: the `entries` that are there without the batch, and
    what was done before that one.
    """
    refused = ops[at].flow
    held = {
        (entry.match, entry.priority)
        for entry in entries
        if entry.table == refused.table and entry.owner == refused.owner and not entry.service
    }
    for op in ops[:at]:
        key = match_bytes(op.flow.match), op.flow.priority
        if op.flow.table != refused.table:
            continue
        if op.kind is OpKind.INSTALL:
            held.add(key)
        elif op.kind is OpKind.REMOVE:
            held.discard(key)
    table = None if refused.table == CONTENT_TABLE else refused.table
    return TableFull(switch=switch, needed=len(held) + 1, capacity=len(held), at=at, table=table)
