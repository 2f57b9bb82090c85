"""Slices of requests become one net difference; what is bad changes nothing, what does not fit is refused."""

from __future__ import annotations

from random import Random

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.errors import BadFilter, BadInput, TableFull
from flowsieve.flow.diff import Ports, apply_changes
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import line, ring
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"})
PLAN = RegularPlan.make(SCHEMA, bits=6)
LINE = line(3)  # h0 at s0, h1 at s1, h2 at s2
NARROW = "25 <= A < 30 and B == 3"


def adv(id: str, host: str = "h0", text: str = "True") -> Request:
    return Request(Op.ADVERTISE, id, host, Filter.parse(text, SCHEMA))


def sub(id: str, host: str = "h2", text: str = "A < 50") -> Request:
    return Request(Op.SUBSCRIBE, id, host, Filter.parse(text, SCHEMA))


def unadv(id: str, host: str = "h0") -> Request:
    return Request(Op.UNADVERTISE, id, host)


def unsub(id: str, host: str = "h2") -> Request:
    return Request(Op.UNSUBSCRIBE, id, host)


def state(topology: Topology = LINE, trees: int = 1, **settings: object) -> ControlState:
    spread = TreeMap.spread(topology, trees) if trees > 1 else None
    return ControlState(topology, PLAN, spread, Settings(**settings))  # type: ignore[arg-type]


def tables(of: ControlState) -> dict[str, dict[Dz, Ports]]:
    return {switch: of.table(switch) for switch in of.topology.switches}


def asked(of: ControlState) -> list[str]:
    return [*of.advertisements, *of.subscriptions]


def test_a_subscription_is_served_from_the_publisher_to_the_subscriber() -> None:
    outcome = (at := state(budget=0)).step([adv("p"), sub("s", text="A < 50 and B >= 50")])
    assert outcome.refused == ()
    assert outcome.operations == 3
    assert tables(at) == {
        "s0": {Dz.parse("01"): (1,)},
        "s1": {Dz.parse("01"): (2,)},
        "s2": {Dz.parse("01"): (2,)},
    }
    assert at.subscriptions["s"].endpoint == "h2"
    assert [offer.id for offer in at.publishes("h0")] == ["p"]


def test_a_slice_that_takes_back_what_it_asks_changes_nothing() -> None:
    at = state()
    at.step([adv("p"), sub("s1")])
    before = tables(at)
    outcome = at.step([sub("s2", text="B < 50"), unsub("s1"), sub("s1"), unsub("s2")])
    assert outcome == Outcome({})
    assert tables(at) == before


@pytest.mark.parametrize("kind", Tables)
def test_slices_and_requests_one_by_one_end_in_the_same_tables(kind: Tables) -> None:
    random = Random(5)
    network = ring(5, 8)
    requests: list[Request] = []
    active: list[Request] = []
    for n in range(60):
        if n % 3 == 2:
            old = active.pop(random.randrange(len(active)))
            requests.append((unsub if old.op is Op.SUBSCRIBE else unadv)(old.id, old.endpoint))
        else:
            low = random.randrange(90)
            text = f"{low} <= {random.choice('AB')} < {low + random.randint(1, 40)}"
            make = adv if random.random() < 0.3 else sub
            active.append(make(f"r{n}", f"h{random.randrange(8)}", text))
            requests.append(active[-1])
    sliced, single = (state(network, tables=kind, trees=4) for _ in range(2))
    known: dict[str, dict[Dz, Ports]] = {switch: {} for switch in network.switches}
    operations = 0
    for at in range(0, len(requests), 7):
        outcome = sliced.step(requests[at : at + 7])
        operations += outcome.operations
        for switch, changes in outcome.changes.items():
            apply_changes(known[switch], changes)
    one_by_one = sum(single.step([request]).operations for request in requests)
    assert tables(sliced) == tables(single) == known
    assert any(tables(sliced).values())
    assert operations < one_by_one


def test_tables_do_not_depend_on_the_order_of_requests() -> None:
    requests = [adv("p1"), adv("p2", "h2", "B < 20"), sub("s1"), sub("s2", "h1", "B < 30"), sub("s3", "h0")]
    first, second = state(), state()
    first.step(requests)
    second.step(requests[::-1])
    assert tables(first) == tables(second)


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ([sub("s2", "hh2")], "there is no host 'hh2'; did you mean 'h2'"),
        ([sub("s2", "hx")], "host 'hx' is in a part of the network that is cut off"),
        ([sub("s1")], "the id 's1' of this sub is in use already"),
        ([sub("s2"), sub("s2")], "the id 's2' of this sub is in use already"),
        ([adv("p")], "the id 'p' of this adv is in use already"),
        ([unsub("s9")], "host 'h2' has no subscription 's9' to end"),
        ([unsub("s1", "h1")], "host 'h1' has no subscription 's1' to end"),
        ([unadv("s1")], "host 'h0' has no advertisement 's1' to end"),
        ([unsub("s1"), unsub("s1")], "host 'h2' has no subscription 's1' to end"),
    ],
)
def test_a_slice_with_a_bad_request_changes_nothing(requests: list[Request], told: str) -> None:
    cut_off = Topology.make([("s0", "s1"), ("s1", "s2"), ("x0", "x1")], {**LINE.hosts, "hx": "x0"})
    at = state(cut_off)
    at.step([adv("p"), sub("s1")])
    before = tables(at)
    with pytest.raises(BadInput, match=told):
        at.step([sub("fine", text="B < 3"), *requests])
    assert asked(at) == ["p", "s1"]
    assert at.step([]) == Outcome({})
    assert tables(at) == before


