"""What the proof of labels sees in tables that are not as they should be, and what it says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Action, Flow, Output
from flowsieve.flow.guard import Gate, labels_of
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.others import Foreign, Others, PortSetting
from flowsieve.flow.proof import cubes
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.send_policy import MaySend, SendPolicy
from flowsieve.header.match import Match, parse_match
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.index.dzset import WHOLE
from flowsieve.network.generators import fat_tree
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 9}, "s": {"type": "string"}})
RING = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"h1": "s1", "h2": "s2", "h3": "s3", "h4": "s3"}
)
TREE = SetTrees((SpanningTree("s1", {"s2": "s1", "s3": "s1"}),))
LABELLING = Labelling(RING, TREE, ReceiverLabels(POOLS["receivers"][0], (("h1", "h2", "h3", "h4"),)))
TABLES = LABELLING.tables()
Change = Callable[[Flow], Flow | None]


def interest(name: str, host: str, text: str) -> Interest:
    return Interest(name, host, Filter.parse(text, SCHEMA), WHOLE)


VIEW = LabelView(
    RING,
    LABELLING.trees,
    LABELLING.labels,
    SCHEMA,
    TABLES,
    [interest("adv", "h2", "a < 5")],
    [interest("some", "h3", "a > 3 and s == 'x'"), interest("other", "h1", "a > 7")],
)


def changed(switch: str, change: Change, *more: Flow) -> LabelView:
    table = tuple(new for flow in TABLES[switch] if (new := change(flow)) is not None)
    return replace(VIEW, tables={**TABLES, switch: (*table, *more)})


def port_to(switch: str, neighbour: str) -> int:
    return RING.port(switch, neighbour)


def sending(switch: str, to: str) -> Flow:
    return next(flow for flow in TABLES[switch] if flow.ports == (port_to(switch, to),))


def test_tables_as_they_are_made_hold() -> None:
    assert verify_labels(VIEW) == Verdict()


def test_a_large_network_is_proved_at_once() -> None:
    labelling = Labelling.make(fat_tree(4, 200))
    tables = labelling.tables()
    view = LabelView(labelling.topology, labelling.trees, labelling.labels, SCHEMA, tables, [], [])
    assert len(labelling.labels.sets) == 2
    assert verify_labels(view) == Verdict()
    switch = "c0" if tables["c0"] else next(switch for switch in tables if tables[switch])
    for at in range(len(tables[switch])):
        less = (*tables[switch][:at], *tables[switch][at + 1 :])
        assert not verify_labels(replace(view, tables={**tables, switch: less})).holds


def test_an_entry_too_few_loses_what_somebody_wants() -> None:
    gone = sending("s1", "s3")
    view = changed("s1", lambda flow: None if flow == gone else flow)
    verdict = verify_labels(view)
    assert (verdict.holds, verdict.false_negatives, verdict.duplicates, verdict.loops) == (False, 1, 0, 0)
    assert verdict.witness is not None and verdict.witness.kind == "false negative"
    assert (verdict.witness.event, verdict.witness.publisher) == ({"a": 4, "s": "x"}, "h2")
    assert verdict.witness.where == (
        "h3 wants it and does not get it; sent to ff1e:2000:: (for h3), s1 does not send it to s3"
    )
    told = explain_labels(view, "h2", {"a": 4, "s": "x"})
    assert (told.delivered, told.matches) == ((), ())
    assert [miss.why for miss in told.missed] == ["s1 does not send it to s3, behind which h3 is"]


def test_who_asks_for_nothing_now_is_owed_its_copies_all_the_same() -> None:
    gone = sending("s3", "h4")
    verdict = verify_labels(changed("s3", lambda flow: None if flow == gone else flow))
    assert (verdict.holds, verdict.false_negatives, verdict.strays) == (False, 0, 1)
    assert verdict.witness is not None
    assert verdict.witness.where == "of a packet to ff1e:1000:: (for h4), s3 does not send it to h4"


def test_a_mask_without_a_host_sends_where_nobody_is_who_is_named() -> None:
    narrow = next(flow for flow in TABLES["s1"] if flow.table == sending("s1", "s2").table and not flow.ports)
    wide = replace(narrow, match=parse_match("ff1e::/ffff:ffff::"))
    verdict = verify_labels(changed("s1", lambda flow: wide if flow == narrow else flow))
    assert (verdict.holds, verdict.false_negatives, verdict.duplicates, verdict.strays) == (False, 0, 0, 1)
    assert verdict.witness is not None and verdict.witness.kind == "stray"
    assert "s1 sends it to s2, where nobody is whom it names" in verdict.witness.where


def test_a_second_table_for_a_port_doubles() -> None:
    send = sending("s1", "s3")
    view = changed(
        "s1",
        lambda flow: replace(flow, onward=30) if flow.onward is None else flow,
        replace(send, table=30, onward=None),
        replace(send, table=30, onward=None, priority=1002, match=_nobody("s1", "s3"), actions=()),
    )
    verdict = verify_labels(view)
    assert (verdict.holds, verdict.false_negatives, verdict.duplicates) == (False, 0, 1)
    assert verdict.witness is not None
    assert "it gets to h3 more than once: s1 sends it twice to s3" in verdict.witness.where


def _nobody(switch: str, to: str) -> Match:
    table = sending(switch, to).table
    return next(flow.match for flow in TABLES[switch] if flow.table == table and not flow.ports)


def test_labels_that_leave_the_tree_and_come_round_are_seen() -> None:
    round_and_round = {
        switch: (Flow(parse_match("ff1e::/16"), 2000, (Output(port_to(switch, to)),)),)
        for switch, to in (("s1", "s2"), ("s2", "s3"), ("s3", "s1"))
    }
    verdict = verify_labels(replace(VIEW, tables=round_and_round))
    assert verdict.loops == 3 and verdict.false_negatives == 1
    assert not verdict.holds


def test_a_set_that_there_is_not_goes_nowhere() -> None:
    sets = ReceiverLabels(POOLS["receivers"][0], (("h1",), ("h2", "h3"), ("h4",)))
    labelling = Labelling(RING, TREE, sets)
    stray = Flow(parse_match("ff1e:c000::/18"), 3000, (Output(1),))
    tables = labelling.tables()
    view = replace(VIEW, labels=labelling.labels, tables=tables)
    assert verify_labels(view).holds
    verdict = verify_labels(replace(view, tables={**tables, "s1": (*tables["s1"], stray)}))
    assert verdict.strays == 1
    assert (
        verdict.witness is not None
        and "a packet to ff1e:c000:: (for nobody), s1 sends it to" in verdict.witness.where
    )


def test_a_port_that_is_not_there_is_named() -> None:
    verdict = verify_labels(
        changed("s1", lambda flow: flow, Flow(parse_match("ff1e::/16"), 9000, (Output(9),)))
    )
    assert verdict.false_negatives == 1 and verdict.strays > 0
    alone = Flow(parse_match("ff1e::/128"), 9000, (Output(9),))
    verdict = verify_labels(changed("s2", lambda flow: flow, alone))
    assert (
        verdict.witness is not None and "s2 sends it to port 9, which is not there" in verdict.witness.where
    )


def test_what_looks_at_sources_or_falls_apart_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    by_source = Flow(parse_match("ff1e::/ffff::", "fd00::1/ffff::1"), 9000, ())
    verdict = verify_labels(changed("s2", lambda flow: flow, by_source))
    assert not verdict.holds and len(verdict.undecided) == 1
    assert verdict.undecided[0].startswith("s2: the entry for src fd00::1")
    assert verdict.witness is not None and verdict.witness.kind == "undecided"
    monkeypatch.setattr(cubes, "MOST_CUBES", 1)
    assert "s1: labels fare in too many ways to follow" in verify_labels(VIEW).undecided


def test_an_explanation_shows_each_entry_that_sends_it_on_and_for_whom() -> None:
    found = explain_labels(VIEW, "h2", {"a": 4, "s": "x"})
    assert [(hop.switch, hop.came_from, hop.out, hop.subscriptions) for hop in found.hops] == [
        ("s2", "h2", ("s1",), ("some",)),
        ("s1", "s2", ("s3",), ("some",)),
        ("s3", "s1", ("h3",), ("some",)),
    ]
    assert (found.published, found.delivered, found.matches, found.missed) == (True, ("h3",), ("some",), ())
    nobody = explain_labels(VIEW, "h2", {"a": 1, "s": "x"})
    assert (nobody.published, nobody.hops, nobody.delivered) == (True, (), ())
    unsent = explain_labels(VIEW, "h2", {"a": 9, "s": "x"})
    assert not unsent.published and [miss.subscription for miss in unsent.missed] == ["some", "other"]
    empty = explain_labels(replace(VIEW, tables={}), "h2", {"a": 4, "s": "x"})
    assert [(hop.switch, hop.flow, hop.out) for hop in empty.hops] == [("s2", None, ())]


# The last hop.

LAST = deliveries_of(RING, 6)
AT_HOSTS = replace(LABELLING, deliveries=LAST)
READDRESSED = replace(VIEW, tables=AT_HOSTS.tables(), deliveries=LAST)


def at_s3(*actions: Action) -> LabelView:
    """The network in which the entry of s3 for h3 does something else."""
    right = LAST["s3"][port_to("s3", "h3")]
    table = tuple(
        replace(flow, actions=actions) if flow.actions == (right,) else flow
        for flow in READDRESSED.tables["s3"]
    )
    assert table != READDRESSED.tables["s3"]
    return replace(READDRESSED, tables={**READDRESSED.tables, "s3": table})


def test_tables_that_readdress_for_each_host_hold() -> None:
    assert verify_labels(READDRESSED) == Verdict()
    assert explain_labels(READDRESSED, "h2", {"a": 4, "s": "x"}).matches == ("some",)


@pytest.mark.parametrize(
    "wrong",
    [
        (Output(port_to("s3", "h3")),),
        (replace(LAST["s3"][port_to("s3", "h4")], port=port_to("s3", "h3")),),
        (replace(LAST["s3"][port_to("s3", "h3")], mac=1),),
    ],
)
def test_a_copy_for_a_host_under_another_address_is_as_good_as_none(wrong: tuple[Action, ...]) -> None:
    view = at_s3(*wrong)
    verdict = verify_labels(view)
    assert (verdict.holds, verdict.false_negatives, verdict.strays) == (False, 1, 1)
    told = "s3 sends it to h3 under an address that is not what h3 takes for an event"
    assert verdict.witness is not None and verdict.witness.where.endswith(told)
    found = explain_labels(view, "h2", {"a": 4, "s": "x"})
    assert (found.delivered, [miss.why for miss in found.missed]) == ((), [f"{told}, behind which h3 is"])
    assert found.hops[-1].notes == (told,)


def test_a_copy_for_a_switch_that_is_readdressed_gets_nowhere() -> None:
    to = port_to("s1", "s3")
    table = tuple(
        replace(flow, actions=(replace(LAST["s1"][port_to("s1", "h1")], port=to),))
        if flow.ports == (to,)
        else flow
        for flow in READDRESSED.tables["s1"]
    )
    verdict = verify_labels(replace(READDRESSED, tables={**READDRESSED.tables, "s1": table}))
    assert (verdict.false_negatives, verdict.strays) == (1, 1)


def test_what_others_have_made_of_switches_is_seen() -> None:
    to = port_to("s3", "h3")
    mute = replace(READDRESSED, others={"s3": Others(ports={to: PortSetting.NO_FORWARD})})
    verdict = verify_labels(mute)
    assert (verdict.false_negatives, verdict.strays) == (1, 1)
    assert verdict.witness is not None
    assert verdict.witness.where.endswith("the port of s3 to h3 is set to no-forward")
    group = LABELLING.labels.tag.group
    above, below = Foreign(1003, "above", group), Foreign(999, "below", group)
    for seen, entries in (
        ((), (below,)),
        (("s3: labels may meet an entry of others: above",), (above, below)),
    ):
        assert verify_labels(replace(READDRESSED, others={"s3": Others(entries)})).undecided == seen


def test_a_host_that_may_not_be_addressed_is_owed_nothing_and_ports_are_held_to_that() -> None:
    policy = SendPolicy((MaySend(("h2",), ("h1", "h3")),))
    gates = {"h2": Gate(1, None, labels_of(["h2"], LABELLING.labels, policy)["h2"])}
    view = replace(VIEW, policy=policy, gates=gates)
    assert verify_labels(view).holds
    narrow = SendPolicy((MaySend(("h2",), ("h1",)),))
    closed = {"h2": Gate(1, None, labels_of(["h2"], LABELLING.labels, narrow)["h2"])}
    lost = verify_labels(replace(view, gates=closed))
    assert (lost.false_negatives, lost.strays) == (1, 0)
    assert (
        lost.witness is not None
        and "the port of h2 does not take in labels that name it" in lost.witness.where
    )
    loose = verify_labels(replace(view, policy=narrow))
    assert (loose.false_negatives, loose.strays) == (0, 1)
    assert loose.witness is not None and "takes in labels that name h" in loose.witness.where
    assert not verify_labels(replace(view, gates={"h2": Gate(1, None, (LABELLING.labels.tag.group,))})).holds
    event = {"a": 4, "s": "x"}
    forbidden = explain_labels(replace(view, policy=narrow, gates=closed), "h2", event)
    assert [(each.host, each.why) for each in forbidden.missed] == [
        ("h3", "the operator's policy does not let h2 address h3")
    ]


def test_labels_of_each_set_are_proved_and_explained_along_its_own_tree() -> None:
    sets = ReceiverLabels(POOLS["receivers"][0], (("h1", "h3"), ("h2", "h4")))
    trees = SetTrees(
        (SpanningTree("s1", {"s2": "s1", "s3": "s1"}), SpanningTree("s2", {"s1": "s2", "s3": "s2"}))
    )
    labelling = Labelling(RING, trees, sets)
    tables = labelling.tables()
    wants = [interest("near", "h3", "a > 3"), interest("far", "h4", "a > 3")]
    view = replace(VIEW, trees=trees, labels=sets, tables=tables, subscriptions=wants)
    assert verify_labels(view) == Verdict()
    told = explain_labels(view, "h2", {"a": 4, "s": "x"})
    assert set(told.delivered) == {"h3", "h4"}
    ways = {
        text: [(hop.switch, hop.subscriptions) for hop in told.hops if hop.dst == text]
        for text in sets.texts(["h3", "h4"])
    }
    assert [*ways.values()] == [
        [("s2", ("near",)), ("s1", ("near",)), ("s3", ("near",))],
        [("s2", ("far",)), ("s3", ("far",))],
    ]
    swapped = replace(view, trees=SetTrees(trees.trees[::-1]))
    assert verify_labels(swapped).strays > 0
