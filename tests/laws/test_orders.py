"""A difference carried out step by step loses nothing in between, and never exceeds the capacity."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from networks import cells, finest

from flowsieve.flow.diff import Ports, apply_changes, changes_between
from flowsieve.flow.order import ordered
from flowsieve.flow.tables.meaning import look_up
from flowsieve.index.dz import WHOLE_SPACE, Dz

tables = st.dictionaries(
    cells(), st.sets(st.integers(1, 3)).map(lambda ports: tuple(sorted(ports))), max_size=9
)


def kept(table: dict[Dz, Ports], cell: Dz) -> set[int]:
    return set(look_up({dz: frozenset(ports) for dz, ports in table.items()}, cell))


@given(tables, tables, st.booleans())
def test_no_port_that_is_served_before_and_after_is_lost_in_between(
    old: dict[Dz, Ports], new: dict[Dz, Ports], bounded: bool
) -> None:
    capacity = max(len(old), len(new)) + 1 if bounded else None
    always = {cell: kept(old, cell) & kept(new, cell) for cell in finest(WHOLE_SPACE)}
    at_all = {cell: set().union(*map(set, [*old.values(), *new.values()])) for cell in finest(WHOLE_SPACE)}
    table = dict(old)
    for step in ordered(old, changes_between(old, new), capacity):
        assert table.get(step.dz) == step.old
        apply_changes(table, [step])
        assert capacity is None or len(table) <= capacity
        for cell, ports in always.items():
            assert ports <= kept(table, cell) <= at_all[cell]
    assert table == new


@given(tables, tables)
def test_a_covering_entry_stays_within_its_partition(old: dict[Dz, Ports], new: dict[Dz, Ports]) -> None:
    halves = WHOLE_SPACE.children
    old = {dz: ports for dz, ports in old.items() if dz.length}
    new = {dz: ports for dz, ports in new.items() if dz.length}
    capacity = max(len(old), len(new)) + 1
    table = dict(old)
    for step in ordered(old, changes_between(old, new), capacity, halves):
        assert any(half.covers(step.dz) for half in halves)
        apply_changes(table, [step])
        assert len(table) <= capacity
    assert table == new


@given(tables.filter(lambda table: len(table) > 1), tables)
def test_a_table_that_is_full_to_the_last_entry_can_be_changed(
    old: dict[Dz, Ports], new: dict[Dz, Ports]
) -> None:
    capacity = len(old)
    new = dict(list(new.items())[: capacity - 1])
    nested = any(a != b and a.covers(b) for a in old for b in old)
    table = dict(old)
    for step in ordered(old, changes_between(old, new), capacity):
        assert table.get(step.dz) == step.old
        apply_changes(table, [step])
        assert len(table) <= capacity
        if nested:
            for cell in finest(WHOLE_SPACE):
                assert kept(old, cell) & kept(new, cell) <= kept(table, cell)
    assert table == new
