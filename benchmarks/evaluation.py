"""Exact evaluation of a plan against 10,000 subscriptions on Spark, of 10 and of 100 million events.

The peers: the same count as a range join in Spark SQL, on few events since it is slow; and the kernel in one process.
A million events are drawn and their files linked under many names, so that the larger runs cost no more room. The
kernel and the smaller run are measured before and after the larger one, and compared by processor time as well: a
machine that has other work to do shifts times, and these tell by how much.
"""

from __future__ import annotations

import os
import time
from functools import reduce
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from benchmarks.bench import Result, at_least, at_most, rounded, seconds
from benchmarks.processes import Usage, watched
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.pipeline.evaluation.evaluation import Bench, Candidate, MatchCounter, evaluate
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.spark_planning import make_plan, workshop_on
from flowsieve.pipeline.reading.subscriptions import Subscriptions
from flowsieve.pipeline.runtime.frame_files import write_frame
from flowsieve.pipeline.runtime.spark_sample import SparkSample
from flowsieve.pipeline.runtime.spark_session import session
from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.synth.workload import Workload

SUBSCRIPTIONS, EVENTS = 10_000, 1_000_000
FEW = 10  # the events are read so often in the smaller run
MANY = int(os.environ.get("FLOWSIEVE_MILLIONS", "100"))  # and in the larger one
ALONE = 200_000  # events for the kernel in one process
JOINED = 20_000
BITS = 23


def run() -> Result:
    workload = Workload("zipfsel", seed=3)
    spark = session("local[*]")
    cores = os.cpu_count() or 1
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        write_frame(synth_events(spark, workload, EVENTS, 2 * cores), path)
        events = spark.read.parquet(str(path))
        rows = synth_subscriptions(spark, workload, SUBSCRIPTIONS).orderBy("id").collect()
        filters = tuple(Filter.parse(row["filter"], workload.schema) for row in rows)
        wanted = Subscriptions(workload.schema, tuple(row["id"] for row in rows), filters)
        boxes = wanted.boxes
        with workshop_on(events, wanted, BITS, 0, EVENTS, most=20_000) as shop:
            plan = make_plan("lw", shop).plan
        candidate = Candidate.of(plan, filters, 0, count=False)
        some = SparkSample.of(events, workload.schema, EVENTS, ALONE).ask(lambda events: events)
        (score,) = evaluate([candidate], boxes, events)
        assert score.events == EVENTS and score.false_negatives == 0

        def counted(times: int) -> tuple[float, Usage]:
            """Seconds for the events read so often, and what that took; the counts are checked."""
            frame = spark.read.parquet(str(linked(path, times)))
            with watched() as usage:
                start = time.perf_counter()
                (found,) = evaluate([candidate], boxes, frame)
                taken = time.perf_counter() - start
            assert found.events == times * EVENTS and (found.covered == times * score.covered).all()
            assert (found.matched == times * score.matched).all() and found.false_negatives == 0
            return taken, usage

        counted(FEW)  # warm
        before, kernel_before = counted(FEW), alone(candidate, boxes, some)
        larger, usage = counted(MANY)
        after, kernel_after = counted(FEW), alone(candidate, boxes, some)
        few = events.limit(JOINED).repartition(2 * cores).cache()
        few.count()
        matches = evaluate([candidate], boxes, few)[0].matches
        joined: list[int] = []
        join = seconds(lambda: joined.append(range_join(few, boxes)))
        assert joined == [matches]
    smaller = mean([before[0], after[0]])
    smaller_rate, larger_rate, join_rate = FEW * EVENTS / smaller, MANY * EVENTS / larger, JOINED / join
    kernel_rate, kernel_cpu = (
        mean([kernel_before[0], kernel_after[0]]),
        mean([kernel_before[1], kernel_after[1]]),
    )
    cpu = usage.cpu_seconds / (MANY * EVENTS) * 1e6
    peaks = {name: max(run[1].peak_mb.get(name, 0.0) for run in (before, after)) for name in usage.peak_mb}
    workers = next(name for name in peaks if name.startswith("python"))
    figures: dict[str, Any] = {
        "events": MANY * EVENTS,
        "rows_per_second": rounded(larger_rate),
        f"rows_per_second_of_{FEW}M": rounded(smaller_rate),
        "seconds": rounded(larger),
        "cores": cores,
        "cpu_us_per_row": rounded(cpu),
        "python_peak_MB": rounded(usage.peak_mb[workers]),
        f"python_peak_MB_of_{FEW}M": rounded(peaks[workers]),
        "java_peak_MB": rounded(usage.peak_mb["java"]),
        f"java_peak_MB_of_{FEW}M": rounded(peaks["java"]),
        "fpr": rounded(score.fpr),
    }
    peers = {
        "range_join_rows_per_second": rounded(join_rate),
        "range_join_events": JOINED,
        "kernel_rows_per_second_per_core": rounded(kernel_rate),
        "kernel_cpu_us_per_row": rounded(kernel_cpu),
    }
    goals = {
        "against a range join": at_least(larger_rate / join_rate, 50),
        f"of the kernel's rate, per core, {FEW} M events": at_least(smaller_rate / cores / kernel_rate, 0.4),
        f"of the kernel's rate, per core, {MANY} M events": at_least(larger_rate / cores / kernel_rate, 0.4),
        "kernel's processor time in ours": at_least(kernel_cpu / cpu, 0.4),
        f"time per row, {MANY} M to {FEW} M events": at_most((larger / MANY) / (smaller / FEW), 1.2),
        f"Python's peak memory, {MANY} M to {FEW} M events": at_most(
            usage.peak_mb[workers] / peaks[workers], 1.2
        ),
        f"Java's peak memory, {MANY} M to {FEW} M events": at_most(
            usage.peak_mb["java"] / peaks["java"], 1.2
        ),
    }
    return Result("evaluation", figures, peers, goals)


def linked(path: Path, times: int) -> Path:
    """A folder in which every file of this one stands so many times."""
    folder = path.with_name(f"{path.stem}-{times}.parquet")
    if not folder.exists():
        folder.mkdir()
        for i in range(times):
            for file in path.glob("part-*.parquet"):
                os.link(file, folder / f"part-{i}-{file.name}")
    return folder


def alone(candidate: Candidate, boxes: BoxTable, events: EventBatch) -> tuple[float, float]:
    """Of the kernel in this process, its bitsets being there: rows a second, and microseconds of processor a row."""
    bench = Bench.of([candidate], boxes)
    MatchCounter.of(bench).add(events.take(np.arange(1000)))
    rates, cpus = [], []
    for _ in range(3):
        count = MatchCounter.of(bench)
        wall, cpu = time.perf_counter(), time.process_time()
        count.add(events)
        count.settled()
        rates.append(len(events) / (time.perf_counter() - wall))
        cpus.append((time.process_time() - cpu) / len(events) * 1e6)
    return max(rates), min(cpus)


def range_join(events, boxes: BoxTable) -> int:  # type: ignore[no-untyped-def]
    """The matches alone, which is the lesser half of an evaluation, by comparing columns."""
    spark = events.sparkSession
    names = boxes.schema.names
    table = np.concatenate([boxes.low, boxes.high], axis=1).tolist()
    columns = ", ".join(
        [f"l{i} double" for i in range(len(names))] + [f"h{i} double" for i in range(len(names))]
    )
    ranges = F.broadcast(spark.createDataFrame([tuple(row) for row in table], columns))
    inside = [F.col(name).between(F.col(f"l{i}"), F.col(f"h{i}")) for i, name in enumerate(names)]
    return int(events.join(ranges, reduce(lambda a, b: a & b, inside)).count())
