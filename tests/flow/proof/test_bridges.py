"""The proof over dead links: what detours bridge carries, what they lead elsewhere is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.detours import Arrival, Protection, mark_of, protections, ways_around
from flowsieve.flow.entry import content_flow
from flowsieve.flow.others import Others, PortSetting
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring
from flowsieve.network.mend import edges_of, tree_edges

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
ENCODING = encoding_of("ipv6")
NETWORK = ring(4)


def view() -> NetworkView:
    """A ring on which all hosts publish and want everything; the first edge of its tree is down."""
    state = ControlState(NETWORK, RegularPlan.make(SCHEMA))
    everything = Filter.parse("True", SCHEMA)
    for host in NETWORK.hosts:
        state.step(
            [Request(op, f"{op.value}-{host}", host, everything) for op in (Op.ADVERTISE, Op.SUBSCRIBE)]
        )
    tables = {
        switch: tuple(content_flow(ENCODING, dz, ports) for dz, ports in state.table(switch).items())
        for switch in NETWORK.switches
    }
    made = state.view(ENCODING, tables)
    assert frozenset(("s0", "s1")) in tree_edges(state.trees)
    return replace(made, down=frozenset([frozenset(("s0", "s1"))]))


def around() -> dict[str, Protection]:
    return dict(protections(NETWORK, ways_around(NETWORK, edges_of(NETWORK), ()).values()))


def with_detours(held: Mapping[str, Protection]) -> NetworkView:
    return replace(view(), protections=held)


def test_a_dead_edge_loses_events_unless_it_is_bridged() -> None:
    assert verify(view()).false_negatives > 0
    assert verify(with_detours(around())).holds


@pytest.mark.parametrize("end", ["s0", "s1"])
def test_a_bridge_has_to_carry_in_both_directions(end: str) -> None:
    held = around()
    held[end] = replace(held[end], ways={})
    assert verify(with_detours(held)).false_negatives > 0


def test_no_bridge_leads_over_a_link_that_is_down_or_a_port_that_is_closed() -> None:
    seen = with_detours(around())
    assert verify(replace(seen, down=seen.down | {frozenset(("s2", "s3"))})).false_negatives == 0  # cut apart
    shut = {"s3": Others((), {NETWORK.port("s3", "s2"): PortSetting.NO_FORWARD})}
    assert verify(replace(seen, others=shut)).false_negatives > 0


def test_how_the_ports_of_a_bridged_link_are_set_does_not_matter() -> None:
    ends = {
        near: Others((), {NETWORK.port(near, far): PortSetting.DOWN | PortSetting.NO_RECEIVE})
        for near, far in (("s0", "s1"), ("s1", "s0"))
    }
    assert verify(replace(with_detours(around()), others=ends)).holds


def test_a_detour_that_ends_elsewhere_is_told_though_all_links_are_up() -> None:
    held, came = around(), Arrival(NETWORK.port("s3", "s0"), mark_of("s0", "s1"))
    held["s3"] = replace(held["s3"], landings={**held["s3"].landings, came: NETWORK.port("s3", "s2")})
    verdict = verify(replace(with_detours(held), down=frozenset()))
    assert not verdict.holds and verdict.strays == 1
    assert verdict.witness is not None
    port = NETWORK.port("s3", "s2")
    assert (
        verdict.witness.where
        == f"switch s0: what goes around the link to s1 ends at port {port} at switch s3"
    )
