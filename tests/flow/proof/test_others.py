"""What the proof and an explanation say of what others have made of switches."""

from dataclasses import replace

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadTopology
from flowsieve.flow.entry import Deliver, Flow, Output, content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.others import Foreign, Others, PortSetting, SentCopy
from flowsieve.flow.proof.explain import explain
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA)  # three bits
ENCODING = encoding_of("ipv6")
RING = Topology.make([("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"h1": "s1", "h2": "s2", "h3": "s3"})


def interest(host: str, text: str) -> Interest:
    wanted = Filter.parse(text, SCHEMA)
    return Interest(f"{text} at {host}", host, wanted, PLAN.cover(wanted, 0))


def flow(switch: str, dz: str, *neighbours: str) -> Flow:
    return content_flow(ENCODING, Dz.parse(dz), [RING.port(switch, near) for near in neighbours])


LINE = {"s1": [flow("s1", "", "s2")], "s2": [flow("s2", "", "h2", "s3")], "s3": [flow("s3", "0", "h3")]}
WANTS = [interest("h2", "True"), interest("h3", "a < 4")]
VIEW = NetworkView(RING, PLAN, ENCODING, LINE, [interest("h1", "True")], WANTS)
DROP = Foreign(3000, "the drop", Prefix.parse("ff00::/8"), certain=True)
DELIVERIES = deliveries_of(RING, 6)


def with_entry(switch: str, entry: Foreign) -> NetworkView:
    return replace(VIEW, others={switch: Others((entry,))})


def readdressed(right: dict[str, dict[int, Deliver]]) -> NetworkView:
    """Tables that deliver by addresses, judged by those that are right."""
    tables = {
        switch: [
            replace(flow, actions=tuple(right[switch].get(each.port, each) for each in flow.actions))
            for flow in flows
        ]
        for switch, flows in LINE.items()
    }
    return replace(VIEW, tables=tables, deliveries=DELIVERIES)


def test_an_entry_that_shadows_ours_is_a_loss_that_names_it():
    found = verify(with_entry("s2", DROP))
    assert (found.false_negatives, found.undecided) == (2, ())
    assert found.witness.where.endswith("it gets to s1, s2; at s2 it meets an entry of others: the drop")


@pytest.mark.parametrize(
    "entry",
    [
        replace(DROP, priority=999),
        replace(DROP, reach=Prefix.parse("ff15::/16")),
        replace(DROP, reach=Prefix.parse("224.0.0.0/4")),
        replace(DROP, in_port=9),
        replace(
            DROP, copies=(SentCopy(RING.port("s2", "s3")), SentCopy(RING.port("s2", "h2")), SentCopy(77))
        ),
        replace(
            DROP, certain=False, copies=(SentCopy(RING.port("s2", "s3")), SentCopy(RING.port("s2", "h2")))
        ),
    ],
)
def test_entries_that_change_nothing_are_passed_over(entry):
    assert verify(with_entry("s2", entry)).holds


def test_an_entry_that_may_match_or_not_leaves_it_undecided_and_is_named():
    found = verify(with_entry("s2", replace(DROP, certain=False)))
    assert (found.false_negatives, found.undecided) == (0, ("s2: the drop",))
    assert not found.holds
    assert found.witness.kind == "undecided"
    assert "depends on entries of others, as at s2 on the drop: h2 wants it" in found.witness.where


def test_an_entry_of_one_priority_with_ours_may_win():
    assert verify(with_entry("s2", replace(DROP, priority=1000))).undecided == ("s2: the drop",)


def test_a_riddle_is_named_with_its_reason_whatever_else_holds():
    found = verify(with_entry("s3", replace(DROP, riddle="it changes them")))
    assert found.undecided == ("s3: the drop (it changes them)",)
    below = Foreign(0, "the rest", certain=True, riddle="it changes them")
    assert verify(with_entry("s2", below)).holds  # where ours take everything
    assert not verify(with_entry("s3", below)).holds


def test_a_lower_entry_that_closes_a_loop_is_seen():
    back = Foreign(5, "the way back", certain=True, copies=(SentCopy(RING.port("s3", "s1")),))
    found = verify(with_entry("s3", back))
    assert (found.loops, found.duplicates, found.undecided) == (3, 1, ())


@pytest.mark.parametrize(
    ("switch", "near", "setting", "lost"),
    [
        ("s2", "h2", PortSetting.NO_FORWARD, 1),
        ("s2", "h2", PortSetting.NO_RECEIVE, 0),
        ("s2", "h2", PortSetting.DOWN, 1),
        ("s1", "s2", PortSetting.NO_FORWARD, 2),
        ("s2", "s1", PortSetting.NO_RECEIVE, 2),
        ("s1", "h1", PortSetting.NO_RECEIVE, 2),
        ("s1", "h1", PortSetting.NO_FORWARD, 0),
    ],
)
def test_ports_that_do_not_carry_all_lose_what_goes_through_them(switch, near, setting, lost):
    found = verify(replace(VIEW, others={switch: Others(ports={RING.port(switch, near): setting})}))
    assert found.false_negatives == lost
    assert not lost or f"the port of {switch} to {near} is set to {setting}" in found.witness.where


def test_the_last_hop_has_to_readdress_events_as_the_host_listens():
    assert verify(readdressed(DELIVERIES)).holds
    port = RING.port("s2", "h2")
    right = DELIVERIES["s2"][port]
    elsewhere = replace(right, address=Prefix.parse("ff02::99/128"))
    for wrong in (replace(right, mac=7), elsewhere, Output(port)):
        found = verify(readdressed(DELIVERIES | {"s2": {port: wrong}}))
        assert found.false_negatives == 1
        assert (
            "s2 sends it to h2 under an address that is not what h2 takes for an event" in found.witness.where
        )


def test_an_event_is_explained_with_what_others_did_to_it():
    view = replace(with_entry("s2", DROP), trees=TreeMap.single(center_tree(RING)))
    (_, hop) = explain(view, "h1", {"a": 1}).hops
    assert (hop.flow, hop.out, hop.notes) == (None, (), ("at s2 it meets an entry of others: the drop",))
    missed = {each.host: each.why for each in explain(view, "h1", {"a": 1}).missed}
    assert missed["h2"] == "at s2 it meets an entry of others: the drop"


def test_others_are_those_of_a_switch_that_is_there():
    with pytest.raises(BadTopology):
        with_entry("s9", DROP)
    with pytest.raises(BadInput, match="65535"):
        replace(DROP, priority=70_000)
