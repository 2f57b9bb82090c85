"""Synthetic workloads as frames: the same seed gives the same events and subscriptions, however they are split."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from flowsieve.errors import BadInput
from flowsieve.pipeline.synth import streams
from flowsieve.pipeline.synth.hashed_random import HashedRandom, clipped, pick
from flowsieve.pipeline.synth.workload import SENSORS, Terrain, Workload

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_EVENTS = 10**12
ROWS_PER_PART = 1_000_000
START = 1_767_225_600_000  # the first event's time: 2026, in milliseconds since 1970
STEP = {"sensor": 60_000 // SENSORS}  # milliseconds from one event to the next; else a second


def synth_events(spark: SparkSession, workload: Workload, count: int, parts: int | None = None) -> DataFrame:
    """`id`, `time`, `host` if there are hosts, and the attributes."""
    draws = HashedRandom(workload.seed, "events")
    passed = F.col("row") / float(max(1, count))
    if workload.kind == "stock":
        values = streams.quote(draws, passed)
    elif workload.kind == "sensor":
        values = streams.reading(draws, F.col("row"))
    else:
        values = _point(workload, Terrain.of(workload), draws, passed)
    time = F.timestamp_millis(F.lit(START) + F.col("row") * STEP.get(workload.kind, 1000))
    named = [F.concat(F.lit("e"), F.col("row")).alias("id"), time.alias("time"), *_host(workload, draws)]
    return _numbered(spark, count, parts).select(
        *named, *(value.alias(name) for name, value in values.items())
    )


def synth_subscriptions(
    spark: SparkSession, workload: Workload, count: int, parts: int | None = None
) -> DataFrame:
    """`id`, `host` if there are hosts, and `filter`."""
    draws = HashedRandom(workload.seed, "subscriptions")
    if workload.kind == "stock":
        text = streams.stock_filter(draws)
    elif workload.kind == "sensor":
        text = streams.sensor_filter(draws)
    else:
        text = _box(workload, Terrain.of(workload), draws)
    id = F.concat(F.lit("s"), F.col("row")).alias("id")
    return _numbered(spark, count, parts).select(id, *_host(workload, draws), text.alias("filter"))


def _numbered(spark: SparkSession, count: int, parts: int | None) -> DataFrame:
    if not 0 < count <= MOST_EVENTS:
        raise BadInput(f"{count} are to be drawn; right is a number from 1 to {MOST_EVENTS:,}")
    parts = parts or max(1, math.ceil(count / ROWS_PER_PART), 2 if count > 100_000 else 1)
    return spark.range(0, count, 1, parts).withColumnRenamed("id", "row")


def _host(workload: Workload, draws: HashedRandom) -> list[Column]:
    if not workload.hosts:
        return []
    number = F.floor(draws.uniform("host") * workload.hosts)
    return [F.concat(F.lit("h"), number.cast("string")).alias("host")]


def _shares(workload: Workload, terrain: Terrain, draws: HashedRandom, passed: Column | None) -> list[Column]:
    """A point, as shares of the range, from 0 to 1; `passed` is how much of the time is over."""
    spot = draws.choice("hotspot", terrain.popularity.tolist())
    out = []
    for d in range(workload.attributes):
        tie = float(terrain.tied[d])
        if workload.kind == "uniform":
            share = draws.uniform(f"a{d}")
            if tie:
                share = F.when(draws.uniform(f"a{d}.tie") < tie, draws.uniform("shared")).otherwise(share)
        else:
            around = draws.normal(f"a{d}")
            if tie:
                around = tie * draws.normal("shared") + math.sqrt(1 - tie * tie) * around
            share = pick(terrain.centre[:, d].tolist(), spot)
            if workload.drift and passed is not None:
                share = _folded(
                    share + pick((terrain.direction[:, d] * workload.drift).tolist(), spot) * passed
                )
            share = share + pick(terrain.deviation[:, d].tolist(), spot) * around
        out.append(share)
    return out


def _point(workload: Workload, terrain: Terrain, draws: HashedRandom, passed: Column) -> dict[str, Column]:
    last = workload.size - 1
    return {
        f"a{d}": clipped(F.floor(share * workload.size), 0, last).cast("bigint")
        for d, share in enumerate(_shares(workload, terrain, draws, passed))
    }


def _box(workload: Workload, terrain: Terrain, draws: HashedRandom) -> Column:
    """A box around a point drawn as events are; where it is as wide as the range nothing is said."""
    last = workload.size - 1
    said = []
    for d, share in enumerate(_shares(workload, terrain, draws, None)):
        half = (draws.uniform(f"w{d}") + 0.5) * float(terrain.width[d]) / 2
        centre = clipped(share, 0.0, 1.0)
        low = clipped(F.floor((centre - half) * workload.size), 0, last).cast("bigint")
        high = clipped(F.floor((centre + half) * workload.size), 0, last).cast("bigint")
        text = F.concat(low.cast("string"), F.lit(f" <= a{d} <= "), high.cast("string"))
        said.append(F.when((low > 0) | (high < last), text))
    together = F.concat_ws(" and ", *said)
    return F.when(together == "", F.lit("True")).otherwise(together)


def _folded(share: Column) -> Column:
    """A share that went beyond the range, turned back at its ends as often as it takes."""
    around = F.pmod(share, F.lit(2.0))
    return F.when(around > 1.0, 2.0 - around).otherwise(around)
