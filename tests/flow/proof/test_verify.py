"""The proof that tables deliver what is subscribed: what it sees, and what it says."""

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadTopology
from flowsieve.flow.entry import Flow, Output, content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.verify import Verdict, Witness, verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import Encoding, PrefixEncoding, encoding_of
from flowsieve.header.match import PrefixMatch, parse_match
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA)  # three bits: dz 011 is a == 3
ENCODING = encoding_of("ipv6")
RING = Topology.make([("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"h1": "s1", "h2": "s2", "h3": "s3"})

Tables = dict[str, list[Flow]]


def interest(host: str, text: str, *dz: str, plan: RegularPlan = PLAN) -> Interest:
    wanted = Filter.parse(text, plan.schema)
    return Interest(f"{text} at {host}", host, wanted, DzSet.of(*dz) if dz else plan.cover(wanted, 0))


def flow(switch: str, dz: str, *neighbours: str, encoding: Encoding = ENCODING) -> Flow:
    return content_flow(encoding, Dz.parse(dz), [RING.port(switch, near) for near in neighbours])


def verdict(tables: Tables, wants: list[Interest], encoding: Encoding = ENCODING) -> Verdict:
    """Everything is published at h1."""
    return verify(NetworkView(RING, PLAN, encoding, tables, [interest("h1", "True")], wants))


LINE = {"s1": [flow("s1", "", "s2")], "s2": [flow("s2", "", "h2", "s3")], "s3": [flow("s3", "0", "h3")]}


def test_tables_that_deliver_everything_hold():
    found = verdict(LINE, [interest("h2", "True"), interest("h3", "a < 4")])
    assert found == Verdict()
    assert found.holds


def test_an_event_that_is_dropped_on_the_way_is_a_false_negative():
    found = verdict(LINE, [interest("h3", "2 <= a <= 5"), interest("h3", "a == 6"), interest("h2", "a == 0")])
    assert found.false_negatives == 1  # a pair of hosts, however many events and subscriptions
    where = "h3 wants it and does not get it; sent to ff0e:8000:: it gets to s1, s2, s3"
    assert found.witness == Witness({"a": 4}, "h1", "false negative", where)
    assert not found.holds


def test_every_pair_of_hosts_is_counted():
    advertised = [interest("h1", "True"), interest("h2", "a < 4")]
    wanted = [interest("h1", "a == 0"), interest("h2", "a == 0"), interest("h3", "a == 5")]
    assert verify(NetworkView(RING, PLAN, ENCODING, {}, advertised, wanted)).false_negatives == 3


def test_what_the_dz_hold_and_the_filters_do_not_need_not_arrive():
    assert verdict(LINE, [interest("h3", "a < 4", "0", "10")]).holds


def test_an_interest_whose_dz_miss_a_part_of_its_filter_is_found_out():
    tables = {**LINE, "s3": [flow("s3", "000", "h3")]}
    found = verdict(tables, [interest("h3", "a <= 1", "000")])
    assert (found.false_negatives, found.witness.event) == (1, {"a": 1})
    assert verdict(LINE, [interest("h3", "a <= 1", "000")]).holds  # here it arrives all the same


def test_an_advertisement_whose_dz_miss_a_part_of_its_filter_is_found_out():
    tables = {"s1": [flow("s1", "000", "s2")], "s2": [flow("s2", "000", "h2")]}
    found = verify(
        NetworkView(RING, PLAN, ENCODING, tables, [interest("h1", "a <= 1", "000")], [interest("h2", "True")])
    )
    assert (found.false_negatives, found.witness.event) == (1, {"a": 1})


def test_nobody_needs_its_own_events():
    assert verdict({}, [interest("h1", "True")]).holds


def test_a_second_way_makes_a_duplicate():
    both = {**LINE, "s1": [flow("s1", "", "s2", "s3")], "s3": [flow("s3", "", "h3")]}
    found = verdict(both, [])
    assert (found.false_negatives, found.duplicates, found.loops) == (0, 1, 0)
    where = "sent to ff0e:: it gets to h3 more than once"
    assert found.witness == Witness({"a": 0}, "h1", "duplicate", where)


def test_two_copies_that_meet_on_a_link_at_one_moment_are_still_two():
    links = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("e", "f")]
    diamond = Topology.make(links, {"h1": "a", "h2": "f"})
    ways = {"a": "bc", "b": "d", "c": "d", "d": "e", "e": "f"}
    tables = {
        switch: [content_flow(ENCODING, Dz.parse(""), [diamond.port(switch, near) for near in out])]
        for switch, out in {**ways, "f": ["h2"]}.items()
    }
    found = verify(
        NetworkView(diamond, PLAN, ENCODING, tables, [interest("h1", "True")], [interest("h2", "True")])
    )
    assert (found.false_negatives, found.duplicates, found.loops) == (0, 1, 0)


def test_the_witness_of_a_duplicate_is_an_event_that_the_publisher_may_publish_if_there_is_one():
    both = {**LINE, "s1": [flow("s1", "", "s2", "s3")], "s3": [flow("s3", "", "h3")]}
    found = verify(NetworkView(RING, PLAN, ENCODING, both, [interest("h1", "a == 5", "1")], []))
    assert (found.duplicates, found.witness.event) == (1, {"a": 5})
    assert found.witness.where == "sent to ff0e:a000:: it gets to h3 more than once"


def test_a_duplicate_within_the_dz_of_an_advertisement_counts_even_where_its_filter_ends():
    both = {**LINE, "s1": [flow("s1", "11", "s2", "s3")], "s3": [flow("s3", "", "h3")]}
    found = verify(NetworkView(RING, PLAN, ENCODING, both, [interest("h1", "a == 5", "1")], []))
    assert (found.duplicates, found.witness.event) == (1, {"a": 6})


def test_a_loop_is_found_where_nobody_publishes():
    ring = {"s1": [flow("s1", "11", "s2")], "s2": [flow("s2", "1", "s3")], "s3": [flow("s3", "111", "s1")]}
    found = verify(NetworkView(RING, PLAN, ENCODING, ring, [], []))
    assert (found.false_negatives, found.duplicates, found.loops) == (0, 0, 3)
    assert found.witness == Witness(
        {"a": 7}, None, "loop", "a packet to ff0e:e000:: goes round s2 > s3 > s1 > s2"
    )


def test_switches_behind_a_loop_count_as_well():
    topology = Topology.make([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")], {})
    everywhere = {
        switch: [content_flow(ENCODING, Dz.parse(""), range(1, len(topology.neighbours(switch)) + 1))]
        for switch in topology.switches
    }
    assert verify(NetworkView(topology, PLAN, ENCODING, everywhere, [], [])).loops == 5
    del everywhere["d"]
    assert verify(NetworkView(topology, PLAN, ENCODING, everywhere, [], [])).loops == 4


def test_sending_to_and_fro_between_two_switches_is_no_loop():
    assert verdict({"s1": [flow("s1", "", "s2")], "s2": [flow("s2", "", "s1")]}, []).holds


def test_a_loop_of_another_family_is_found():
    v4 = encoding_of("ipv4")
    ring = {a: [flow(a, "", b, encoding=v4)] for a, b in (("s1", "s2"), ("s2", "s3"), ("s3", "s1"))}
    found = verdict(ring, [])
    assert (found.loops, found.witness.event) == (3, None)
    assert "225.128.0.0" in found.witness.where


def test_ipv4_tables_are_proved_too():
    v4 = encoding_of("ipv4")
    tables = {"s1": [flow("s1", "", "s2", encoding=v4)], "s2": [flow("s2", "01", "h2", encoding=v4)]}
    assert verdict(tables, [interest("h2", "2 <= a <= 3")], encoding=v4).holds
    found = verdict(tables, [interest("h2", "2 <= a <= 4")], encoding=v4)
    assert (found.false_negatives, found.witness.event) == (1, {"a": 4})


def test_entries_of_another_tag_serve_nobody():
    other = {"s1": [flow("s1", "", "s2", encoding=PrefixEncoding(POOLS["ipv6"][1]))]}
    assert verdict(other, [interest("h2", "True")]).false_negatives == 1


def test_priorities_decide_and_not_lengths():
    drop = Flow(ENCODING.match_of(Dz.parse("1")), 2000, ())
    tables = {**LINE, "s2": [*LINE["s2"], drop]}
    found = verdict(tables, [interest("h2", "True")])
    assert (found.false_negatives, found.witness.event) == (1, {"a": 4})


def test_an_entry_finer_than_the_plan_matters_only_at_the_first_address_of_a_cell():
    def hole(dz: str) -> Tables:
        return {**LINE, "s2": [*LINE["s2"], Flow(ENCODING.match_of(Dz.parse(dz)), 2000, ())]}

    assert verdict(hole("0111"), [interest("h2", "True")]).holds
    found = verdict(hole("0110"), [interest("h2", "True")])
    assert (found.false_negatives, found.witness.event) == (1, {"a": 3})


@pytest.mark.parametrize("ports", [(9,), (0,), (1, 1)])
def test_an_entry_that_outputs_to_a_port_that_is_not_there_or_twice_to_one_is_a_stray(ports):
    astray = Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1, tuple(map(Output, ports)))
    found = verdict({**LINE, "s1": [*LINE["s1"], astray]}, [interest("h2", "True")])
    assert (found.false_negatives, found.strays, found.holds) == (0, 1, False)
    where = f"the entry of s1 for ff0e::/16 outputs to ports {ports}"
    assert found.witness == Witness(None, None, "stray", where)


def test_a_string_that_cannot_be_named_counts_as_lost():
    schema = Schema.parse({"who": {"type": "string"}})
    plan = RegularPlan.make(schema, bits=8)
    one_cell = {"s1": [flow("s1", "0", "s2")], "s2": [flow("s2", "0", "h2")]}
    offers, wants = [interest("h1", "True", plan=plan)], [interest("h2", "who != 'x'", plan=plan)]
    assert verify(NetworkView(RING, plan, ENCODING, one_cell, offers, wants)).false_negatives == 1


def test_what_two_filters_share_is_what_must_arrive():
    offers = [interest("h1", "a <= 1", "00"), interest("h1", "a == 6")]
    wants = [interest("h2", "1 <= a <= 6", "0", "1")]
    tables = {"s1": [flow("s1", "001", "s2")], "s2": [flow("s2", "", "h2")]}
    found = verify(NetworkView(RING, PLAN, ENCODING, tables, offers, wants))
    assert (found.false_negatives, found.witness.event) == (1, {"a": 6})
    assert verify(NetworkView(RING, PLAN, ENCODING, tables, offers[:1], wants)).holds


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(BadTopology, match="no switch 's4'"):
        verdict({"s4": []}, [])
    with pytest.raises(BadTopology, match="no host 'h4'"):
        verdict({}, [interest("h4", "True")])


def test_an_entry_with_masks_is_named_and_not_judged():
    label = Flow(parse_match("ff0e::5/ffff::f"), 1000, (Output(1),))
    with pytest.raises(BadInput, match=r"switch s2: the entry for dst ff0e::5/ffff::f at priority 1000"):
        verdict({**LINE, "s2": [*LINE["s2"], label]}, [])
