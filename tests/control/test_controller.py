"""The controller carries decisions out, waits for all switches, and believes what they acknowledged."""

from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import TableFull
from flowsieve.flow.diff import FlowOp, OpKind, Ports
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.header.match import PrefixMatch
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import line
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
PLAN = RegularPlan.make(SCHEMA, bits=6)
ENCODING = encoding_of("ipv6")
LINE = line(3)
EVENT = {"A": 10, "B": 10}


def request(op: Op, id: str, host: str, text: str | None = None) -> Request:
    return Request(op, id, host, None if text is None else Filter.parse(text, SCHEMA))


OFFER = request(Op.ADVERTISE, "p", "h0", "True")
WANT = request(Op.SUBSCRIBE, "s", "h2", "A < 50")


def control(network: EmbeddedNetwork, **settings: int) -> Controller:
    return Controller(ControlState(LINE, PLAN, settings=Settings(**settings)), network, ENCODING)


def held(network: EmbeddedNetwork, switch: str) -> dict[Dz, Ports]:
    return {ENCODING.dz_of(flow.match): flow.ports for flow in network.read(switch)}


def publish(network: EmbeddedNetwork, host: str = "h0") -> None:
    (dz,) = PLAN.encode(EVENT)
    network.send(host, ENCODING.text(dz))


def test_on_return_slow_switches_have_acknowledged_and_the_belief_is_what_they_hold() -> None:
    network = EmbeddedNetwork(LINE, updates_per_second=50)
    controller = control(network)
    controller.submit([OFFER, WANT])
    assert network.now >= 1 / 50
    assert controller.operations == 3
    for switch in LINE.switches:
        assert held(network, switch) == controller.believed(switch) == controller.state.table(switch) != {}


def test_what_was_believed_is_given_out_as_a_copy() -> None:
    controller = control(EmbeddedNetwork(LINE))
    controller.submit([OFFER, WANT])
    controller.believed("s0").clear()
    assert controller.believed("s0")


def test_what_a_publisher_sent_arrives_before_the_end_of_its_advertisement_shrinks_the_tables() -> None:
    network = EmbeddedNetwork(LINE)
    controller = control(network)
    controller.submit([OFFER, WANT])
    publish(network)
    controller.submit([request(Op.UNADVERTISE, "p", "h0")])
    assert [delivery.host for delivery in network.deliveries] == ["h2"]
    assert not any(controller.believed(switch) for switch in LINE.switches)
    publish(network)
    network.settle()
    assert len(network.deliveries) == 1


def test_packets_under_way_while_a_slow_network_grows_are_not_lost() -> None:
    network = EmbeddedNetwork(LINE, updates_per_second=50)
    controller = control(network, budget=0)
    controller.submit([OFFER, WANT])
    publish(network)
    controller.submit([request(Op.SUBSCRIBE, f"s{n}", "h1", f"A == {n} and B < 30") for n in range(0, 50, 5)])
    assert [delivery.host for delivery in network.deliveries] == ["h2"]


def test_a_switch_that_fails_is_reported_after_all_have_answered_and_made_up_for_with_the_next_slice() -> (
    None
):
    wants = [request(Op.SUBSCRIBE, f"s{n}", "h2", f"A == {n} and B == {n}") for n in (5, 45, 85)]
    network = EmbeddedNetwork(LINE, capacity={"s0": 2})  # which the controller has not been told
    controller = control(network, budget=0)
    with pytest.raises(TableFull) as failure:
        controller.submit([OFFER, *wants])
    assert failure.value.switch == "s0"
    for switch in LINE.switches:
        assert held(network, switch) == controller.believed(switch)
    assert len(controller.believed("s0")) == 2
    assert controller.believed("s2") == controller.state.table("s2")
    controller.submit([request(Op.UNSUBSCRIBE, "s45", "h2"), request(Op.UNSUBSCRIBE, "s85", "h2")])
    for switch in LINE.switches:
        assert held(network, switch) == controller.believed(switch) == controller.state.table(switch) != {}


def test_a_refused_request_costs_no_operation() -> None:
    network = EmbeddedNetwork(LINE, capacity=0)
    controller = control(network, capacity=0)
    outcome = controller.submit([OFFER, WANT])
    assert [refused for refused, _ in outcome.refused] == [WANT]
    assert controller.operations == 0
    assert not any(network.read(switch) for switch in LINE.switches)


def test_a_repair_sets_right_what_was_changed_behind_the_controllers_back() -> None:
    network = EmbeddedNetwork(LINE)
    controller = control(network)
    controller.submit([OFFER, WANT, request(Op.SUBSCRIBE, "t", "h1", "B >= 50")])
    before = controller.tables()
    lost = before["s0"][0]
    elsewhere = Flow(PrefixMatch(Prefix.parse("ff02::/16")), 7, (Output(1),))
    stray = Flow(PrefixMatch(Prefix.parse("ff0e:8000::/17")), 3000, (Output(1), Output(2)))
    network.apply("s0", [FlowOp(OpKind.REMOVE, lost), FlowOp(OpKind.INSTALL, elsewhere)])
    network.apply("s1", [FlowOp(OpKind.INSTALL, stray)])
    network.settle()
    assert not controller.verify().holds
    assert controller.repair() == 2  # the smallest difference, never a wipe
    assert controller.verify().holds
    assert set(network.read("s0")) == {*before["s0"], elsewhere}
    assert set(network.read("s1")) == set(before["s1"])
    assert controller.repair() == 0


def test_a_repair_leaves_entries_outside_our_groups_alone() -> None:
    network = EmbeddedNetwork(LINE)
    foreign = Flow(PrefixMatch(Prefix.parse("10.0.0.0/8")), 5, (Output(1),))
    network.apply("s1", [FlowOp(OpKind.INSTALL, foreign)])
    network.settle()
    assert control(network).repair() == 0
    assert network.read("s1") == (foreign,)
