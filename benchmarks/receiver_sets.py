"""Packets per event where a network has more hosts than an address has bits: sets learned, by place, at random.

1,000 and 5,000 hosts on a network of the Topology Zoo, three subscriptions each. Sets are learned on Spark from four
fifths of the events, and judged by the others. Two loads: in *any 4 of 12* nobody has anything in common with anybody
but by chance (narrow boxes on any 4 of 12 attributes, even events). In *communities* hosts are in 30 groups whatever
their place; a group has 8 topics, boxes on 4 of 12 attributes around a centre, and events fall around centres, all as
often; of a host's subscriptions one in five is to a topic of another group.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import workloads
from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.labels import ZOO, by_labels, exact_links, wants
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.control.request import Op, Request
from flowsieve.network.graphml import read_graphml
from flowsieve.network.locality import sets_by_locality
from flowsieve.network.topology import Topology
from flowsieve.pipeline.planning.holdout import Holdout
from flowsieve.pipeline.receiver_sets.learned_sets import LearnedSets, learn_sets
from flowsieve.pipeline.receiver_sets.learning import LINKS
from flowsieve.pipeline.runtime.spark_session import session
from flowsieve.scenario.network_section import Network

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS, HOSTS, MANY_HOSTS, EACH = 40_000, 1_000, 5_000, 3
GROUPS, TOPICS, STRAY, WIDTH = 30, 8, 0.2, 0.24
SENT = 3_000  # events that are sent through the network, for what links carry
SCHEMA = Schema(tuple(Attribute(f"a{i}", "float", 0.0, 1.0) for i in range(12)))
Load = tuple[list[tuple[str, Filter]], NDArray[np.float64]]  # who wants what, and the events


def any_4_of_12(hosts: list[str], seed: int) -> Load:
    dice = np.random.default_rng(seed)
    low = dice.random((EACH * len(hosts), 12)) * 0.8
    used = np.argsort(dice.random(low.shape), axis=1)[:, :4]
    wanted = [
        (hosts[n % len(hosts)], _box(low[n, axes], low[n, axes] + 0.2, axes)) for n, axes in enumerate(used)
    ]
    return wanted, dice.random((EVENTS, 12))


def communities(hosts: list[str], seed: int) -> Load:
    dice = np.random.default_rng(seed)
    group = dice.integers(0, GROUPS, len(hosts))
    centre = dice.random((GROUPS, TOPICS, 12))
    used = np.argsort(dice.random(centre.shape), axis=2)[:, :, :4]
    wanted = []
    for n in range(EACH * len(hosts)):
        own = group[n % len(hosts)] if dice.random() >= STRAY else dice.integers(0, GROUPS)
        topic = dice.integers(0, TOPICS)
        axes = used[own, topic]
        low = np.clip(centre[own, topic, axes] + dice.normal(0, 0.04, 4) - WIDTH / 2, 0, 1 - WIDTH)
        wanted.append((hosts[n % len(hosts)], _box(low, low + WIDTH, axes)))
    points, rows = dice.random((EVENTS, 12)), np.arange(EVENTS)[:, None]
    about, topic = dice.integers(0, GROUPS, EVENTS), dice.integers(0, TOPICS, EVENTS)
    axes = used[about, topic]
    near = centre[about, topic][rows, axes] + dice.normal(0, 0.06, (EVENTS, 4))
    points[rows, axes] = np.clip(near, 0, 1)
    return wanted, points


def _box(low: NDArray[np.float64], high: NDArray[np.float64], axes: NDArray[np.int64]) -> Filter:
    sides = zip(low, axes, high, strict=True)
    return Filter.parse(" and ".join(f"{a:.4f} <= a{axis} < {b:.4f}" for a, axis, b in sides), SCHEMA)


def zoo(hosts: int) -> Topology:
    """A network of the Topology Zoo, with hosts anywhere."""
    switches, links = read_graphml(workloads.DATA / "topologies" / ZOO)
    dice, bare = Random(1), Topology.make(links, {}, switches)
    reached = [switch for switch in switches if switch in bare.main]
    return Topology.make(links, {f"h{i}": dice.choice(reached) for i in range(hosts)}, switches)


def watched(what: str) -> AbstractContextManager[None]:
    return nullcontext()


def learned(spark: SparkSession, topology: Topology, load: Load) -> tuple[LearnedSets, float]:
    wanted, points = load
    frame = pd.DataFrame(points, columns=SCHEMA.names)
    frame.insert(0, "id", [f"e{i}" for i in range(len(points))])
    events = spark.createDataFrame(frame).repartition(4).persist()
    events.count()
    start = time.perf_counter()
    made = learn_sets(Network(topology, None, None, 1), wanted, events, Holdout(0.2), None, LINKS, watched)
    took = time.perf_counter() - start
    events.unpersist()
    return made, took


def over_links(topology: Topology, load: Load, made: LearnedSets) -> dict[str, float]:
    """What links carry against exact multicast, by sets that were learned and by sets of neighbours."""
    wanted, points = load
    some, hosts = points[:SENT], list(topology.hosts)
    ids = np.array([f"e{i}" for i in range(len(some))], dtype=object)
    source = np.array([hosts[i * len(hosts) // 4] for i in range(4)], dtype=object)[np.arange(len(some)) % 4]
    events = EventBatch(SCHEMA, ids, source, {name: some[:, i] for i, name in enumerate(SCHEMA.names)})
    everything = Filter.parse("True", SCHEMA)
    requests = [Request(Op.ADVERTISE, f"a{host}", host, everything) for host in dict.fromkeys(source)]
    requests += [Request(Op.SUBSCRIBE, f"s{i}", host, box) for i, (host, box) in enumerate(wanted)]
    who = wants(requests, events, hosts)
    found = {}
    for name, assign in (("learned", made.sets.assign), ("neighbours", sets_by_locality)):
        sent, controller = by_labels(topology, requests, events, who, assign)
        assert sent.lost == sent.unwanted == 0
        exact = exact_links(topology, controller.labelling.trees.of_set(0), events, who)
        found[f"over_links_against_exact_{name}"] = rounded(sent.over_links / exact)
    return found


def compared(
    spark: SparkSession, hosts: int, load: Callable[[list[str], int], Load], links: bool
) -> dict[str, Any]:
    topology = zoo(hosts)
    drawn = load(list(topology.hosts), 7)
    made, took = learned(spark, topology, drawn)
    found = made.to_json()
    figures: dict[str, Any] = {
        f"packets_per_event_{k}": rounded(v) for k, v in found["packets_per_event"].items()
    }
    figures |= {f"entries_max_{name}": most for name, most in found["entries_max"].items()}
    figures |= {"sets": found["sets"], "start": found["start"], "learning_seconds": rounded(took)}
    figures["wanted_share_of_events"] = rounded(made.judged.wanted / made.judged.events)
    return figures | (over_links(topology, drawn, made) if links else {})


def run() -> Result:
    if not workloads.DATA.exists():
        return Result("receiver_sets", {"skipped": "the Topology Zoo is not there"})
    spark = session()
    few = {
        name: compared(spark, HOSTS, load, links=True)
        for name, load in (("any 4 of 12", any_4_of_12), ("communities", communities))
    }
    many = compared(spark, MANY_HOSTS, communities, links=False)
    spark.stop()
    figures = {
        "hosts_1000": few,
        "hosts_5000": {"communities": many},
        "events": EVENTS,
        "judged_on": "a fifth",
    }

    def against(row: dict[str, Any], other: str) -> float:
        share: float = row["packets_per_event_learned"] / row[f"packets_per_event_{other}"]
        return share

    goals: dict[str, Goal] = {}
    for name, bound in (("any 4 of 12", 1.0), ("communities", 0.7)):
        for other in ("neighbours", "random"):
            goals[f"packets per event, {name}: learned against {other}"] = at_most(
                against(few[name], other), bound
            )
    goals["packets per event, 5,000 hosts in communities: learned against neighbours"] = at_most(
        against(many, "neighbours"), 0.7
    )
    return Result("receiver_sets", figures, {}, goals)
