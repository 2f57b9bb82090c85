"""Why a host did or did not get an event."""

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadTopology, BadValue
from flowsieve.flow.entry import Flow, content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation, Miss, explain
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA)  # three bits: dz 011 is a == 3
ENCODING = encoding_of("ipv6")
TOPOLOGY = Topology.make([("s1", "s2"), ("s2", "s3")], {"h1": "s1", "h2": "s2", "h3": "s3", "h4": "s3"})
TREE = center_tree(TOPOLOGY)


def interest(name: str, host: str, text: str, *dz: str) -> Interest:
    wanted = Filter.parse(text, SCHEMA)
    return Interest(name, host, wanted, DzSet.of(*dz) if dz else PLAN.cover(wanted, 0))


def flow(switch: str, dz: str, *neighbours: str) -> Flow:
    return content_flow(ENCODING, Dz.parse(dz), sorted(TOPOLOGY.port(switch, near) for near in neighbours))


ADVERTISED = [interest("everything", "h1", "True")]
WANTED = [
    interest("low", "h2", "a < 4"),
    interest("three", "h3", "a == 3"),
    interest("high", "h4", "a >= 4"),
    interest("own", "h1", "True"),
]
TABLES = {
    "s1": [flow("s1", "0", "s2"), flow("s1", "1", "s2")],
    "s2": [flow("s2", "0", "h2"), flow("s2", "011", "h2", "s3"), flow("s2", "1", "s3")],
    "s3": [flow("s3", "011", "h3"), flow("s3", "1", "h4")],
}


def explained(tables: dict[str, list[Flow]], host: str = "h1", **values: object) -> Explanation:
    view = NetworkView(TOPOLOGY, PLAN, ENCODING, tables, ADVERTISED, WANTED, trees=TreeMap.single(TREE))
    return explain(view, host, values)


def test_every_hop_names_its_entry_and_the_subscriptions_behind_it():
    explanation = explained(TABLES, a=3)
    assert [
        (hop.switch, hop.came_from, hop.flow, hop.out, hop.subscriptions) for hop in explanation.hops
    ] == [
        ("s1", "h1", TABLES["s1"][0], ("s2",), ("low", "three")),
        ("s2", "s1", TABLES["s2"][1], ("s3", "h2"), ("three", "low")),
        ("s3", "s2", TABLES["s3"][0], ("h3",), ("three",)),
    ]
    assert {hop.dst for hop in explanation.hops} == {"ff0e:6000::"}


def test_what_is_delivered_and_what_matches_are_told_apart():
    coarse = {**TABLES, "s2": [flow("s2", "", "h2", "s3")], "s3": [flow("s3", "", "h3", "h4")]}
    explanation = explained(coarse, a=3)
    assert explanation.delivered == ("h2", "h3", "h4")
    assert explanation.matches == ("low", "three")
    assert explanation.missed == ()


def test_a_port_served_by_a_coarser_entry_names_those_that_the_entry_is_for():
    coarse = {**TABLES, "s3": [flow("s3", "", "h3", "h4")]}
    hop = explained(coarse, a=3).hops[-1]
    assert hop.out == ("h3", "h4")
    assert hop.subscriptions == ("three", "high")  # a == 3 is not "high"; the entry for everything is


def test_a_dropped_event_ends_at_a_hop_without_an_entry():
    explanation = explained({**TABLES, "s2": []}, a=7)
    assert explanation.hops[-1].flow is None
    assert explanation.hops[-1].out == ()
    assert explanation.delivered == ()
    assert explanation.missed == (Miss("h4", "high", "s2 has no entry for ff0e:e000:: and drops it"),)


def test_an_entry_that_leaves_a_port_out_is_named():
    broken = {**TABLES, "s2": [flow("s2", "", "h2")]}
    assert explained(broken, a=3).missed == (
        Miss("h3", "three", "the entry of s2 for ff0e::/16 does not send it to s3"),
    )


def test_dz_that_do_not_hold_the_event_are_blamed():
    narrow = [interest("three", "h3", "a == 3", "010")]
    explanation = explain(NetworkView(TOPOLOGY, PLAN, ENCODING, {}, ADVERTISED, narrow), "h1", {"a": 3})
    assert explanation.missed == (Miss("h3", "three", "its dz do not hold the event's 011"),)


def test_a_host_that_no_port_leads_to_is_cut_off():
    hosts = {"h1": "s1", "h2": "s2", "h3": "s2", "h4": "s9"}
    topology = Topology.make([("s1", "s2")], hosts, ["s1", "s2", "s9"])
    trees = TreeMap.single(center_tree(topology))
    explanation = explain(
        NetworkView(topology, PLAN, ENCODING, {}, ADVERTISED, WANTED, trees=trees), "h1", {"a": 7}
    )
    assert explanation.missed == (Miss("h4", "high", "nothing leads from h1 to h4"),)


def test_an_event_that_is_not_advertised_is_not_published():
    explanation = explained(TABLES, host="h2", a=3)
    assert (explanation.hops, explanation.delivered, explanation.matches) == ((), (), ())
    why = "no advertisement of h2 holds the event, so it is not published"
    assert explanation.missed == (Miss("h3", "three", why), Miss("h1", "own", why))


def test_a_publisher_does_not_hear_itself():
    explanation = explained(TABLES, a=0)
    assert "h1" not in explanation.delivered
    assert explanation.matches == ("low",)
    assert explanation.missed == ()


def test_bad_input_is_refused():
    with pytest.raises(BadValue, match="a"):
        explained(TABLES, a=8)
    with pytest.raises(BadTopology, match="h9"):
        explained(TABLES, host="h9", a=3)
