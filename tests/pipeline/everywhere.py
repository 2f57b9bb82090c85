"""What is compared between places where Spark can run; as a script, it prints that as one JSON object.

python everywhere.py EVENTS.csv SCENARIO.toml
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.evaluation.covers import candidates_on, table_candidates
from flowsieve.pipeline.evaluation.evaluation import evaluate
from flowsieve.pipeline.matching.statistics import statistics
from flowsieve.pipeline.planning.spark_planning import make_plan, workshop_on
from flowsieve.pipeline.reading.infer import infer_schema
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.receiver_sets.host_wants import HostWants
from flowsieve.pipeline.receiver_sets.learning import SetSizes
from flowsieve.pipeline.receiver_sets.spark_sets import count_packets, learn_on
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces
from flowsieve.pipeline.replay.network_snapshot import NetworkSnapshot
from flowsieve.pipeline.replay.replay import at_hosts, replay
from flowsieve.pipeline.runtime.spark_sample import SparkSample
from flowsieve.pipeline.runtime.spark_session import session
from flowsieve.pipeline.stream.decision import Thresholds
from flowsieve.pipeline.stream.landing import LandingFolder
from flowsieve.pipeline.stream.replanning import PlanningOptions
from flowsieve.pipeline.stream.stream_job import StreamJob, StreamOptions
from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.synth.workload import Workload
from flowsieve.scenario.play import settled
from flowsieve.scenario.read import read_scenario
from flowsieve.testing.lander import Lander

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKLOAD = Workload("zipfsel", attributes=4, bits=8, drift=0.2, correlation="low", seed=7)
EVENTS, SUBSCRIPTIONS, PARTS, HOSTS = 4_000, 90, 4, 30
METHODS = (
    "ri", "si", "asi", "lw", "kd", "evs+si", "emcs+asi", "cs+ri", "gs+lw", "brs+kd", "random+asi", "auto",
)  # fmt: skip
PHASES = (
    "statistics",
    "planning",
    "covers",
    "evaluation",
    "sets",
    "replay",
)  # in which every executor has work to do
SETTINGS = {"spark.sql.shuffle.partitions": "2"}
STREAMED = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in ("a", "b")})
UNHURRIED = 1e6  # seconds: a deadline that is kept by passing over something would differ from place to place


def figures(spark: SparkSession, events_file: str, scenario_file: str) -> dict[str, Any]:
    """The results, which are to be the same everywhere; but for `workers`, the executors that say they took part."""
    events = synth_events(spark, WORKLOAD, EVENTS, parts=PARTS)
    subscriptions = synth_subscriptions(spark, WORKLOAD, SUBSCRIPTIONS)
    rows = subscriptions.orderBy("id").collect()
    filters = tuple(Filter.parse(row["filter"], WORKLOAD.schema) for row in rows)
    wanted = Subscriptions(WORKLOAD.schema, tuple(row["id"] for row in rows), filters)
    with phase(spark, "statistics"):
        found = statistics(events, wanted.boxes)
    with phase(spark, "planning"), workshop_on(events, wanted, 12, 4, EVENTS, most=1_500) as shop:
        made = [make_plan(method, shop, UNHURRIED) for method in METHODS]
    with phase(spark, "covers"):
        drawn = SparkSample.of(events, WORKLOAD.schema, EVENTS, 1_000)
        plans = [one.plan for one in made]
        candidates = candidates_on(spark, plans, filters, 4)
        candidates += candidates_on(spark, plans[-1:], filters, 4, drawn)
        candidates += table_candidates(plans[-1:], filters, 200, [drawn])
    with phase(spark, "evaluation"):
        scores = evaluate(candidates, wanted.boxes, events)
    home = np.arange(SUBSCRIPTIONS, dtype=np.int64) % HOSTS
    wants = HostWants(tuple(f"h{i}" for i in range(HOSTS)), wanted.boxes, home)
    with phase(spark, "sets"):
        places = TreePlaces(HOSTS, np.array([0, 10]), np.array([10, 30]))
        learned = learn_on(events, wants, places, SetSizes(4, 8), 0.1)
        packets = count_packets(events, wants, places, learned.parts)
    setting = read_scenario(Path(scenario_file))
    sent = read_events(spark, Path(scenario_file).parent / "events.parquet", setting.schema)
    with phase(spark, "replay"):
        source = at_hosts(sent, setting.topology).events.repartition(PARTS)
        replayed = replay(source, NetworkSnapshot.of(settled(setting).plane.controller.view()))
    schema: Schema = infer_schema(spark, events_file).schema
    intake = read_events(spark, events_file, schema)
    return {
        "workers": sorted(set(found.workers) | set(replayed.workers)),
        "events": content(events),
        "subscriptions": content(subscriptions),
        "statistics": {key: value for key, value in found.to_json().items() if key != "executors"},
        "variance": found.variance.tolist(),
        "traffic": found.traffic.tolist(),
        "plans": {method: one.plan.to_json() for method, one in zip(METHODS, made, strict=True)},
        "chosen": made[-1].method,
        "passed_over": (made[-1].portfolio or {})["passed_over"],
        "scores": {
            method: [score.to_json(), score.covered.tolist()]
            for method, score in zip((*METHODS, "weighed", "cut"), scores, strict=True)
        },
        "sets": {name: part.tolist() for name, part in learned.parts.items()},
        "packets": [packets.events, packets.wanted, packets.packets, packets.crossings],
        "replayed": {key: value for key, value in replayed.to_json().items() if key != "executors"},
        "schema": schema.to_json(),
        "read": content(intake.events),
        "account": intake.account.to_json(),
    }


def streamed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What a stream finds in a folder in which traffic changes; it does not run over Connect."""
    lander, random = Lander(folder / "landing", STREAMED), np.random.default_rng(3)
    lander.index(1, RegularPlan.make(STREAMED, bits=6))
    lander.subscriptions(1, {f"s{i}": f"a > {9 * i} and a < {9 * i + 6}" for i in range(100)})
    for number in range(8):
        places = np.clip(random.normal(300 if number < 5 else 700, 60, 400), 0, 1023).astype(int)
        moments = [1_790_000_000_000_000 + number * 500_000 + i for i in range(400)]
        lander.events({"a": places, "b": random.integers(0, 1024, 400)}, at=moments)
    lander.file("events", b"no Parquet")
    rows: list[Any] = []
    options = StreamOptions(
        window=1.5,
        max_files=2,
        thresholds=Thresholds(pause=1.0, every=60.0, least=500),
        planning=PlanningOptions("lw", UNHURRIED, max_dz=4),
    )
    folders = LandingFolder(str(folder / "landing")), folder / "out"
    StreamJob(spark, *folders, options, tell=rows.append).run(threading.Event(), once=True)
    plans = [json.loads(path.read_text()) for path in sorted((folder / "out" / "plans").iterdir())]
    return {
        "totals": rows[-1]["totals"],
        "rates": [row["fpr_computed"] for row in rows],
        "drift": [row["dimensions"]["a"]["drift"] for row in rows],
        "plan": [plans[0]["plan"], plans[0]["score"]],
    }


