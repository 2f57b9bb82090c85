"""The tables of a switch: events are admitted in the first and sent on in the second, labels also in later ones.

A controller of before had its content entries in the first. They are taken over at once and as they are: what packets
meet there is what they meet in the second table from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from flowsieve.flow.entry import Flow
from flowsieve.southbound.openflow.entries import SwitchEntry
from flowsieve.southbound.openflow.wire import ADMISSION_TABLE, CONTENT_TABLE


class Sorting(NamedTuple):
    """The content entries of a switch: what stays of them, those to take over from the first table, and to remove."""

    flows: tuple[Flow, ...]
    take_over: tuple[SwitchEntry, ...]
    remove: tuple[SwitchEntry, ...]


def sorted_out(entries: Sequence[SwitchEntry], flows: Sequence[Flow | None]) -> Sorting:
    """What becomes of entries that are ours or within our groups; what no `Flow` can describe is removed.

    Entries of an owner in the first table come before those in the second, and take their place.
    """
    said = list(zip(entries, flows, strict=True))
    first = [(entry, flow) for entry, flow in said if entry.table == ADMISSION_TABLE]
    old = [
        (entry, flow)
        for entry, flow in first
        if entry.owner is not None and flow is not None and flow.onward is None
    ]
    owners = {entry.owner for entry, _ in old}
    replaced = {(entry.match, entry.priority) for entry, _ in old}
    keep = [replace(flow, table=CONTENT_TABLE) for _, flow in old]
    remove: list[SwitchEntry] = []
    for entry, flow in said:
        taken_over = entry.table == CONTENT_TABLE and (entry.match, entry.priority) in replaced
        if entry.table != ADMISSION_TABLE and not taken_over:
            if flow is None or (entry.owner is not None and entry.owner in owners):
                remove.append(entry)
            else:
                keep.append(flow)
    take_over = tuple(entry._replace(table=CONTENT_TABLE) for entry, _ in old)
    return Sorting(tuple(keep), take_over, (*remove, *(entry for entry, _ in first)))
