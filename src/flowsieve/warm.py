"""Compile the kernels once, so that the first command does not have to: `python -m flowsieve.warm`.

Numba keeps what it compiled beside the sources. A tiny network with every kind of table goes through all that
a command may do.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from flowsieve.client.batch_packets import packets_of
from flowsieve.client.pubsub import PubSub
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.partitions.configurator import decide_once
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.dzset import DzSet, union
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.index.sample import EventSample
from flowsieve.matcher.filter_index import FIRST_CUT, FilterIndex
from flowsieve.network.generators import line
from flowsieve.pipeline.evaluation.cut_coverage import candidate_of
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.evaluation.table_cut import cut_table
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher
from flowsieve.pipeline.matching.statistics import add_events, empty_sums, of_sums
from flowsieve.pipeline.planning.methods import Method, Workshop, make
from flowsieve.pipeline.planning.portfolio import auto_here
from flowsieve.pipeline.planning.selection import matches_along
from flowsieve.pipeline.receiver_sets.host_wants import HostWants, audiences_of
from flowsieve.pipeline.receiver_sets.learning import LINKS, STARTS, SetSizes, learn
from flowsieve.pipeline.receiver_sets.set_kernel import count_packets
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces
from flowsieve.pipeline.replay.network_snapshot import NetworkSnapshot, ReplayTraffic

SCHEMA = Schema.parse(
    {
        "level": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "kind": {"type": "enum", "values": ["a", "b", "c"]},
    }
)


def warm() -> None:
    """Go once through every kernel."""
    plan = RegularPlan.make(SCHEMA)
    rng = np.random.default_rng(0)
    values = [
        {"level": int(n), "ratio": float(r), "kind": "b"}
        for n, r in zip(range(0, 100, 7), rng.random(15), strict=True)
    ]
    events = EventBatch.from_events(SCHEMA, "h0", values)
    sample = EventSample.of(plan, events)
    settings = [Settings(tables=tables, budget=8) for tables in Tables]
    settings += [Settings(budget=0), Settings(capacity=3, sample=sample), Settings(capacity=3)]
    for setting in settings:
        small = RegularPlan.make(SCHEMA, bits=6) if setting.budget == 0 else plan
        pubsub = PubSub(SCHEMA, line(3), plan=small, settings=setting)
        pubsub.advertise("h0", "level > 3")
        for low in range(0, 90, 10):
            pubsub.subscribe("h2", f"{low} <= level < {low + 5} and ratio <= 0.3")
        with pubsub.subscribe("h1", "level < 50 or kind in ('a', 'b')"):
            pubsub.publish("h0", values[3])
            pubsub.explain("h0", values[3])
        packets = packets_of(events, small, pubsub.encoding)
        pubsub.network.deliver(np.zeros(len(packets.rows), np.int64), packets.hi, packets.lo)
        for down in ({frozenset(("s0", "s1"))}, ()):
            pubsub.state.rewire(down)
        assert pubsub.verify().holds
        past = Past(snapshot(pubsub.state, Ledger()))
        again, _ = recover(past, partial(ControlState, pubsub.state.topology, small, settings=setting))
        assert again.subscriptions.keys() == pubsub.state.subscriptions.keys()
    wanted = Filter.parse("10 <= level < 50 and ratio < 0.4 or kind == 'a'", SCHEMA)
    for other in _learned():
        sample = EventSample.of(other, events)
        for cover in (other.cover(wanted, 8), other.cover(wanted, 8, sample), other.cover(wanted, 0)):
            assert other.touches(wanted, cover).all()
        assert other.count_cover(wanted) and len(other.encode_batch(events).hi)
    _warm_sharing()
    _warm_planning(events)
    _warm_replay(events)
    _warm_matcher(events)
    _warm_sets(events)
    boxes = BoxTable.of(SCHEMA, [Filter.parse("level < 50 or kind == 'a'", SCHEMA)])
    sums = empty_sums(boxes)
    add_events(boxes, Matcher.of(boxes), events, sums)
    assert of_sums(boxes, sums).events == len(events)


def _warm_sharing() -> None:
    """What a controller asks of sets of dz, and what a configurator decides."""
    one, other = DzSet.of("00", "101"), DzSet.of("001", "11")
    assert one.overlaps(other) and not one.covers_set(other)
    assert (one | other) - other == one - other and one & other == DzSet.of("001")
    assert union([one, other]) == one | other
    for room in (None, 4):
        decide_once(room)


def _warm_planning(events: EventBatch) -> None:
    """All planners, with a budget and without; filters of one box and of several are counted in different ways."""
    single = tuple(Filter.parse(f"{n} <= level < {n + 30} and ratio < 0.{n}5", SCHEMA) for n in range(9))
    several = (*single, Filter.parse("level < 20 or kind == 'a'", SCHEMA))
    for filters, max_dz in ((single, 0), (several, 0), (several, 8)):
        shop = Workshop(SCHEMA, filters, 8, max_dz, events)
        assert not auto_here(shop, 600).passed_over
        for method in ("si", "cs+ri", "emcs+asi"):
            assert make(Method.parse(method), shop).bits <= 8
    boxes = BoxTable.of(SCHEMA, single)
    assert len(matches_along(boxes, boxes.points(events))) == len(SCHEMA)
    plan = RegularPlan.make(SCHEMA, bits=8)
    candidates = [Candidate.of(plan, single, 8), candidate_of(cut_table(plan, single, events, 20), single)]
    assert not any(score.false_negatives for score in evaluate_here(candidates, boxes, events))


def _warm_replay(events: EventBatch) -> None:
    """A network's tables, and events sent through them."""
    pubsub = PubSub(SCHEMA, line(3), plan=RegularPlan.make(SCHEMA, bits=6))
    pubsub.advertise("h0", "True")
    pubsub.subscribe("h2", "level < 50 or kind == 'a'")
    snapshot = NetworkSnapshot.of(pubsub.controller.view())
    traffic = ReplayTraffic.none(snapshot.wiring)
    snapshot.send(events, np.zeros(len(events), np.int64), traffic)
    assert traffic.sent[0, 0] == len(events)


