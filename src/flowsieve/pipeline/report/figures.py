"""All figures of a report, each with a text that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from flowsieve.config.files import make_folder, writing
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.report import plots
from flowsieve.pipeline.report.plan_slices import busiest_axes, middle, slice_of
from flowsieve.pipeline.report.report_page import Shown, page
from flowsieve.pipeline.report.sweeps import Measured, Sweep


def of_sweep(found: Sweep) -> Iterator[Shown]:
    """What bits, dimensions and entries are worth."""
    plans = found.plans
    yield Shown(
        "bits.png",
        "Bits",
        "Longer dz tell events apart more finely; the curve shows where more bits stop paying. "
        "The large point of each line is the plan as it is.",
        plots.by_bits(found.by_bits, plans),
    )
    if any(one.dimensions for one in (*found.by_dimensions, *plans)):
        yield Shown(
            "dimensions.png",
            "Dimensions",
            "Every dimension takes bits from the others. A line is a regular index over the first so many of a plan's "
            "dimensions; how far the plan's own point lies below it is what it gains by its cuts.",
            plots.by_dimensions(found.by_dimensions, plans),
        )
    yield Shown(
        "entries.png",
        "Entries",
        "More dz per subscription follow its boxes more closely and fill the tables; on a log scale.",
        plots.by_entries(found.by_budget, plans),
    )


def of_plans(
    plans: Mapping[str, IndexPlan],
    events: EventBatch,
    filters: Sequence[Filter],
    axes: tuple[str, str] | None = None,
) -> Iterator[Shown]:
    """What each plan looks like along two attributes: those asked for, or those that are cut most finely."""
    if len(events.schema.names) < 2:
        return
    at = middle(events)
    axes = axes or busiest_axes(plans.values(), at)
    for label, plan in plans.items():
        drawn = slice_of(plan, *axes, at)
        yield Shown(
            f"plan-{re.sub(r'[^0-9A-Za-z._-]+', '-', label)}.png",
            f"How {label} cuts the space",
            f"The cells of {label} along {axes[0]} and {axes[1]}. Cells should be small where events and the sides of "
            "subscriptions come together, and may be large where nobody looks.",
            plots.cells(drawn, label, events, filters),
        )


def write_report(
    folder: Path, plans: Sequence[Measured], figures: Sequence[Shown], facts: Sequence[str]
) -> list[str]:
    """Write report.html and every figure as a PNG; returns the files."""
    make_folder(folder)
    files = {"report.html": page(plans, figures, facts).encode()} | {
        figure.file: figure.png for figure in figures
    }
    for name, data in files.items():
        with writing(folder / name):
            (folder / name).write_bytes(data)
    return [str(folder / name) for name in files]
