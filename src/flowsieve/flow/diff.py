"""Differences between flow tables: in dz and ports as the compiler sees them, and as a switch's operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from flowsieve.flow.entry import NOBODY, Deliver, Flow, content_flow
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz

Ports = tuple[int, ...]
Table = Mapping[Dz, Ports]


class Change(NamedTuple):
    """What happens to one entry: `old` or `new` is None where there is no entry before or after."""

    dz: Dz
    old: Ports | None
    new: Ports | None


def growth(changes: Iterable[Change]) -> int:
    """How many entries more a table has after some changes."""
    return sum((each.old is None) - (each.new is None) for each in changes)


def changes_between(before: Table, after: Table) -> list[Change]:
    """The smallest difference between two tables."""
    gone = [Change(dz, ports, None) for dz, ports in before.items() if dz not in after]
    other = [Change(dz, before.get(dz), ports) for dz, ports in after.items() if before.get(dz) != ports]
    return gone + other


def apply_changes(table: dict[Dz, Ports], changes: Iterable[Change]) -> None:
    """Carry the changes out on a table held as a dictionary."""
    for change in changes:
        if change.new is None:
            del table[change.dz]
        else:
            table[change.dz] = change.new


def net_changes(several: Iterable[Iterable[Change]]) -> list[Change]:
    """What some differences of one table come to, one after the other; what comes to nothing is left out."""
    net: dict[Dz, Change] = {}
    for changes in several:
        for change in changes:
            before = net.get(change.dz)
            net[change.dz] = change if before is None else Change(change.dz, before.old, change.new)
    return [change for change in net.values() if change.old != change.new]


def joined(first: Mapping[str, list[Change]], then: Mapping[str, list[Change]]) -> dict[str, list[Change]]:
    """Two differences per switch, one after the other, as one."""
    both = dict(first)
    for switch, changes in then.items():
        both[switch] = net_changes((first.get(switch, ()), changes))
    return {switch: changes for switch, changes in both.items() if changes}


class OpKind(Enum):
    INSTALL = "install"
    MODIFY = "modify"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FlowOp:
    """One operation on one table; `flow` is the new one, or the one to remove."""

    kind: OpKind
    flow: Flow


def flow_op(change: Change, encoding: Encoding, deliveries: Mapping[int, Deliver] = NOBODY) -> FlowOp:
    """The operation that makes a change."""
    if change.new is None:
        return FlowOp(OpKind.REMOVE, content_flow(encoding, change.dz, change.old or (), deliveries))
    kind = OpKind.INSTALL if change.old is None else OpKind.MODIFY
    return FlowOp(kind, content_flow(encoding, change.dz, change.new, deliveries))