@contextmanager
def phase(spark: SparkSession, name: str) -> Iterator[None]:
    """Mark the jobs of the block, so that the cluster's own log says which executors worked on them."""
    spark.addTag(name)
    try:
        yield
    finally:
        spark.removeTag(name)


def content(frame: DataFrame) -> str:
    """A frame's content in a word, whatever the order of its rows."""
    hashed = F.sum(F.xxhash64(*frame.columns).cast("decimal(38,0)"))
    row = frame.agg(F.count("*"), hashed).first()
    assert row is not None
    return f"{row[0]} {row[1]}"


def places(spark: SparkSession) -> list[tuple[str, str]]:
    """Where tasks ran: each executor, and where it has the package from."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import flowsieve
        from flowsieve.pipeline.matching.statistics import worker

        for _ in batches:
            pass
        cells = {"worker": [worker()], "home": [str(flowsieve.__file__)]}
        yield pa.RecordBatch.from_pydict(cells)

    told = spark.range(0, 64, 1, 16).mapInArrow(tell, "worker string, home string")
    return sorted({(row.worker, row.home) for row in told.collect()})


if __name__ == "__main__":
    spark = session(settings=SETTINGS)
    found = {"figures": figures(spark, *sys.argv[1:]), "places": places(spark)}
    if not is_remote():
        with phase(spark, "stream"):
            found["streamed"] = streamed(spark, Path.cwd() / "streamed")
    print(json.dumps(found))
    spark.stop()
