"""What is compared between places where Spark can run; as a script, it prints that as one JSON object.

python everywhere.py EVENTS.csv
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.pipeline.boxes import BoxTable
from flowsieve.pipeline.covers import candidates_on
from flowsieve.pipeline.evaluation import evaluate
from flowsieve.pipeline.infer import infer_schema
from flowsieve.pipeline.ingest import read_events
from flowsieve.pipeline.planning.making import make_plan, workshop_on
from flowsieve.pipeline.session import session
from flowsieve.pipeline.statistics import statistics
from flowsieve.pipeline.subscriptions import Subscriptions
from flowsieve.pipeline.synth import synth_events, synth_subscriptions
from flowsieve.pipeline.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKLOAD = Workload("zipfsel", attributes=4, drift=0.2, correlation="low", seed=7)
SETTINGS = {"spark.sql.shuffle.partitions": "2"}


def figures(spark: SparkSession, path: str) -> dict[str, Any]:
    """The results, which are to be the same everywhere; but for `workers`, the executors that matched events."""
    events = synth_events(spark, WORKLOAD, 20_000, parts=8)
    subscriptions = synth_subscriptions(spark, WORKLOAD, 200)
    rows = subscriptions.orderBy("id").collect()
    boxes = BoxTable.of(WORKLOAD.schema, [Filter.parse(row["filter"], WORKLOAD.schema) for row in rows])
    found = statistics(events, boxes)
    filters = tuple(Filter.parse(row["filter"], WORKLOAD.schema) for row in rows)
    wanted = Subscriptions(WORKLOAD.schema, tuple(row["id"] for row in rows), filters)
    shop = workshop_on(events, wanted, 16, 0, 20_000, most=4_000)
    plans = [make_plan(method, shop).plan for method in ("gs+asi", "lw", "kd")]
    scores = evaluate(candidates_on(spark, plans, filters, 4), boxes, events)
    schema: Schema = infer_schema(spark, path).schema
    intake = read_events(spark, path, schema)
    return {
        "workers": found.workers,
        "events": content(events),
        "subscriptions": content(subscriptions),
        "statistics": {key: value for key, value in found.to_json().items() if key != "executors"},
        "variance": found.variance.tolist(),
        "traffic": found.traffic.tolist(),
        "plans": [plan.to_json() for plan in plans],
        "scores": [[score.to_json(), score.covered.tolist()] for score in scores],
        "schema": schema.to_json(),
        "read": content(intake.events),
        "account": intake.account.to_json(),
    }


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
        from flowsieve.pipeline.statistics import worker

        for _ in batches:
            pass
        cells = {"worker": [worker()], "home": [str(flowsieve.__file__)]}
        yield pa.RecordBatch.from_pydict(cells)

    told = spark.range(0, 64, 1, 16).mapInArrow(tell, "worker string, home string")
    return sorted({(row.worker, row.home) for row in told.collect()})


if __name__ == "__main__":
    spark = session(settings=SETTINGS)
    print(json.dumps({"figures": figures(spark, sys.argv[1]), "places": places(spark)}))
    spark.stop()
