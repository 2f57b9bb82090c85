"""What the benchmarks of the papers' figures share: workloads as the pipeline describes them, rates, pictures.

A rate is the share of the events that subscriptions get which they do not match, with any number of prefixes, on events
later than those that a plan was made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import rounded
from benchmarks.workloads import Judged
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Workshop, make_over
from flowsieve.pipeline.report.plots import COLORS, LOOK, MARKERS
from flowsieve.pipeline.synth.workload import Terrain, Workload

BITS = 23  # what IPv4 multicast leaves
OUT = Path("out")
MOST_MARKED = 30  # points on a line
Line = Mapping[int, float]  # from the axis across to the upright one
Lines = Mapping[str, Line]


def drawn(workload: Workload, subscriptions: int, events: int, terrain: Terrain | None = None) -> Judged:
    """Events to plan on, as many later ones, and subscriptions, as `flowsieve synth` describes them.

    They are drawn here, not on Spark: they are few, and a figure needs many workloads.
    """
    terrain, rng = terrain or Terrain.of(workload), np.random.default_rng(workload.seed)
    size, schema = workload.size, workload.schema

    def shares(count: int) -> NDArray[np.float64]:
        if workload.kind == "uniform":
            return rng.random((count, workload.attributes))
        spot = np.searchsorted(terrain.popularity, rng.random(count), side="right").clip(
            0, workload.hotspots - 1
        )
        shared, own = rng.normal(size=(count, 1)), rng.normal(size=(count, workload.attributes))
        around = terrain.tied * shared + np.sqrt(1 - terrain.tied**2) * own
        return np.asarray(terrain.centre[spot] + terrain.deviation[spot] * around)

    points = np.clip(np.floor(shares(2 * events) * size), 0, size - 1)
    middles = np.clip(shares(subscriptions), 0, 1)
    half = rng.uniform(0.5, 1.5, middles.shape) * terrain.width / 2
    low, high = (np.clip(np.floor((middles + side * half) * size), 0, size - 1) for side in (-1, 1))
    filters = tuple(
        Filter.parse(_said(schema, size - 1, a, b), schema)
        for a, b in zip(low.astype(int).tolist(), high.astype(int).tolist(), strict=True)
    )
    first, later = (batch(schema, points[part]) for part in (slice(events), slice(events, None)))
    return Judged(schema, filters, first, later)


def batch(schema: Schema, points: NDArray[np.float64]) -> EventBatch:
    empty = np.full(len(points), "", dtype=object)
    columns = {name: np.ascontiguousarray(points[:, i]) for i, name in enumerate(schema.names)}
    return EventBatch(schema, empty, empty, columns)


def _said(schema: Schema, last: int, low: Sequence[int], high: Sequence[int]) -> str:
    terms = [
        f"{a} <= {name} <= {b}"
        for name, a, b in zip(schema.names, low, high, strict=True)
        if a > 0 or b < last
    ]
    return " and ".join(terms) or "True"


def workshop(load: Judged) -> Workshop:
    return Workshop(load.schema, load.filters, BITS, 0, load.events)


def rates(load: Judged, plans: Sequence[IndexPlan], events: EventBatch | None = None) -> list[float]:
    """The false-positive rate of each plan."""
    candidates = [Candidate.of(plan, load.filters, 0, count=False) for plan in plans]
    scores = evaluate_here(candidates, BoxTable.of(load.schema, load.filters), events or load.later)
    assert not any(score.false_negatives for score in scores)
    return [rounded(score.fpr) for score in scores]


def by_dimensions(load: Judged, methods: Mapping[str, tuple[str, str]]) -> dict[str, dict[int, float]]:
    """The rates of methods, each a selection and an indexer, for every number of dimensions."""
    shop = workshop(load)
    statistics = shop.statistics()
    shop = replace(shop, statistics=lambda: statistics)
    numbers = range(len(load.schema), 0, -1)
    keys = [(name, number) for name in methods for number in numbers]
    chosen = {
        (selection, number): replace(shop, dimensions=number).select(selection)
        for selection, _ in methods.values()
        for number in numbers
    }
    plans = [
        make_over(methods[name][1], shop.training, BITS, chosen[methods[name][0], number], shop.judge)
        for name, number in keys
    ]
    found: dict[str, dict[int, float]] = {name: {} for name in methods}
    for (name, number), rate in zip(keys, rates(load, plans), strict=True):
        found[name][number] = rate
    return found


def averaged(many: Sequence[dict[str, dict[int, float]]]) -> dict[str, dict[int, float]]:
    """The mean of several sets of the same lines."""
    return {
        name: {x: rounded(float(np.mean([lines[name][x] for lines in many]))) for x in line}
        for name, line in many[0].items()
    }


@dataclass(frozen=True)
class Chart:
    """One picture of lines."""

    title: str
    about: str
    across: str
    lines: Lines
    upright: str = "false positives, share of what is delivered"
    percent: bool = True
    log: bool = False
    marks: tuple[tuple[float, str], ...] = ()  # upright lines with a word


def write(place: str, figures: Mapping[str, Any], charts: Mapping[str, Chart]) -> None:
    """The data as JSON, and a PNG for each chart."""
    folder = OUT / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{place}.json").write_text(json.dumps(figures, indent=2) + "\n")
    for name, chart in charts.items():
        draw(chart, folder / f"{name}.png")


def draw(chart: Chart, path: Path) -> None:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(chart.title)
        axes.text(0, 1.025, chart.about, transform=axes.transAxes, fontsize=9.5).set_in_layout(False)
        for i, (name, line) in enumerate(chart.lines.items()):
            points = sorted(line.items())
            marker = MARKERS[i % len(MARKERS)] if len(points) <= MOST_MARKED else None
            look = {"color": COLORS[i % len(COLORS)], "marker": marker}
            axes.plot(*zip(*points, strict=True), label=name, alpha=0.9, **look)
        for at, word in chart.marks:
            axes.axvline(at, color="#9ca3af", linestyle="--", linewidth=1)
            axes.text(at, 1.0, f" {word}", transform=axes.get_xaxis_transform(), va="top", fontsize=9)
        axes.set_xlabel(chart.across)
        axes.set_ylabel(chart.upright)
        axes.grid(True, axis="y")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        if chart.log:
            axes.set_yscale("log")
        elif chart.percent:
            axes.set_ylim(0, 1.02)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.legend(loc="best")
        figure.savefig(path, format="png", dpi=130, facecolor="white", metadata={"Software": None})
