"""The order in which one table's changes are carried out, so that nothing served before and after is lost in between.

With room for old and new entries together: install and modify the longest prefixes first, then remove the
shortest first. When tight: an entry over the changed region is widened to all ports that any part of the
region has before or after, what changes below it is removed, the new entries are added, and the covering
entry gets its final form. That needs one entry of room; in a table that is full to the last entry, one is made
by widening an entry that covers another and removing that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.flow.diff import Change, Table, apply_changes, changes_between
from flowsieve.index.dz import Dz


def ordered(
    old: Table, changes: Sequence[Change], capacity: int | None = None, within: Sequence[Dz] = ()
) -> list[Change]:
    """The changes as single steps in a safe order that never holds more than `capacity` entries.

    `within` are the partitions, which a covering entry must not leave.
    """
    added = sum(change.old is None for change in changes)
    if capacity is None or len(old) + added <= capacity:
        return roomy(changes)
    parts = [[change for change in changes if part.covers(change.dz)] for part in within or [Dz(0, 0)]]
    # What shrinks first: room that one part gives up is there for the next.
    parts.sort(key=lambda part: sum((change.new is not None) - (change.old is not None) for change in part))
    table, steps = dict(old), []
    for part in parts:
        if part:
            added = sum(change.old is None for change in part)
            steps += roomy(part) if len(table) + added <= capacity else tight(table, part, capacity)
            apply_changes(table, part)
    return steps


def roomy(changes: Sequence[Change]) -> list[Change]:
    """Install and modify longest first, remove shortest first."""
    set_first = sorted((c for c in changes if c.new is not None), key=lambda c: (-c.dz.length, c.dz.bits))
    removed = sorted((c for c in changes if c.new is None), key=lambda c: (c.dz.length, c.dz.bits))
    return set_first + removed


def tight(old: Table, changes: Sequence[Change], capacity: int) -> list[Change]:
    """Widen a covering entry, remove what it covers, add the finer ones, then narrow it again."""
    top = common_prefix([change.dz for change in changes])
    new = dict(old)
    apply_changes(new, changes)
    if top not in old and len(old) >= capacity > 1:
        first = make_room(old, top)
        roomier = dict(old)
        apply_changes(roomier, first)
        return first + tight(roomier, changes_between(roomier, new), capacity)
    below_old = {dz for dz in old if top.covers(dz) and dz != top}
    below_new = {dz for dz in new if top.covers(dz) and dz != top}
    changed = [change.dz for change in changes if change.dz != top]
    # An entry that covers a changed one would catch its packets while it is away, so it goes and comes back
    # too.
    disturbed = {dz for dz in below_old | below_new if any(dz.covers(other) for other in changed)}
    wide = {port for dz in below_old for port in old[dz]} | {port for dz in below_new for port in new[dz]}
    for table in (old, new):
        holding = [dz for dz in table if dz.covers(top)]
        if holding:
            wide |= set(table[max(holding, key=lambda dz: dz.length)])
    cover = tuple(sorted(wide))
    steps = [Change(top, old.get(top), cover)] if old.get(top) != cover else []
    steps += roomy([Change(dz, old[dz], None) for dz in disturbed & below_old])
    steps += roomy([Change(dz, None, new[dz]) for dz in disturbed & below_new])
    if new.get(top) != cover:
        steps.append(Change(top, cover, new.get(top)))
    return steps


def make_room(table: Table, top: Dz) -> list[Change]:
    """Give up an entry: one that another covers, which is widened first.

    Where no entry covers another, one below `top` goes; then only a switch that carries out all steps at once
    loses nothing.
    """
    for dz, ports in sorted(table.items(), key=lambda entry: -entry[0].length):
        above = max((a for a in table if a != dz and a.covers(dz)), key=lambda a: a.length, default=None)
        if above is not None:
            wide = tuple(sorted({*table[above], *ports}))
            widened = [Change(above, table[above], wide)] if wide != table[above] else []
            return [*widened, Change(dz, ports, None)]
    victim = next((dz for dz in table if top.covers(dz)), next(iter(table)))
    return [Change(victim, table[victim], None)]


def common_prefix(cells: Sequence[Dz]) -> Dz:
    """The smallest cell that covers them all."""
    top = cells[0]
    for dz in cells[1:]:
        length = min(top.length, dz.length)
        apart = top.bits >> (top.length - length) ^ dz.bits >> (dz.length - length)
        length -= apart.bit_length()
        top = Dz(top.bits >> (top.length - length), length)
    return top
