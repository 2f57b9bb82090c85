"""The two tables of a switch: events are admitted in the first and sent on in the second.

A controller of before had its content entries in the first. They are taken over at once and as they are: what packets
meet there is what they meet in the second table from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from flowsieve.header.address import Prefix
from flowsieve.southbound.openflow.entries import SwitchEntry, within
from flowsieve.southbound.openflow.wire import ADMISSION_TABLE, CONTENT_TABLE


class Sorting(NamedTuple):
    """The content entries of a switch: those to keep, to take over from the first table, and to remove."""

    keep: tuple[SwitchEntry, ...]
    take_over: tuple[SwitchEntry, ...]
    remove: tuple[SwitchEntry, ...]


def sorted_out(entries: Iterable[SwitchEntry], groups: Iterable[Prefix]) -> Sorting:
    """What becomes of the entries that are ours or within our groups; what no `Flow` can describe is removed.

    Entries of an owner in the first table come before those in the second, and take their place.
    """
    ours = within(entries, groups)
    first = [entry for entry in ours if entry.table == ADMISSION_TABLE]
    old = [entry for entry in first if entry.owner is not None and entry.flow is not None]
    owners = {entry.owner for entry in old}
    take_over = tuple(entry._replace(table=CONTENT_TABLE) for entry in old)
    replaced = {(entry.match, entry.priority) for entry in take_over}
    keep: list[SwitchEntry] = []
    remove: list[SwitchEntry] = []
    for entry in ours:
        if entry.table == CONTENT_TABLE and (entry.match, entry.priority) not in replaced:
            stale = entry.owner is not None and entry.owner in owners
            (remove if stale or entry.flow is None else keep).append(entry)
    return Sorting(tuple(keep), take_over, (*remove, *first))
