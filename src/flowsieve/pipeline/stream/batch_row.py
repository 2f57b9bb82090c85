"""What a micro-batch came to, as values: its entry in the window, its row, what is offered because of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flowsieve.index.plan import plan_to_json
from flowsieve.pipeline.stream.decision import scores
from flowsieve.pipeline.stream.landed_files import ASIDE, DELIVERIES, EVENTS, FileAccount
from flowsieve.pipeline.stream.landing import HeldSubscriptions, RunningIndex
from flowsieve.pipeline.stream.micro_batch import MicroBatch
from flowsieve.pipeline.stream.planner_thread import PlanningOutcome
from flowsieve.pipeline.stream.replanning import Replanned
from flowsieve.pipeline.stream.state_files import PlanningOrder, StreamState, Totals
from flowsieve.pipeline.stream.window import Window, WindowEntry, WindowReading

WORST = 5  # subscriptions that a row names
Row = Mapping[str, Any]


def entry_of(
    batch: int, found: MicroBatch, index: RunningIndex, held: HeldSubscriptions, window: Window
) -> WindowEntry:
    """The entry that a window gets for it; without any time it counts as of the window's newest."""
    timed = [
        (file.first, file.last) for file in found.files if file.first is not None and file.last is not None
    ]
    first = min((first for first, _ in timed), default=window.newest)
    last = max((last for _, last in timed), default=window.newest)
    files = tuple(file.path for file in found.files if file.kind == EVENTS and file.good)
    ids = held.wanted.ids
    return WindowEntry(batch, index.version, index.schema.digest, ids, first, last, files, found.sums)


def added(totals: Totals, found: MicroBatch) -> Totals:
    """The totals with one more micro-batch."""
    files = found.files
    return Totals(
        totals.events + found.sums.events,
        totals.deliveries + sum(file.good for file in files if file.kind == DELIVERIES),
        totals.files + len(files),
        totals.unreadable + sum(file.unreadable for file in files),
        {kind: totals.aside[kind] + sum(getattr(file, kind) for file in files) for kind in ASIDE},
        {name: totals.counts[name] + count for name, count in found.sums.counts.items()},
    )


def row_of(
    state: StreamState,
    found: MicroBatch,
    reading: WindowReading,
    dimensions: Mapping[str, Mapping[str, float]],
    index: RunningIndex,
    held: HeldSubscriptions,
    outcome: PlanningOutcome | None,
    why: str | None,
) -> Row:
    """What is told of it, and kept."""
    newest = max((file.last for file in found.files if file.last is not None), default=None)
    aside = {kind: sum(getattr(file, kind) for file in found.files) for kind in ASIDE}
    offer = None if outcome is None else outcome.fate
    return {
        "batch": state.batch,
        "time": _time(state.window.newest),
        "micros": state.window.newest,
        "plan": index.version,
        "events": found.sums.events,
        "events_per_s": reading.per_second,
        "fpr": reading.fpr,
        "fpr_measured": reading.measured,
        "fpr_computed": reading.computed,
        "window": {"from": _time(reading.first), "to": _time(reading.until), "events": reading.total.events},
        "dimensions": dimensions,
        "subscriptions": len(held.wanted),
        "subscriptions_aside": held.aside,
        "worst": reading.worst(WORST),
        "aside": {**aside, "files": sum(file.unreadable for file in found.files)},
        "totals": {name: getattr(state.totals, name) for name in vars(state.totals)},
        "lag_s": None if newest is None else round(time.time() - newest / 1e6, 3),
        "planning": why,
        "planned": None if outcome is None else outcome.to_json(),
        "offer": offer if why is None else f"planning: {why}",
        "executors": len(found.workers),
    }


def offer_of(order: PlanningOrder, made: Replanned, why: str, auto: bool) -> dict[str, Any]:
    """What is offered."""
    return {
        "plan": plan_to_json(made.plan),
        "index": order.version,
        "why": f"{order.why}; {why}",
        "method": made.method,
        "score": scores(made.old, made.new),
        "window": {
            "from": _time(order.first),
            "to": _time(order.until),
            "planned_on": made.planned_on,
            "held_back": made.held_back,
        },
        "auto": auto,
    }


def aside_of(file: FileAccount) -> dict[str, Any]:
    """What is told of a file that had rows set aside."""
    counts = {kind: getattr(file, kind) for kind in ASIDE if getattr(file, kind)}
    return {"file": file.path, "whole": file.unreadable, **counts, "reasons": list(file.reasons)}


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="milliseconds")
