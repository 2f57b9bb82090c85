"""Flows, explanations, verdicts and quotes become plain data that JSON can hold."""

from __future__ import annotations

import json

from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.proof.explain import Explanation, Hop, Miss
from flowsieve.flow.proof.verify import Verdict, Witness
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch, parse_match
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.scenario.plain import plain_explanation, plain_flows, plain_quote, plain_verdict
from flowsieve.scenario.price import Quote

LINE = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
FLOW = Flow(PrefixMatch(Prefix.parse("ff0e:c000::/19")), 1003, (Output(1), Output(2)))


def test_ports_are_named_by_what_they_lead_to() -> None:
    wide = Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1000, (Output(2),))
    assert plain_flows(LINE, {"s1": [wide, FLOW], "s2": [FLOW]}) == [
        {"switch": "s1", "priority": 1000, "dst": "ff0e::/16", "out": ["h1"]},
        {"switch": "s1", "priority": 1003, "dst": "ff0e:c000::/19", "out": ["s2", "h1"]},
        {"switch": "s2", "priority": 1003, "dst": "ff0e:c000::/19", "out": ["s1", "h2"]},
    ]


def test_entries_have_masks_as_soon_as_one_needs_them() -> None:
    label = Flow(parse_match("ff1e::40/ffff::40", "fd00::5/ffff::f"), 20, (Output(1),))
    assert plain_flows(LINE, {"s1": [label, FLOW]}) == [
        {"switch": "s1", "table": 0, "priority": 1003, "dst": "ff0e:c000::/ffff:e000::", "out": ["s2", "h1"]},
        {
            "switch": "s1",
            "table": 0,
            "priority": 20,
            "src": "fd00::5/ffff::f",
            "dst": "ff1e::40/ffff::40",
            "out": ["s2"],
        },
    ]


def test_an_explanation_has_its_hops_and_who_missed_the_event() -> None:
    hops = (
        Hop("s1", "h1", "ff0e:c800::", FLOW, ("s2",), ("sub",)),
        Hop("s2", "s1", "ff0e:c800::", None, (), ()),
    )
    plain = plain_explanation(LINE, Explanation(True, hops, (), (), (Miss("h2", "sub", "dropped"),)))
    assert plain == json.loads(json.dumps(plain))
    assert [set(hop) >= {"switch", "flow", "subscriptions"} for hop in plain["hops"]] == [True, True]
    assert plain["hops"][0]["flow"]["out"] == ["s2", "h1"]
    assert plain["hops"][0]["subscriptions"] == ["sub"]
    assert plain["hops"][1]["flow"] is None
    assert (plain["published"], plain["delivered"], plain["matches"]) == (True, [], [])
    assert plain["missed"] == [{"host": "h2", "subscription": "sub", "why": "dropped"}]


def test_a_verdict_has_a_witness_or_null() -> None:
    held = plain_verdict(Verdict(), 0.25)
    assert held == {
        "holds": True,
        "false_negatives": 0,
        "duplicates": 0,
        "loops": 0,
        "strays": 0,
        "undecided": [],
        "false_positive_share": 0.25,
        "witness": None,
    }
    witness = Witness({"a": 1}, "h1", "false negative", "h2 does not get it")
    broken = plain_verdict(Verdict(false_negatives=1, witness=witness), None)
    assert (broken["holds"], broken["false_positive_share"]) == (False, None)
    assert broken["witness"] == {
        "event": {"a": 1},
        "publisher": "h1",
        "kind": "false negative",
        "where": "h2 does not get it",
    }
    loop = Witness(None, None, "loop", "round and round")
    assert plain_verdict(Verdict(loops=2, witness=loop), None)["witness"]["event"] is None


def test_a_quote_counts_its_dz() -> None:
    dear = Quote({"s1": 2}, {"s1": 3}, DzSet.of("00", "1"), 0.5, None)
    assert plain_quote(dear) == {
        "entries": {"s1": 2},
        "operations": {"s1": 3},
        "dz": 2,
        "false_positive_share": 0.5,
        "fits": True,
        "told": [],
        "reason": None,
    }
    assert plain_quote(Quote({}, {}, DzSet.of("1"), 0.0, "full"))["fits"] is False