def test_a_filter_too_long_to_be_listed_changes_nothing_of_its_slice() -> None:
    fine = Schema.parse({name: {"type": "int", "min": 0, "max": 2**20 - 1} for name in "AB"})
    at = ControlState(LINE, RegularPlan.make(fine, bits=40), settings=Settings(budget=0))
    wanted = [Filter.parse(text, fine) for text in ("A < 7", "1 <= A < 1048575 and 1 <= B < 1048575")]
    with pytest.raises(BadFilter, match="max_dz_per_filter = 32"):
        at.step([Request(Op.SUBSCRIBE, f"s{i}", "h2", each) for i, each in enumerate(wanted)])
    assert at.subscriptions == {}
    assert at.step([]) == Outcome({})


@pytest.mark.parametrize("kind", Tables)
def test_what_no_table_has_room_for_is_refused_and_leaves_no_trace(kind: Tables) -> None:
    at = state(capacity=0, tables=kind)
    assert at.step([adv("p")]).refused == ()
    wanted = sub("s")
    outcome = at.step([wanted])
    assert outcome.changes == {}
    ((request, reason),) = outcome.refused
    assert request is wanted
    assert isinstance(reason, TableFull)
    assert (reason.needed, reason.capacity) == (1, 0)
    assert asked(at) == ["p"]
    assert not any(tables(at).values())


def test_more_partitions_than_room_are_refused_and_the_reason_says_what_would_do() -> None:
    requests = [adv("p"), sub("half", text="A < 50"), sub("all", text="True")]
    tight = state(trees=4, capacity=4)
    outcome = tight.step(requests)
    assert [request.id for request, _ in outcome.refused] == ["all"]
    ((_, reason),) = outcome.refused
    assert isinstance(reason, TableFull)
    assert (reason.needed, reason.capacity) == (5, 4)  # one for each part, and one to update them with
    assert all(len(table) <= 3 for table in tables(tight).values())
    assert state(trees=4, capacity=reason.needed).step(requests).refused == ()


@pytest.mark.parametrize("kind", Tables)
def test_a_refusal_leaves_the_tables_as_they_were_and_later_requests_are_served(kind: Tables) -> None:
    at = state(ring(4, 6), trees=4, capacity=4, tables=kind)
    at.step(
        [
            adv("p"),
            adv("q", "h3"),
            sub("s1", "h1", NARROW),
            sub("s2", "h2", NARROW),
            sub("s3", "h2", "A < 20"),
        ]
    )
    before, known = tables(at), asked(at)
    assert any(before.values())
    for _ in range(2):
        outcome = at.step([sub("all", "h1", "True")])
        assert len(outcome.refused) == 1
        assert outcome.changes == {}
        assert (tables(at), asked(at)) == (before, known)
    served = at.step([unsub("s1", "h1"), sub("s4", "h4", "A < 10 and B < 10")])
    assert served.refused == ()
    assert served.changes
    assert asked(at) == ["p", "q", "s2", "s3", "s4"]


def test_of_a_slice_that_does_not_fit_what_fits_is_served_and_ends_of_the_rest_are_passed_over() -> None:
    at = state(trees=4, capacity=3)
    outcome = at.step(
        [
            adv("p"),
            sub("s1", text=NARROW),
            sub("wide", text="True"),
            sub("wider", "h1", text="True"),
            unsub("wide"),
            sub("s2", "h1", NARROW),
        ]
    )
    assert [request.id for request, _ in outcome.refused] == ["wide", "wider"]
    assert asked(at) == ["p", "s1", "s2"]
    known: dict[str, dict[Dz, Ports]] = {switch: {} for switch in LINE.switches}
    for switch, changes in outcome.changes.items():
        apply_changes(known[switch], changes)
    assert known == tables(at)
    assert any(known.values())


def test_coarsened_tables_say_what_they_are_expected_to_waste() -> None:
    at = state(capacity=3, budget=0)
    at.step([adv("p"), *(sub(f"s{n}", text=f"{n} <= A < {n + 3} and B == {n}") for n in range(0, 90, 9))])
    assert at.waste().keys() == {"s0", "s1", "s2"}
    assert 0 < at.waste()["s0"] < 1  # the others only pass on what it lets through
    assert state().waste() == {}


def test_the_space_is_divided_otherwise_and_joined_again_with_the_tables_that_follow() -> None:
    halves, eighths = [Dz.parse("0"), Dz.parse("1")], [Dz(n, 3) for n in range(8)]
    one = state(ring(4), budget=0)
    requests = [adv("p", "h0"), sub("wide", "h1", "True"), sub("s", "h2", "A < 70"), sub("t", "h3", "B == 3")]
    one.step(requests)
    whole, now = tables(one), tables(one)
    for partitions in (halves, eighths, halves, [Dz(0, 0)]):
        outcome = one.divide(partitions)
        for switch, changes in outcome.changes.items():
            apply_changes(now[switch], changes)
        assert now == tables(one)
        assert one.partitions == partitions
        fresh = ControlState(one.topology, PLAN, one.trees, Settings(budget=0))
        fresh.step(requests)
        assert tables(fresh) == now
    assert now == whole


def test_what_is_on_several_trees_is_not_joined() -> None:
    four = state(ring(4), trees=4)
    four.step([adv("p"), sub("s", "h2", "True")])
    before = tables(four)
    assert len(four.trees.trees) > 1
    assert four.divide([Dz(0, 0)]).changes == {}
    assert (tables(four), len(four.partitions)) == (before, 4)
