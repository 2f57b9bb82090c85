"""What the job knows after each micro-batch, a file for each, so that a batch that is seen twice changes nothing.

The state after batch n is made of that after n - 1 and of the batch alone. Spark repeats a batch that it has not
noted as done, with the same files; so a repeated one makes the same state again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flowsieve.errors import PipelineError
from flowsieve.pipeline.stream.decision import Pacing
from flowsieve.pipeline.stream.drift import Baseline
from flowsieve.pipeline.stream.landed_files import ASIDE, COUNTED
from flowsieve.pipeline.stream.micro_batch import ARRAYS, LandedSums
from flowsieve.pipeline.stream.window import Window, WindowEntry

KEPT = 3  # states that are kept though their entries are over
NUMBERS = ("events", "weight", "judged", "wanted", "unwanted")


@dataclass(frozen=True)
class PlanningOrder:
    """That a plan is to be made: from which batch on, why, of which files and how many events, under which index.

    Events from `held_since` on are held back to judge it (None: some by a hash of their ids).
    """

    batch: int
    why: str
    version: int
    first: int
    until: int
    events: int
    held_since: int | None
    files: tuple[str, ...]


@dataclass(frozen=True)
class Totals:
    """What was counted since the job first began; a batch counts once however often it is seen."""

    events: int = 0
    deliveries: int = 0
    files: int = 0
    unreadable: int = 0
    aside: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ASIDE, 0))
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))


@dataclass(frozen=True, eq=False)
class StreamState:
    """All that the next micro-batch depends on."""

    batch: int = -1
    window: Window = field(default_factory=Window)
    totals: Totals = field(default_factory=Totals)
    baseline: Baseline | None = None
    pacing: Pacing = field(default_factory=Pacing)
    order: PlanningOrder | None = None  # under way


class StateFiles:
    """The states of the latest micro-batches in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def latest(self) -> StreamState:
        """The state after the last batch that has one."""
        known = self._batches()
        return self.after(known[-1]) if known else StreamState()

    def after(self, batch: int) -> StreamState:
        """The state after a batch; before the first there is nothing."""
        if batch < 0:
            return StreamState()
        known = self._load(batch)
        meta = known["meta"]
        entries = [_entry(known if each == batch else self._load(each)) for each in meta["window"]]
        baseline = meta["baseline"]
        if baseline is not None:
            baseline = Baseline(**baseline, histogram=known["arrays"]["baseline"])
        order = meta["order"]
        return StreamState(
            batch,
            Window(tuple(entries)),
            Totals(**meta["totals"]),
            baseline,
            Pacing(**meta["pacing"]),
            None if order is None else PlanningOrder(**{**order, "files": tuple(order["files"])}),
        )

    def keep(self, state: StreamState) -> None:
        """Write a state, whole at once, and forget those that nothing depends on any more."""
        entry, baseline = state.window.entries[-1], state.baseline
        told = {
            "window": [each.batch for each in state.window.entries],
            "entry": {
                name: getattr(entry, name)
                for name in ("batch", "version", "schema", "ids", "first", "last", "files")
            },
            "sums": {name: getattr(entry.sums, name) for name in (*NUMBERS, "counts")},
            "totals": asdict(state.totals),
            "baseline": None
            if baseline is None
            else {key: value for key, value in vars(baseline).items() if key != "histogram"},
            "pacing": asdict(state.pacing),
            "order": None if state.order is None else asdict(state.order),
        }
        arrays = {name: getattr(entry.sums, name) for name in ARRAYS}
        if baseline is not None:
            arrays["baseline"] = baseline.histogram
        text = np.frombuffer(json.dumps(told).encode(), np.uint8)
        new = self._folder / f".{state.batch}.npz"
        with new.open("wb") as file:
            np.savez(file, meta=text, **arrays)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path(state.batch))
        first = min(state.window.entries[0].batch, state.batch - KEPT)
        for batch in self._batches():
            if batch < first or batch > state.batch:
                self._path(batch).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch:012d}.npz"

    def _batches(self) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.glob("[0-9]*.npz"))

    def _load(self, batch: int) -> dict[str, Any]:
        path = self._path(batch)
        try:
            with np.load(path, allow_pickle=False) as found:
                meta = json.loads(found["meta"].tobytes())
                return {"meta": meta, "arrays": {name: found[name] for name in found.files if name != "meta"}}
        except (OSError, ValueError, KeyError) as error:
            raise PipelineError(
                f"{path} cannot be read ({error}), and the stream cannot go on without it; begin anew with "
                "another --out"
            ) from None


def _entry(known: dict[str, Any]) -> WindowEntry:
    meta, arrays = known["meta"], known["arrays"]
    sums = LandedSums(**meta["sums"], **{name: arrays[name] for name in ARRAYS})
    entry = {**meta["entry"], "ids": tuple(meta["entry"]["ids"]), "files": tuple(meta["entry"]["files"])}
    return WindowEntry(**entry, sums=sums)
