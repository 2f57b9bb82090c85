"""One switch's table and counters."""

import pytest

from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.embedded.switch import Switch

ADDRESS = 0xFF0E_C800 << 96


def flow(prefix: str, *ports: int, priority: int = 1000) -> Flow:
    return Flow(PrefixMatch(Prefix.parse(prefix)), priority, tuple(map(Output, ports)))


def switch(*flows: Flow, capacity: int | None = None) -> Switch:
    made = Switch("s1", 4, capacity)
    for each in flows:
        made.carry_out(FlowOp(OpKind.INSTALL, each))
    return made


def test_a_packet_that_no_entry_matches_meets_nothing():
    assert switch(flow("ff0e::/17", 1)).look_up(6, ADDRESS) is None


def test_the_highest_priority_wins_and_then_the_longest_prefix():
    whole, half, other = flow("ff0e::/16", 1), flow("ff0e:8000::/17", 2), flow("ff0e::/15", 3, priority=1001)
    assert switch(whole, half).look_up(6, ADDRESS) == half
    assert switch(whole, half, other).look_up(6, ADDRESS) == other


def test_removing_an_entry_uncovers_the_one_below():
    whole, half = flow("ff0e::/16", 1), flow("ff0e:8000::/17", 2, priority=1001)
    s1 = switch(whole, half)
    s1.carry_out(FlowOp(OpKind.REMOVE, half))
    assert s1.look_up(6, ADDRESS) == whole
    assert s1.flows == (whole,)


def test_an_install_with_the_same_key_replaces_and_keeps_the_counter():
    s1 = switch(flow("ff0e::/16", 1))
    s1.count(flow("ff0e::/16", 1), 3)
    s1.carry_out(FlowOp(OpKind.INSTALL, flow("ff0e::/16", 2)))
    assert s1.flows == (flow("ff0e::/16", 2),)
    assert list(s1.packets.values()) == [3]


def test_a_modify_keeps_the_counter_and_a_remove_forgets_it():
    s1, changed = switch(flow("ff0e::/16", 1)), flow("ff0e::/16", 1, 2)
    s1.count(changed)
    s1.carry_out(FlowOp(OpKind.MODIFY, changed))
    assert s1.packets == {changed.key: 1}
    s1.carry_out(FlowOp(OpKind.REMOVE, changed))
    s1.carry_out(FlowOp(OpKind.INSTALL, changed))
    assert s1.packets == {changed.key: 0}


@pytest.mark.parametrize("kind", [OpKind.MODIFY, OpKind.REMOVE])
def test_modifying_or_removing_what_is_not_there_does_nothing(kind):
    s1 = switch(flow("ff0e::/16", 1))
    s1.carry_out(FlowOp(kind, flow("ff0e::/17", 2)))
    assert s1.flows == (flow("ff0e::/16", 1),)


def test_a_full_table_refuses_a_new_entry_and_takes_a_replacement():
    s1 = switch(flow("ff0e::/16", 1), capacity=1)
    with pytest.raises(TableFull) as refusal:
        s1.carry_out(FlowOp(OpKind.INSTALL, flow("ff0e::/17", 1)))
    assert (refusal.value.switch, refusal.value.needed, refusal.value.capacity) == ("s1", 2, 1)
    s1.carry_out(FlowOp(OpKind.INSTALL, flow("ff0e::/16", 2)))
    assert s1.flows == (flow("ff0e::/16", 2),)


def test_the_peak_is_the_fullest_it_ever_was():
    first, second = flow("ff0e::/16", 1), flow("ff0e::/17", 1)
    s1 = switch(first, second)
    s1.carry_out(FlowOp(OpKind.REMOVE, first))
    s1.carry_out(FlowOp(OpKind.REMOVE, second))
    s1.carry_out(FlowOp(OpKind.INSTALL, first))
    assert s1.peak == 2


@pytest.mark.parametrize(("ports", "says"), [((5,), "no port 5"), ((0,), "no port 0"), ((1, 1), "twice")])
def test_an_entry_that_its_ports_cannot_serve_is_refused(ports, says):
    s1 = switch()
    with pytest.raises(SwitchError, match=says):
        s1.carry_out(FlowOp(OpKind.INSTALL, flow("ff0e::/16", *ports)))
    assert s1.flows == ()


def test_the_flat_table_follows_a_change():
    s1 = switch(flow("ff0e::/16", 1))
    before = s1.flat(6)
    assert s1.flat(6) is before
    s1.carry_out(FlowOp(OpKind.MODIFY, flow("ff0e::/16", 2)))
    assert s1.flat(6).ports.max() == 0b10
