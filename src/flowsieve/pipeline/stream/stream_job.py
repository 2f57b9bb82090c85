"""The streaming job: files land, statistics follow, and where traffic has changed a plan is made and offered.

A micro-batch is a set of files that Spark's checkpoint fixes; all that is decided on it follows from the state after
the batch before, and is kept under the batch's number. So a batch that is seen again, after kill -9, changes nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsieve.errors import BadInput, FlowsieveError
from flowsieve.pipeline.planning.holdout import Holdout
from flowsieve.pipeline.runtime.spark_failure import failures, told
from flowsieve.pipeline.stream.batch_row import Row, added, aside_of, entry_of, offer_of, row_of
from flowsieve.pipeline.stream.decision import MovePrice, Thresholds, why_plan
from flowsieve.pipeline.stream.drift import Baseline, drift
from flowsieve.pipeline.stream.landed_files import TimeLimits
from flowsieve.pipeline.stream.landing import HeldSubscriptions, LandingFolder, RunningIndex
from flowsieve.pipeline.stream.micro_batch import LandedSums, MicroBatch, summed_up, window_events
from flowsieve.pipeline.stream.offering import NOT_HEARD, ControllerLink, offered_until_heard
from flowsieve.pipeline.stream.planner_thread import PlannerThread, PlanningOutcome
from flowsieve.pipeline.stream.replanning import (
    GRACE,
    HELD_BACK,
    PlanningOptions,
    WindowEvents,
    replan,
)
from flowsieve.pipeline.stream.series import Series
from flowsieve.pipeline.stream.state_files import PlanningOrder, StateFiles, StreamState, Totals
from flowsieve.pipeline.stream.window import WindowReading
from flowsieve.pipeline.stream.yardsticks import Yardsticks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SOURCE = "path string, modificationTime timestamp, length bigint, content binary"
CHECKPOINTS = (  # by renaming; the other one starts processes for every file
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
LOOK = 0.25  # seconds between two looks at whether to end
MOST_PLANNED = 1_000_000  # events of the window that are read for a plan, the latest ones
SETTLED = 0.2  # of the window traffic has to be what it is now before a plan is made for it
LAST_OFFER = 15.0  # seconds that a job that ends waits for a controller


@dataclass(frozen=True)
class StreamOptions:
    """How long a window is, how often files are looked for (seconds), and what a plan has to be like."""

    window: float = 60.0
    trigger: float = 1.0
    late: float = 60.0
    max_files: int = 200
    thresholds: Thresholds = field(default_factory=Thresholds)
    price: MovePrice = field(default_factory=MovePrice)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    auto: bool = False  # have the controller go over without asking anybody

    def __post_init__(self) -> None:
        for name in ("window", "trigger", "late"):
            if not getattr(self, name) > 0:
                raise BadInput(f"--{name} is {getattr(self, name)}; right is a number of seconds above 0")
        if self.max_files < 1:
            raise BadInput(f"--max-files is {self.max_files}; right is 1 or more")

    @property
    def span(self) -> int:
        """The window in microseconds."""
        return int(self.window * 1e6)


class StreamJob:
    """A job over one landing folder; `run` has it at work."""

    def __init__(
        self,
        spark: SparkSession,
        landing: LandingFolder,
        out: Path,
        options: StreamOptions,
        link: ControllerLink | None = None,
        tell: Callable[[Row], None] = lambda row: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._spark, self._landing, self._options, self._link = spark, landing, options, link
        self._tell, self._note = tell, note
        self._checkpoint = out / "checkpoint"
        self._states, self._series = StateFiles(out / "state"), Series(out)
        self._yardsticks = Yardsticks(spark, options.planning.max_dz)
        self._planner = PlannerThread(self._carry_out)
        self._query_id: Future[str] = Future()
        self._leaving = threading.Event()
        self._failure: FlowsieveError | None = None
        self._known: StreamState | None = None
        self._noted: set[str] = set()
        self._stated = 0  # when subscriptions were last written, by the events' time

    def run(self, ended: threading.Event, once: bool = False) -> Totals:
        """Work until somebody ends it; with `once`, until all that is there is done. Returns what was counted."""
        if not self._landing.is_there():
            raise BadInput(
                "there is no such folder; right is where a controller lands telemetry",
                place=self._landing.folder,
            )
        if not self._wait_for_index(ended, once):
            return Totals()
        try:
            query = self._start(once)
        except failures() as error:
            raise told(error, "the stream does not start") from None
        self._query_id.set_result(str(query.id))
        order = self._states.latest().order
        if order is not None:
            self._planner.start(order)
        try:
            while not ended.is_set() and not query.awaitTermination(LOOK):  # type: ignore[arg-type]
                pass
            if once and not ended.is_set():
                self._planner.wait(GRACE * self._options.planning.deadline + LAST_OFFER)
        except failures() as error:
            raise self._failure or told(error, "the stream ended") from None
        finally:
            self._leaving.set()
            query.stop()
            self._planner.wait(LOOK)
            self._planner.close()
        return self._settled().totals

    def _settled(self) -> StreamState:
        """The last state, without an order that was carried out since: it need not be again."""
        state, outcome = self._states.latest(), self._planner.finished()
        if state.order is None or outcome is None or outcome.batch != state.order.batch:
            return state
        if outcome.fate == NOT_HEARD:
            return state
        state = replace(state, order=None)
        self._states.keep(state)
        return state

    def _wait_for_index(self, ended: threading.Event, once: bool) -> bool:
        """Wait until a running index is there; whether it is."""
        while self._landing.index() is None:
            trouble = self._landing.troubles.get("index")
            if once:
                raise BadInput(
                    f"has no index that can be read{f' ({trouble})' if trouble else ''}; right is index/1.json",
                    place=self._landing.folder,
                )
            self._note_once(trouble or f"{self._landing.folder} has no index yet; waiting for one")
            if ended.wait(self._options.trigger):
                return False
        return True

    def _start(self, once: bool) -> StreamingQuery:
        options = self._options
        self._spark.conf.set(*CHECKPOINTS)
        files = (
            self._spark.readStream.format("binaryFile")
            .schema(SOURCE)
            .option("maxFilesPerTrigger", options.max_files)
            .option("ignoreMissingFiles", True)  # retention may be faster than we are
            .load(self._landing.glob)
        )
        writer = files.writeStream.foreachBatch(self._heard).option(
            "checkpointLocation", str(self._checkpoint.absolute())
        )
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{options.trigger} seconds").start()

    def _heard(self, files: DataFrame, batch: int) -> None:
        try:
            self._take(files, batch)
        except FlowsieveError as error:
            self._failure = error
            raise

    def _take(self, files: DataFrame, batch: int) -> None:
        """Take up a micro-batch."""
        before = (
            self._known if self._known and self._known.batch == batch - 1 else self._states.after(batch - 1)
        )
        index = self._landing.index()
        assert index is not None
        held = self._landing.subscriptions(index.schema)
        for trouble in self._landing.troubles.values():
            self._note_once(trouble)
        now = time.time_ns() // 1000
        limits = TimeLimits(before.window.newest - self._options.span, now, int(self._options.late * 1e6))
        nothing = LandedSums.nothing(len(index.schema), len(held.wanted))
        # Half of the slots: the rest is for planning, and each has to load kernels before its first event.
        files = files.coalesce(max(1, self._spark.sparkContext.defaultParallelism // 2))
        found = summed_up(files, self._yardsticks.of(index, held), limits, nothing)
        state, row = self._followed(before, batch, found, index, held)
        aside = [aside_of(file) for file in found.files if file.reasons]
        if aside:
            self._series.set_aside(batch, aside)
        self._series.add(row)
        self._states.keep(state)
        self._known = state
        if state.order is not None and state.order.batch == batch:
            self._planner.start(state.order)
        self._tell(row)

    def _followed(
        self, before: StreamState, batch: int, found: MicroBatch, index: RunningIndex, held: HeldSubscriptions
    ) -> tuple[StreamState, Row]:
        """The state after a batch, and its row."""
        options, sums = self._options, found.sums
        window = before.window.taking(entry_of(batch, found, index, held, before.window), options.span)
        reading = window.reading(index.schema)
        baseline = before.baseline
        if baseline is None or not baseline.fits(index.version, index.schema.digest):
            since = window.entries[-1].first
            baseline = Baseline.begin(index.version, index.schema.digest, since, sums.histogram)
        rates = reading.computed, reading.measured
        drifts = drift(baseline.histogram, reading.total.histogram)
        if not baseline.complete:  # it is being compared with itself
            drifts = 0 * drifts
            baseline = baseline.grown(
                window.newest, sums.events, sums.histogram, rates, options.span, options.thresholds.least
            )
        outcome = self._planner.finished()
        order = before.order
        if order is not None and outcome is not None and outcome.batch == order.batch:
            order = None
        pacing = before.pacing.followed(index.version, window.newest, options.thresholds)
        recent = window.recent(MOST_PLANNED).alike(options.thresholds.drift)
        why = None if order else why_plan(options.thresholds, pacing, reading, baseline, drifts)
        if recent.events < options.thresholds.least or recent.span < SETTLED * options.span:
            why = None  # there is not enough yet of what traffic is like now
        if why is not None:
            timed = "time" not in index.schema  # else their times are in no column of the events
            held_since = recent.held_since(HELD_BACK) if timed else None
            first, events = min(each.first for each in recent.entries), recent.events
            order = PlanningOrder(
                batch, why, index.version, first, reading.until, events, held_since, recent.files
            )
            pacing = pacing.planned(reading.until, options.thresholds)
        totals = added(before.totals, found)
        state = StreamState(batch, window, totals, baseline, pacing, order)
        self._state_subscriptions(reading)
        return state, row_of(state, found, reading, reading.dimensions(drifts), index, held, outcome, why)

    def _state_subscriptions(self, reading: WindowReading) -> None:
        """Write what each subscription gets, a few times in a window."""
        if reading.until - self._stated >= self._options.span // 4 or not self._stated:
            self._stated = reading.until
            self._series.write_subscriptions(reading.subscriptions())

    # Beside the stream.

    def _carry_out(self, order: PlanningOrder) -> PlanningOutcome:
        """Make a plan, judge it, and offer it if it pays."""
        began, figures = time.monotonic(), dict[str, Any]()
        try:
            fate = self._replanned(order, figures)
        except FlowsieveError as error:
            fate = f"no plan: {error}"
        except failures() as error:
            fate = f"no plan: {told(error)}"
        except Exception as error:  # a mistake of ours: the statistics go on
            fate = f"no plan: {type(error).__name__}: {error}"
        figures["seconds"] = round(time.monotonic() - began, 3)
        self._note(f"batch {order.batch}: {fate}")
        return PlanningOutcome(order.batch, fate, figures)

    def _replanned(self, order: PlanningOrder, figures: dict[str, Any]) -> str:
        index = self._landing.index()
        if index is None or index.version != order.version:
            return "not made: the index has changed since"
        held = self._landing.subscriptions(index.schema)
        files = self._landing.present(list(order.files))
        if not files or not len(held.wanted):
            return "not made: the events, or the subscriptions, are gone"
        now = time.time_ns() // 1000
        limits = TimeLimits(order.first, now, int(self._options.late * 1e6))
        source = self._spark.read.format("binaryFile").option("ignoreMissingFiles", True).load(files)
        events = window_events(source, index.schema, limits)
        kept = WindowEvents(events, order.events, Holdout(HELD_BACK, order.held_since))
        covers = self._yardsticks.covers(index)
        made = replan(self._spark, kept, held.wanted, index.plan, covers, self._options.planning)
        pays, why = self._options.price.judge(made.old, made.new)
        body = offer_of(order, made, why, self._options.auto)
        figures |= {
            "old": made.old.fpr,
            "new": made.new.fpr,
            "method": made.method,
            "planned_on": made.planned_on,
            "planning_seconds": made.seconds,
        }
        path = self._series.write_plan(order.batch, body)
        if not pays:
            return f"not offered: {why}"
        if self._link is None:
            return f"better, and nobody to offer it to: {why}; it is in {path}"
        fate = offered_until_heard(
            self._link, self._query_id.result(), order.batch, body, self._leaving.wait, self._note
        )
        return f"offered, {fate}: {why}" if not fate.startswith(("refused", NOT_HEARD)) else fate

    def _note_once(self, text: str) -> None:
        if text not in self._noted and len(self._noted) < 1000:
            self._noted.add(text)
            self._note(text)
