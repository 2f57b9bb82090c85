"""Plans measured with fewer bits, fewer dimensions and other budgets, for plots of what each is worth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsieve.content.filter import Filter
from flowsieve.content.schema import shown
from flowsieve.errors import BadInput
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.evaluation.covers import candidates_on
from flowsieve.pipeline.evaluation.evaluation import Candidate, Score, evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flowsieve.pipeline.matching.boxes import BoxTable

BUDGETS = (1, 2, 4, 8, 16, 32, 64, 128)
STEPS = 7  # lengths of dz that are tried
NEEDED = ("kind", "bits", "fpr", "false_positives", "deliveries", "matches", "prefixes", "prefixes_max")


@dataclass(frozen=True)
class Measured:
    """A plan and what an evaluation found of it; what is not known of it is None."""

    label: str
    kind: str
    bits: int
    dimensions: int | None
    max_dz: int | None
    fpr: float
    false_positives: int
    deliveries: int
    matches: int
    prefixes: int
    prefixes_max: int

    @classmethod
    def of(cls, label: str, score: Score, max_dz: int) -> Measured:
        found = score.to_json()
        return cls(
            label, dimensions=len(score.plan.dimensions), max_dz=max_dz, **{key: found[key] for key in NEEDED}
        )


@dataclass(frozen=True)
class Sweep:
    """What was measured of some plans: as they are, and with one thing changed at a time.

    `by_dimensions` is of regular plans over the first of each plan's own dimensions: what the selection alone is worth.
    """

    plans: tuple[Measured, ...]
    by_bits: tuple[Measured, ...] = ()
    by_dimensions: tuple[Measured, ...] = ()
    by_budget: tuple[Measured, ...] = ()
    events: int = 0


def read_results(path: Path) -> list[Measured]:
    """Results as `flowsieve evaluate --json` prints them: one object, one with several plans, or a list."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot be read: {error}", place=str(path)) from None
    max_dz = data.get("max_dz") if isinstance(data, Mapping) else None
    rows = data if isinstance(data, list) else data.get("plans", [data]) if isinstance(data, Mapping) else []
    return [_result(row, max_dz, path) for row in rows]


def _result(row: object, max_dz: Any, path: Path) -> Measured:
    right = f"right is what `flowsieve evaluate --json` prints: {', '.join(NEEDED)}"
    if not isinstance(row, Mapping):
        raise BadInput(f"has {shown(row)} for a result; {right}", place=str(path))
    for key in NEEDED:
        if key not in row:
            raise BadInput(f"a result has no {key!r}; {right}", place=str(path))
        number = not isinstance(row[key], bool) and isinstance(row[key], int | float)
        if key != "kind" and not number:
            raise BadInput(f"{key} is {shown(row[key])} in a result; right is a number", place=str(path))
    named = row.get("label") or (Path(str(row["plan"])).stem if "plan" in row else row["kind"])
    dimensions = row.get("dimensions")
    count = len(dimensions) if isinstance(dimensions, list) else dimensions
    own = {key: row[key] for key in NEEDED}
    return Measured(str(named), dimensions=count, max_dz=row.get("max_dz", max_dz), **own)


@dataclass(frozen=True, eq=False)
class SweepTrial:
    """A plan to measure, and the figure that it is for."""

    group: str
    label: str
    plan: IndexPlan
    max_dz: int

    @property
    def key(self) -> tuple[int, int]:
        """The same for trials that need to be measured only once."""
        return id(self.plan), self.max_dz


def covers_of(
    spark: SparkSession, trials: Sequence[SweepTrial], filters: Sequence[Filter]
) -> list[Candidate]:
    """A candidate for each trial that differs from those before it."""
    return [candidates_on(spark, [trial.plan], filters, trial.max_dz)[0] for trial in _different(trials)]


def sweep(
    trials: Sequence[SweepTrial], candidates: Sequence[Candidate], boxes: BoxTable, events: DataFrame
) -> Sweep:
    """Measure what `covers_of` has made of the trials, in one pass over the events."""
    found = evaluate(candidates, boxes, events)
    scores = {trial.key: score for trial, score in zip(_different(trials), found, strict=True)}
    groups: dict[str, list[Measured]] = {"plans": [], "bits": [], "dimensions": [], "budget": []}
    for trial in trials:
        groups[trial.group].append(Measured.of(trial.label, scores[trial.key], trial.max_dz))
    plans, bits, dimensions, budget = (tuple(group) for group in groups.values())
    return Sweep(plans, bits, dimensions, budget, found[0].events if found else 0)


def _different(trials: Sequence[SweepTrial]) -> list[SweepTrial]:
    return list({trial.key: trial for trial in trials}.values())


def trials_of(plans: Mapping[str, IndexPlan], max_dz: int) -> Iterator[SweepTrial]:
    """Plans, by their labels, as they are and with one thing changed at a time."""
    orders: set[tuple[tuple[str, ...], int]] = set()
    for label, plan in plans.items():
        yield SweepTrial("plans", label, plan, max_dz)
        for bits in ladder(plan.bits):
            yield SweepTrial("bits", label, plan.shortened(bits), max_dz)
        names = plan.dimensions
        if (names, plan.bits) not in orders:
            orders.add((names, plan.bits))
            for count in range(1, len(names) + 1):
                regular = RegularPlan.make(plan.schema, plan.bits, names[:count], plan.bits)
                yield SweepTrial("dimensions", f"regular, dimensions of {label}", regular, max_dz)
        for budget in sorted({*BUDGETS, max_dz} - {0}):
            yield SweepTrial("budget", label, plan, budget)


def ladder(bits: int) -> list[int]:
    """Some lengths from few bits to all of them."""
    return sorted({max(1, round(bits * step / STEPS)) for step in range(1, STEPS + 1)})
