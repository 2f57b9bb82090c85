"""`flowsieve stream` at 10,000 events/s and 1,000 subscriptions: how long after an event its statistics are there, and
how long after traffic has changed a better plan is offered.

The peer is the floor of micro-batches on this machine: the same files, source and trigger with a sink that only looks
at what landed. Files land five times a second, from a process of their own.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.bench import Result, at_most, rounded
from flowsieve.content.schema import Schema
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.planning.spark_planning import AT_ONCE
from flowsieve.pipeline.runtime.spark_session import session
from flowsieve.pipeline.stream.decision import Thresholds
from flowsieve.pipeline.stream.landing import LandingFolder
from flowsieve.pipeline.stream.replanning import PlanningOptions
from flowsieve.pipeline.stream.stream_job import CHECKPOINTS, SOURCE, StreamJob, StreamOptions
from flowsieve.testing.lander import Lander

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in ("a", "b", "c", "d")})
RATE, SUBSCRIPTIONS, BITS = 10_000, 1_000, 16
A_SECOND = 5  # files
FLOOR_SECONDS, CALM_SECONDS, DRIFTED_SECONDS = 25.0, 35.0, 40.0
WARM = 5  # batches that are not counted
WINDOW, DEADLINE = 8.0, 5.0


def run() -> Result:
    spark = session(
        None, {"spark.driver.extraJavaOptions": "-Xss8m"}, f"local[{(os.cpu_count() or 1) + AT_ONCE}]"
    )
    with TemporaryDirectory() as folder:
        floor = measured_floor(spark, Path(folder) / "floor")
        watched, _ = measured_stream(spark, Path(folder) / "calm", never=True)
        rows, drifted = measured_stream(spark, Path(folder) / "stream")
    spark.stop()
    calm = [row["lag_s"] for row in watched[WARM:]]
    made = [row for row in rows if row["planned"] and "new" in row["planned"] and row["at"] > drifted]
    planned, offered = made[0]["planned"], made[0]["at"]
    noticed = next(row["at"] for row in rows if row["planning"] and row["at"] > drifted)
    later = [row["lag_s"] for row in rows if row["at"] > drifted]
    figures = {
        "events_per_s": RATE,
        "subscriptions": SUBSCRIPTIONS,
        "statistics_s": {"median": rounded(median(calm)), "max": rounded(max(calm))},
        "while_planning_s": {"median": rounded(median(later)), "max": rounded(max(later))},
        "drift_noticed_s": rounded(noticed - drifted),
        "drift_to_plan_s": rounded(offered - drifted),
        "planning_s": planned["seconds"],
        "fpr": {"running": rounded(planned["old"]), "offered": rounded(planned["new"])},
        "method": planned["method"],
    }
    goals = {
        "statistics_above_floor_s": at_most(median(calm) - median(floor), 1.0),
        "drift_to_plan_s": at_most(offered - drifted, 15.0),
    }
    peers = {"floor_s": {"median": rounded(median(floor)), "max": rounded(max(floor))}}
    return Result("stream", figures, peers, goals)


def measured_floor(spark: Any, folder: Path) -> list[float]:
    """How old the newest file is when a sink has seen it, in each micro-batch."""
    lags: list[float] = []

    def look(files: Any, batch: int) -> None:
        newest = max(
            row["modificationTime"].timestamp() for row in files.select("modificationTime").collect()
        )
        lags.append(time.time() - newest)

    with landing(folder, FLOOR_SECONDS, FLOOR_SECONDS):
        spark.conf.set(*CHECKPOINTS)
        source = spark.readStream.format("binaryFile").schema(SOURCE).option("maxFilesPerTrigger", 200)
        writer = source.load(LandingFolder(str(folder)).glob).writeStream.foreachBatch(look)
        query = (
            writer.option("checkpointLocation", f"{folder}-checkpoint")
            .trigger(processingTime="1 seconds")
            .start()
        )
        query.awaitTermination(FLOOR_SECONDS)
        query.stop()
    return lags[WARM:]


def measured_stream(spark: Any, folder: Path, never: bool = False) -> tuple[list[dict[str, Any]], float]:
    """The rows of a job, each with when it came, and when traffic changed; with `never`, no plan is made."""
    seconds = CALM_SECONDS if never else CALM_SECONDS + DRIFTED_SECONDS
    rows: list[dict[str, Any]] = []
    options = StreamOptions(
        window=WINDOW,
        thresholds=Thresholds(pause=3.0, every=600.0, least=10**9 if never else 1_000),
        planning=PlanningOptions(deadline=DEADLINE, bits=BITS),
    )
    ended = threading.Event()
    with landing(folder, CALM_SECONDS, seconds) as began:
        job = StreamJob(
            spark,
            LandingFolder(str(folder)),
            Path(f"{folder}-out"),
            options,
            None,
            lambda row: rows.append({**row, "at": time.time()}),
            lambda text: print(text, flush=True),
        )
        timer = threading.Timer(seconds, ended.set)
        timer.start()
        job.run(ended)
    return rows, began + CALM_SECONDS


@contextmanager
def landing(folder: Path, drift_after: float, seconds: float) -> Iterator[float]:
    """Have files land for so many seconds, from a process of its own; gives when that began."""
    lander = Lander(folder, SCHEMA)
    lander.index(1, RegularPlan.make(SCHEMA, bits=BITS))
    lander.subscriptions(1, dict(wanted(np.random.default_rng(1))))
    began = time.time() + 2.0
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=land, args=(folder, began, drift_after, seconds))
    process.start()
    try:
        yield began
    finally:
        process.terminate()
        process.join(10)


def land(folder: Path, began: float, drift_after: float, seconds: float) -> None:
    lander, random = Lander(folder, SCHEMA), np.random.default_rng(2)
    for number in range(int(seconds * A_SECOND)):
        time.sleep(max(0.0, began + number / A_SECOND - time.time()))
        lander.events(drawn(random, RATE // A_SECOND, number / A_SECOND >= drift_after))


def wanted(random: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Filters that are narrow in a or in b, some around what is published first, some around what comes then."""
    for number in range(SUBSCRIPTIONS):
        name, middle = (("a", 250), ("b", 800))[number % 2]
        low = int(np.clip(random.normal(middle, 120), 0, 1000))
        yield f"s{number}", f"{name} >= {low} and {name} < {low + 16}"


def drawn(random: np.random.Generator, many: int, drifted: bool) -> dict[str, Any]:
    """At first events vary in a and hardly in b; then it is the other way around."""
    spread, narrow = (
        np.clip(random.normal(250, 150, many), 0, 1023),
        np.clip(random.normal(100, 3, many), 0, 1023),
    )
    columns = {name: random.integers(0, 1024, many) for name in ("c", "d")}
    columns["a"], columns["b"] = spread.astype(int), narrow.astype(int)
    if drifted:
        columns["a"] = narrow.astype(int)
        columns["b"] = np.clip(random.normal(800, 150, many), 0, 1023).astype(int)
    return columns
