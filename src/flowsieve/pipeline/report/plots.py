"""Figures: what bits, dimensions and entries are worth, and what a plan looks like in two dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute
from flowsieve.errors import PipelineError
from flowsieve.pipeline.report.plan_slices import Corners, Slice, coordinates, limits, outlines
from flowsieve.pipeline.report.sweeps import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#444444")
MARKERS = "osD^vP*"
INK, SOFT, GRID, EVENTS, WANTED = "#22252b", "#6b7280", "#e5e7eb", "#0072b2", "#d55e00"
MOST_DOTS, MOST_BOXES = 3_000, 8
WIDTH, LETTER = 440, 5  # of a picture of cells and of a letter in it, in points
LOOK: Any = {
    "font.size": 10.5,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlepad": 24,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "grid.color": GRID,
    "lines.linewidth": 1.9,
    "lines.markersize": 5.5,
    "legend.frameon": False,
}


def by_bits(curves: Sequence[Measured], plans: Sequence[Measured]) -> bytes:
    """The rate of false positives against the length of dz, as a PNG; each plan has its curve, and its own point."""
    with _drawing("False positives against bits", _budget_text(plans)) as (axes, done):
        _draw(axes, curves, plans, lambda found: found.bits)
        axes.set_xlabel("bits of a dz")
        _whole_ticks(axes)
        return done()


def by_dimensions(curves: Sequence[Measured], plans: Sequence[Measured]) -> bytes:
    """The same against the number of dimensions: of regular plans over the first of each plan's dimensions."""
    about = f"a line takes the first so many dimensions of a plan; {_budget_text(plans)}"
    with _drawing("False positives against dimensions", about) as (axes, done):
        _draw(axes, curves, plans, lambda found: found.dimensions)
        axes.set_xlabel("indexed dimensions")
        _whole_ticks(axes)
        return done()


def by_entries(curves: Sequence[Measured], plans: Sequence[Measured]) -> bytes:
    """The same against the entries that all subscriptions together ask for."""
    with _drawing(
        "False positives against entries", "along a line, subscriptions may have more and more dz: 1, 2, 4, …"
    ) as (axes, done):
        _draw(axes, curves, plans, lambda found: found.prefixes)
        axes.set_xscale("log")
        axes.set_xlabel("entries: dz of all subscriptions")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(True, axis="x", which="major")
        return done()


def cells(slice: Slice, label: str, events: EventBatch, filters: Sequence[Filter]) -> bytes:
    """The cells of a plan along two attributes, with events and some subscriptions, as a PNG."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch, Rectangle

    others = [name for name in slice.at if name not in (slice.x.name, slice.y.name)]
    held = f"; the other {len(others)} attributes at their medians" if others else ""
    few = "" if slice.bits == slice.plan.bits else f" from the first {slice.bits} of {slice.plan.bits} bits"
    number = "1 cell" if slice.cells == 1 else f"{slice.cells:,} cells"
    with _drawing(f"{label}: how it cuts the space", f"{number}{few}{held}", size=(7.6, 6.6)) as (axes, done):
        deepest = max(1, slice.bits)
        for found in sorted(slice.rectangles, key=lambda found: (not found.under, -found.order)):
            axes.add_patch(
                Rectangle(
                    (found.x0, found.y0), found.x1 - found.x0, found.y1 - found.y0,
                    fill=False, edgecolor=INK, alpha=0.25 + 0.6 * (1 - found.order / deepest) ** 2,
                    linewidth=0.45 + 1.6 * (1 - found.order / deepest) ** 2,
                )
            )  # fmt: skip
        _name_cells(axes, slice)
        some = events.take(np.arange(min(MOST_DOTS, len(events))))
        x, y = (_spread(attribute, some) for attribute in (slice.x, slice.y))
        axes.scatter(x, y, s=5, color=EVENTS, alpha=0.35, linewidths=0, zorder=3)
        boxes = _boxes(slice, filters)
        patches = [Rectangle((x0, y0), x1 - x0, y1 - y0) for x0, x1, y0, y1 in boxes]
        look = {"facecolor": (0.835, 0.369, 0.0, 0.05), "edgecolor": WANTED, "linewidth": 1.5, "zorder": 4}
        axes.add_collection(PatchCollection(patches, match_original=False, **look))
        for axis, attribute in ((axes.xaxis, slice.x), (axes.yaxis, slice.y)):
            _label(axis, attribute)
        axes.set_xlim(*limits(slice.x))
        axes.set_ylim(*limits(slice.y))
        shown = [
            Patch(facecolor="none", edgecolor=INK, label="cells, earlier cuts heavier"),
            axes.scatter([], [], s=16, color=EVENTS, label=f"{len(some):,} events"),
            Patch(facecolor=(0.835, 0.369, 0.0, 0.08), edgecolor=WANTED, label=f"{len(boxes)} subscriptions"),
        ]
        axes.legend(handles=shown, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
        return done()


@contextmanager
def _drawing(
    title: str, about: str, size: tuple[float, float] = (7.6, 4.8)
) -> Iterator[tuple[Axes, Callable[[], bytes]]]:
    """Axes with a title, and what makes a PNG of them. No display is asked for, and no state is shared."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PipelineError(f"plots need matplotlib ({error}); `pip install matplotlib==3.11.*`") from None

    def done() -> bytes:
        file = BytesIO()
        figure.savefig(file, format="png", dpi=160, facecolor="white", metadata={"Software": None})
        return file.getvalue()

    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(title)
        axes.text(0, 1.025, about, transform=axes.transAxes, color=SOFT, fontsize=9.5).set_in_layout(False)
        yield axes, done