def _warm_matcher(events: EventBatch) -> None:
    """An index of as many filters as make it cut its columns."""
    index = FilterIndex(SCHEMA)
    filters = [
        Filter.parse(f"level < 50 or ratio < {n / FIRST_CUT}", SCHEMA) for n in range(1, FIRST_CUT + 1)
    ]
    for filter in filters:
        index.add(filter, 1)
    assert index.match_batch(events) == [index.match(events.event(row)) for row in range(len(events))]
    for filter in filters:
        index.remove(filter, 1)


def _warm_sets(events: EventBatch) -> None:
    """Sets of hosts, learned from who wants the same events."""
    wanted = [(f"h{n % 4}", Filter.parse(f"level >= {9 * n}", SCHEMA)) for n in range(8)]
    wants, nobody = HostWants.of([f"h{n}" for n in range(4)], wanted), np.full(len(events), -1, np.int64)
    found = wants.keys(events, nobody)
    audiences, places = (
        audiences_of(4, [*found], [*found.values()]),
        TreePlaces(4, np.array([1]), np.array([3])),
    )
    parts = np.stack([learn(audiences, places, SetSizes(2, 2), start, LINKS) for start in STARTS])
    counts = np.zeros((2, len(parts)), np.int64)
    for begin, host in wants.listed(events, nobody):
        count_packets(begin, host, parts, 2, *places.above(), len(places), *counts)


def _learned() -> tuple[IndexPlan, ...]:
    """A plan of each kind that is learned from data."""
    cuts = {"level": [20, 40, 60], "ratio": [0.3]}
    return (
        AdaptivePlan.make(SCHEMA, cuts),
        LevelwisePlan.make(SCHEMA, cuts, ["level", "ratio", "level"]),
        KdPlan.make(SCHEMA, [("level", 50), None, ("ratio", 0.5), None, None], 4, cuts),
        SelectivePlan.make(SCHEMA, [{"level": (0, 30)}, {"level": (20, 60), "ratio": (0.0, 0.4)}], 8),
    )


if __name__ == "__main__":
    warm()
