"""A journal that goes through a transition: whoever reads it is where the one was who wrote it, after every entry."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import (
    Asked,
    CrossingBegun,
    CrossingEnded,
    CrossingEntered,
    Entry,
    IndexLeft,
    Past,
    Rewired,
)
from flowsieve.control.memory.recovery import advance, recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 63} for name in ("a", "b")})
NETWORK = ring(5)
PLAN = RegularPlan.make(SCHEMA)
OLD = ServedIndex(0, POOLS["ipv6"][0], PLAN)
NEW = OLD.follower(RegularPlan.make(SCHEMA, bits=4, dimensions=["b"]))


def asked(op: Op, name: str, host: str, text: str | None = None) -> Asked:
    return Asked(Request(op, name, host, None if text is None else Filter.parse(text, SCHEMA)))


LIFE: list[Entry] = [
    asked(Op.ADVERTISE, "p", "h0", "True"),
    asked(Op.SUBSCRIBE, "x", "h2", "a < 20 and b > 3"),
    CrossingBegun(OLD, NEW, True, TreeMap.spread(NETWORK, 2)),
    asked(Op.SUBSCRIBE, "y", "h3", "b == 7"),
    CrossingEntered(CrossingPhase.INSTALL),
    Rewired(frozenset([frozenset(["s0", "s1"])])),
    asked(Op.UNSUBSCRIBE, "x", "h2"),
    CrossingEntered(CrossingPhase.SWITCH),
    asked(Op.SUBSCRIBE, "z", "h1", "a >= 40"),
    CrossingEntered(CrossingPhase.FENCE),
    CrossingEntered(CrossingPhase.CLEAR),
    CrossingEnded(True),
    asked(Op.ADVERTISE, "q", "h4", "b < 9"),
    IndexLeft(0),
]
BACK: list[Entry] = [*LIFE[:7], CrossingEnded(False), asked(Op.SUBSCRIBE, "w", "h1", "a == 3")]


def made(capacity: int | None, trees: TreeMap | None = None) -> ControlState:
    return ControlState(NETWORK, PLAN, trees, Settings(capacity=capacity))


def meaning(state: ControlState) -> tuple[object, ...]:
    tables: Mapping[str, object] = {switch: state.table(switch) for switch in NETWORK.switches}
    crossing = None if state.crossing is None else state.crossing.name
    return tables, crossing, state.index, state.retired, state.before, state.trees, state.plan


@pytest.mark.parametrize("capacity", [None, 6])
@pytest.mark.parametrize("life", [LIFE, BACK])
def test_whoever_reads_it_is_where_the_writer_was_whenever_a_snapshot_was_taken(
    life: list[Entry], capacity: int | None
) -> None:
    live, ledger = recover(Past(), lambda trees: made(capacity, trees))
    for number, entry in enumerate(life):
        kept = json.loads(json.dumps(snapshot(live, ledger)))
        live = advance(live, ledger, [entry])
        again, _ = recover(Past(kept, [entry]), lambda trees: made(capacity, trees))
        assert meaning(again) == meaning(live), (number, entry)
        if capacity is None:
            whole, _ = recover(Past(None, life[: number + 1]), lambda trees: made(capacity, trees))
            assert meaning(whole) == meaning(live), (number, entry)


def test_in_the_end_one_index_is_in_force_and_its_tables_are_those_that_it_makes_alone() -> None:
    there, _ = recover(Past(None, LIFE), lambda trees: made(None, trees))
    assert (there.index, there.crossing, there.retired, there.before) == (NEW, None, (), OLD)
    back, _ = recover(Past(None, BACK), lambda trees: made(None, trees))
    assert (back.index, back.crossing, back.retired) == (OLD, None, ())
    alone = ControlState(NETWORK, PLAN, back.trees)
    alone.restore([Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA))])
    alone.step([entry.request for entry in (BACK[3], BACK[8]) if isinstance(entry, Asked)])
    assert {s: alone.table(s) for s in NETWORK.switches} == {s: back.table(s) for s in NETWORK.switches}