def _draw(
    axes: Axes, curves: Sequence[Measured], plans: Sequence[Measured], x: Callable[[Measured], int | None]
) -> None:
    labels = list(dict.fromkeys(found.label for found in (*plans, *curves)))
    for i, label in enumerate(labels):
        color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
        line = sorted((at, found.fpr) for found in curves if found.label == label and (at := x(found)))
        own = [(at, found.fpr) for found in plans if found.label == label and (at := x(found))]
        if line:
            axes.plot(*zip(*line, strict=True), color=color, marker=marker, label=label, zorder=2)
        if own:
            axes.plot(
                *zip(*own, strict=True), color=color, marker=marker, linestyle="none", markersize=10,
                markeredgecolor="white", markeredgewidth=1.2, label=None if line else label, zorder=3,
            )  # fmt: skip
    axes.set_ylabel("false positives, share of what is delivered")
    axes.yaxis.set_major_formatter(
        lambda value, _: f"{value:.0%}" if value >= 0.02 or not value else f"{value:.1%}"
    )
    axes.set_ylim(bottom=0)
    axes.grid(True, axis="y")
    if labels:
        axes.legend(loc="best")


def _whole_ticks(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _budget_text(plans: Sequence[Measured]) -> str:
    budgets = {found.max_dz for found in plans}
    if len(budgets) != 1 or None in budgets:
        return "each with its own number of dz per subscription"
    (budget,) = budgets
    return f"at most {budget} dz per subscription" if budget else "any number of dz per subscription"


def _name_cells(axes: Axes, slice: Slice) -> None:
    """Write the dz into cells that have room for it."""
    x, y = (high - low for low, high in map(limits, (slice.x, slice.y)))
    for found in slice.rectangles:
        width, height = (found.x1 - found.x0) / x * WIDTH, (found.y1 - found.y0) / y * WIDTH
        if found.dz.length == slice.bits and width > LETTER * (slice.bits + 2) and height > 2 * LETTER:
            axes.text(
                (found.x0 + found.x1) / 2, (found.y0 + found.y1) / 2, str(found.dz), ha="center", va="center",
                color=SOFT, fontsize=8, family="monospace", zorder=5, clip_on=True,
            )  # fmt: skip


def _spread(attribute: Attribute, events: EventBatch) -> Any:
    """Where events are drawn: those of an attribute with few values are strewn a little, or they would be one dot."""
    places = coordinates(attribute, events.columns[attribute.name])
    if attribute.kind in ("float", "string") or float(attribute.max) - float(attribute.min) >= 64:
        return places
    return places + np.random.default_rng(0).uniform(-0.38, 0.38, len(places))


def _boxes(slice: Slice, filters: Sequence[Filter]) -> list[Corners]:
    """Boxes of a few subscriptions, evenly chosen among those that say something of the two attributes."""
    whole = (*limits(slice.x), *limits(slice.y))
    schema = slice.plan.schema
    drawn = (outlines(schema, filter.boxes[0], slice.x, slice.y) for filter in filters)
    found = list(dict.fromkeys(box for box in drawn if box != whole))
    at = np.unique(np.linspace(0, len(found) - 1, min(MOST_BOXES, len(found))).astype(int))
    return [found[i] for i in at.tolist()]


def _label(axis: Any, attribute: Attribute) -> None:
    if attribute.kind == "string":
        axis.set_label_text(f"{attribute.name} (a string: its place on the axis)")
    elif attribute.kind in ("enum", "bool"):
        words = [str(attribute.value(i)) for i in range(int(attribute.max) + 1)]
        step = -(-len(words) // 24)
        axis.set_ticks(range(0, len(words), step), words[::step])
        axis.set_label_text(attribute.name)
    else:
        axis.set_label_text(f"{attribute.name} ({attribute.kind})")
