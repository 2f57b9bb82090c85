"""Interests of endpoints that are no hosts, with dz instead of filters, through all of the control plane."""

from __future__ import annotations

import json
from functools import partial

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.memory.journal import Asked, Past, entry_from_json, entry_to_json
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import EndpointKind, Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 255}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
LINE = Topology.make(
    [("s1", "s2"), ("s2", "s3")],
    {"h1": "s1", "north": "s3", "h2": "s2"},
    kinds={"north": EndpointKind.BORDER},
)
REQUESTS = [
    Request(Op.ADVERTISE, "all", "h1", Filter.parse("True", SCHEMA)),
    Request(Op.SUBSCRIBE, "low", "north", dz=DzSet.of("0")),
    Request(Op.ADVERTISE, "from north", "north", dz=DzSet.of("11")),
    Request(Op.SUBSCRIBE, "some", "h2", Filter.parse("a >= 100", SCHEMA)),
]


def controller() -> Controller:
    made = Controller(ControlState(LINE, PLAN), EmbeddedNetwork(LINE), ENCODING)
    assert not made.submit(REQUESTS).refused
    return made


def test_a_border_gets_what_lies_in_its_dz_and_nothing_else() -> None:
    net = controller()
    assert net.verify().holds
    for value, reached in ((3, ("north",)), (110, ("north", "h2")), (200, ("h2",))):
        assert net.explain("h1", {"a": value}).delivered == reached


def test_what_a_border_sends_in_is_carried_if_it_lies_in_its_dz() -> None:
    net = controller()
    assert net.explain("north", {"a": 250}).delivered == ("h2",)
    assert not net.explain("north", {"a": 110}).published


def test_a_loss_for_a_border_is_proved() -> None:
    net = controller()
    tables = {**net.tables(), "s3": ()}
    verdict = net.verify(tables)
    assert (verdict.holds, verdict.false_negatives) == (False, 2)
    assert verdict.witness is not None and verdict.witness.publisher in ("h1", "north")


def test_requests_with_dz_survive_journal_and_snapshot() -> None:
    state = controller().state
    make = partial(ControlState, LINE, PLAN)
    entries = [json.loads(json.dumps(entry_to_json(Asked(request)))) for request in REQUESTS]
    replayed, _ = recover(Past(None, [entry_from_json(entry, SCHEMA) for entry in entries]), make)
    restored, _ = recover(Past(json.loads(json.dumps(snapshot(state, Ledger())))), make)
    for other in (replayed, restored):
        assert other.subscriptions == state.subscriptions
        assert {switch: other.table(switch) for switch in LINE.switches} == {
            switch: state.table(switch) for switch in LINE.switches
        }
