"""Workloads that plans are judged by: events to plan on, later ones to judge on, and subscriptions.

`zipfsel` imitates the popular interests of [Expressive] with selectivities that differ widely. The others are real
events, where they are there: quotes with their real subscriptions, speeds and readings with boxes drawn around events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SUBSCRIPTIONS, EVENTS = 5_000, 30_000
SELECTIVITIES = (0.08, 0.2, 0.5, 1.5, 2.0, 2.0, 3.0, 3.0)


@dataclass(frozen=True, eq=False)
class Judged:
    """A workload to plan for, and the events that came later."""

    schema: Schema
    filters: tuple[Filter, ...]
    events: EventBatch
    later: EventBatch


def zipfsel(seed: int, subscriptions: int = SUBSCRIPTIONS, events: int = EVENTS) -> Judged:
    rng = np.random.default_rng(seed)
    centre, deviation = rng.uniform(400, 3700, (8, 8)), rng.uniform(50, 800, (8, 8))
    share = np.array(SELECTIVITIES)[rng.permutation(8)]
    weight = 1 / np.arange(1, 9)

    def points(number: int) -> NDArray[np.float64]:
        spot = rng.choice(8, number, p=weight / weight.sum())
        return np.clip(np.rint(rng.normal(centre[spot], deviation[spot])), 0, 4095)

    schema = Schema(tuple(Attribute(f"a{i}", "int", 0, 4095) for i in range(8)))
    both, middles = points(2 * events), points(subscriptions)
    half = rng.uniform(0.5, 1.5, (subscriptions, 8)) * 4096 * share / 2
    filters = _boxes(schema, np.ceil(middles - half), np.floor(middles + half))
    return Judged(schema, filters, _batch(schema, both[:events]), _batch(schema, both[events:]))


def padres(seed: int) -> Judged:
    """Quotes, and 5,000 of the 10,000 subscriptions that came with them."""
    rng = np.random.default_rng(seed)
    quotes = pd.read_parquet(DATA / "stock_padres_1984_2004.parquet").sort_values("date", kind="stable")
    symbols = sorted(set(quotes["symbol"]))
    table: dict[str, dict[str, object]] = {"symbol": {"type": "enum", "values": symbols}}
    for name in ("open", "high", "low", "close"):
        table[name] = {"type": "float", "min": 0.0, "max": float(quotes[name].max())}
    table["volume"] = {"type": "int", "min": 0, "max": int(quotes["volume"].max())}
    schema = Schema.parse(table)
    rows = pd.read_csv(DATA / "padres_stock_subscriptions_10k.csv.gz")
    filters = []
    for row in rows.iloc[rng.permutation(len(rows))].itertuples():
        said = [f"symbol == {row.symbol!r}"] if isinstance(row.symbol, str) else []
        if isinstance(row.attr, str):
            said.append(f"{row.attr} {row.op} {row.value}")
        try:
            filters.append(Filter.parse(" and ".join(said) or "True", schema))
        except Exception:  # one that can match nothing
            continue
    return _split(schema, tuple(filters[:SUBSCRIPTIONS]), quotes.drop(columns="date"), rng)


def metr(seed: int) -> Judged:
    frame = pd.read_parquet(DATA / "traffic_metr_la_week.parquet").sort_values("time", kind="stable")
    return _drawn(frame.drop(columns="time"), seed)


def beijing(seed: int) -> Judged:
    frame = (
        pd.read_parquet(DATA / "sensor_beijing_airquality.parquet")
        .dropna()
        .sort_values("time", kind="stable")
    )
    frame = frame.drop(columns=["time", "station", "wd"]).rename(columns={"PM2.5": "PM2_5"})
    return _drawn(frame, seed)


REAL: dict[str, Callable[[int], Judged]] = (
    {"PADRES": padres, "METR-LA": metr, "Beijing": beijing} if DATA.exists() else {}
)


def _drawn(frame: pd.DataFrame, seed: int) -> Judged:
    """Boxes around events of the first half: each bounds about half of the dimensions."""
    rng = np.random.default_rng(seed)
    frame = frame.astype(float)
    low, high = frame.min().to_numpy(), frame.max().to_numpy()
    schema = Schema(
        tuple(
            Attribute(name, "float", float(a), float(b)) for name, a, b in zip(frame, low, high, strict=True)
        )
    )
    points = frame.to_numpy()
    middles = points[rng.choice(len(points) // 2, SUBSCRIPTIONS)]
    half = rng.uniform(0.02, 0.3, middles.shape) * (high - low) / 2
    half[rng.random(middles.shape) < 0.5] = np.inf
    return _split(schema, _boxes(schema, middles - half, middles + half), frame, rng)


def _split(
    schema: Schema, filters: tuple[Filter, ...], frame: pd.DataFrame, rng: np.random.Generator
) -> Judged:
    middle = len(frame) // 2
    parts = [
        frame.iloc[np.sort(rng.choice(middle, EVENTS, replace=False)) + start]
        .reset_index(drop=True)
        .astype(object)
        for start in (0, middle)
    ]
    batches = [
        EventBatch.from_frame(schema, part.assign(id=range(EVENTS)), needs_host=False) for part in parts
    ]
    return Judged(schema, filters, *batches)


def _boxes(schema: Schema, low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[Filter, ...]:
    def said(name: str, a: float, b: float) -> str:
        attribute = schema[name]
        a, b = max(a, attribute.min), min(b, attribute.max)
        whole = attribute.kind != "float"
        return f"{int(a) if whole else float(a)!r} <= {name} <= {int(b) if whole else float(b)!r}"

    return tuple(
        Filter.parse(" and ".join(map(said, schema.names, one.tolist(), other.tolist())), schema)
        for one, other in zip(low, high, strict=True)
    )


def _batch(schema: Schema, points: NDArray[np.float64]) -> EventBatch:
    empty = np.full(len(points), "", dtype=object)
    columns = {name: np.ascontiguousarray(points[:, i]) for i, name in enumerate(schema.names)}
    return EventBatch(schema, empty, empty, columns)
