"""Steps as the operations that they are: made for whoever looks, and looked at once for each kind."""

from __future__ import annotations

import pytest

from flowsieve.flow.diff import Change, FlowOp, OpKind, flow_op
from flowsieve.flow.entry import Action, Deliver, Output
from flowsieve.flow.entry_steps import MOST_REMEMBERED, EntrySteps, PortActions, Sample, removes
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz

ENCODING = encoding_of("ipv6")
DELIVERIES = {2: Deliver(2, 7, Prefix(6, 7, 128))}
CHANGES = [
    Change(Dz.parse("01"), None, (1, 2)),
    Change(Dz.parse("11"), (1,), (1, 2)),
    Change(Dz.parse("0"), (1, 2), ()),
    Change(Dz.parse("1"), (2,), None),
]


def steps(changes: list[Change] = CHANGES) -> EntrySteps:
    return EntrySteps(changes, ENCODING, PortActions(DELIVERIES))


def test_steps_are_the_operations_of_their_changes() -> None:
    plain = [flow_op(change, ENCODING, DELIVERIES) for change in CHANGES]
    assert list(steps()) == [steps()[i] for i in range(len(CHANGES))] == plain
    assert (list(steps()[1:3]), steps()[-1]) == (plain[1:3], plain[-1])
    assert isinstance(steps()[1:3], EntrySteps)


def test_steps_remove_where_one_of_them_does() -> None:
    assert [removes(steps()), removes(steps(CHANGES[:3])), removes(steps([]))] == [True, False, False]
    assert [removes(list(steps())), removes([])] == [True, False]


def test_actions_that_are_translated_are_those_of_the_other_switch() -> None:
    def moved(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        return tuple(Output(action.port + 10) for action in actions)

    there = steps().acting(PortActions.translated(PortActions(DELIVERIES), moved))
    assert [op.flow.ports for op in there] == [(11, 12), (11, 12), (), (12,)]
    assert [op.kind for op in there] == [op.kind for op in steps()]


def test_each_kind_of_entry_is_looked_at_once_unless_something_was_wrong_with_it() -> None:
    seen: set[Sample] = set()
    assert [op.kind for op in steps().samples(seen)] == [OpKind.INSTALL, OpKind.MODIFY, OpKind.REMOVE]
    assert list(steps().samples(seen)) == []

    def refuse(op: FlowOp) -> None:
        raise ValueError(op)

    seen = set()
    for _ in range(2):
        with pytest.raises(ValueError):
            for op in steps().samples(seen):
                refuse(op)


def test_more_port_sets_than_are_remembered_have_their_actions() -> None:
    actions = PortActions()
    for port in range(1, MOST_REMEMBERED + 10):
        assert actions[(port,)] == (Output(port),)
    assert len(actions) <= MOST_REMEMBERED
    assert actions[(1,)] == (Output(1),)
