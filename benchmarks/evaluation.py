"""Exact evaluation of a plan against 10,000 subscriptions on Spark: rows a second.

The peers: the same count as a range join in Spark SQL, on few events since it is slow; and the kernel in one process.
Events are drawn once and read several times over, so that the larger run costs no more room.
"""

from __future__ import annotations

import os
import resource
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pyspark.sql import functions as F

from benchmarks.bench import Result, at_least, at_most, rounded, seconds
from flowsieve.content.filter import Filter
from flowsieve.pipeline.boxes import BoxTable
from flowsieve.pipeline.evaluation import Candidate, evaluate, evaluate_here
from flowsieve.pipeline.files import write_frame
from flowsieve.pipeline.planning.making import make_plan, workshop_on
from flowsieve.pipeline.planning.sampling import sample
from flowsieve.pipeline.session import session
from flowsieve.pipeline.subscriptions import Subscriptions
from flowsieve.pipeline.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.workload import Workload

SUBSCRIPTIONS, EVENTS = 10_000, 1_000_000
TIMES = 10  # the events are read so often in the larger run
JOINED = 4_000
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
        plan = make_plan("lw", workshop_on(events, wanted, BITS, 0, EVENTS, most=20_000)).plan
        candidate = Candidate.of(plan, filters, 0, count=False)
        some = sample(events, workload.schema, EVENTS, 20_000)
        evaluate_here([candidate], boxes, some)
        alone = len(some) / min(seconds(lambda: evaluate_here([candidate], boxes, some)) for _ in range(3))
        evaluate([candidate], boxes, events.limit(1000))
        (score,) = evaluate([candidate], boxes, events)  # warm
        once = seconds(lambda: evaluate([candidate], boxes, events))
        larger = reduce(lambda a, b: a.unionAll(b), [events] * TIMES)
        found: list[int] = []
        many = seconds(lambda: found.append(evaluate([candidate], boxes, larger)[0].deliveries))
        assert found == [TIMES * score.deliveries] and score.false_negatives == 0
        few = events.limit(JOINED).cache()
        few.count()
        (counted,) = evaluate([candidate], boxes, few)
        joined: list[int] = []
        join = seconds(lambda: joined.append(range_join(few, boxes)))
        assert joined == [counted.matches]
    rate, join_rate = TIMES * EVENTS / many, JOINED / join
    figures = {
        "rows_per_second": rounded(rate),
        "rows_per_second_of_1M": rounded(EVENTS / once),
        "events": TIMES * EVENTS,
        "cores": cores,
        "driver_peak_MB": rounded(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "fpr": rounded(score.fpr),
    }
    peers = {
        "range_join_rows_per_second": rounded(join_rate),
        "kernel_rows_per_second_per_core": rounded(alone),
    }
    goals = {
        "against a range join": at_least(rate / join_rate, 50),
        "of the kernel's rate, per core": at_least(rate / cores / alone, 0.4),
        "time per row, 10 M to 1 M events": at_most((many / TIMES) / once, 1.2),
    }
    return Result("evaluation", figures, peers, goals)


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
