"""What is asked of a table while its switch is busy, or away, is one net difference, and does not pile up."""

from __future__ import annotations

import random

from flowsieve.content.schema import Schema
from flowsieve.control.state import ControlState
from flowsieve.control.switches.table_work import FEW, DzWork
from flowsieve.flow.diff import Change, Ports, apply_changes, changes_between
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology

ENCODING = encoding_of("ipv6")
SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 1023}})


def work() -> DzWork:
    network = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    state = ControlState(network, RegularPlan.make(SCHEMA, room=ENCODING.room))
    return DzWork("s1", ENCODING, lambda: state, {})


def story(seed: int, rounds: int) -> tuple[list[list[Change]], dict[Dz, Ports]]:
    """Differences of a table of few dz, one after the other, and what it comes to."""
    dice, table, told = random.Random(seed), dict[Dz, Ports](), list[list[Change]]()
    for _ in range(rounds):
        after = {
            Dz(dice.getrandbits(3), 3): tuple(sorted(dice.sample(range(1, 4), 2)))
            for _ in range(dice.randrange(5))
        }
        told.append(changes_between(table, after))
        apply_changes(table, told[-1])
    return told, table


def test_what_is_asked_for_one_after_the_other_is_made_as_one_difference() -> None:
    for seed in range(50):
        told, table = story(seed, 1 + seed % 4)
        one = work()
        for changes in told:
            one.ask(changes)
        steps = one.begin().changes
        assert sorted(steps) == sorted(changes_between({}, table))
        one.acknowledge()
        assert one.size == len(table)
        assert list(one.begin()) == []


def test_what_takes_itself_back_is_not_made() -> None:
    one, dz = work(), Dz.parse("01")
    one.ask([Change(dz, None, (1,))])
    one.ask([Change(dz, (1,), None)])
    assert list(one.begin()) == []


def test_what_waits_for_a_switch_that_is_away_does_not_grow_with_time() -> None:
    one, (told, table) = work(), story(7, 20 * FEW)
    for changes in told:
        one.ask(changes)
        assert sum(map(len, one._pending)) <= FEW + len(changes)
    assert sorted(one.begin().changes) == sorted(changes_between({}, table))
