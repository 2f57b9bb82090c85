"""When a plan is made, what a move has to bring, how drift is measured, and what a window forgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, PipelineError
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.evaluation.evaluation import Score
from flowsieve.pipeline.stream.decision import MovePrice, Pacing, Thresholds, why_plan
from flowsieve.pipeline.stream.drift import Baseline, drift
from flowsieve.pipeline.stream.micro_batch import BINS, LandedSums
from flowsieve.pipeline.stream.state_files import PlanningOrder, StateFiles, StreamState
from flowsieve.pipeline.stream.window import Window, WindowEntry

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 63} for name in ("price", "size")})
SECOND = 1_000_000


def sums(events: int = 2_000, covered: int = 100, matched: int = 50, **more: Any) -> LandedSums:
    histogram = np.zeros((2, BINS))
    histogram[:, 0] = events
    arrays = {"covered": np.array([covered, 0]), "matched": np.array([matched, 0]), "histogram": histogram}
    return replace(
        LandedSums.nothing(2, 2), events=events, weight=float(events), judged=events, **(arrays | more)
    )


def entry(batch: int = 0, at: int = 0, version: int = 1, **more: Any) -> WindowEntry:
    given = {"ids": ("a", "b"), "files": (f"file{batch}",), "sums": sums()} | more
    return WindowEntry(batch, version, SCHEMA.digest, first=at, last=at + SECOND, **given)


def why(pacing: Pacing, drifts: tuple[float, float] = (0.0, 0.0), **more: Any) -> str | None:
    reading = Window((entry(at=100 * SECOND, **more),)).reading(SCHEMA)
    baseline = Baseline(1, SCHEMA.digest, 0, 0, 2_000, sums().histogram, 0.3, None, True)
    return why_plan(Thresholds(fpr=0.9, every=50.0, pause=10.0), pacing, reading, baseline, np.array(drifts))


def test_a_plan_is_made_for_drift_for_a_rate_that_rose_and_now_and_then() -> None:
    before = Pacing(80 * SECOND, 1, 10.0)  # 21 s ago
    calm = {"sums": sums(covered=100, matched=68)}
    assert why(before, **calm) is None
    assert why(before, (0.1, 0.3), **calm) == "size has drifted by 0.30, and 0.2 is enough"
    assert why(before) == "the computed false-positive rate rose from 0.300 to 0.500"
    counts = {"published": 1, "received": 100, "delivered": 4, "unwanted": 96}
    told = "the measured false-positive rate is 0.960, and 0.9 is enough"
    assert why(before, sums=replace(calm["sums"], counts=counts)) == told
    assert why(Pacing(51 * SECOND, 1, 10.0), **calm) == "50 s have gone by"
    assert why(Pacing(), **calm) == "this is the first whole window"
    assert why(Pacing(92 * SECOND, 1, 10.0), (1.0, 1.0)) is None  # not again so soon
    assert why(Pacing(), sums=sums(events=999)) is None
    assert (
        why(
            Pacing(),
            ids=(),
            sums=replace(sums(), covered=np.zeros(0), matched=np.zeros(0), missed=np.zeros(0)),
        )
        is None
    )


def test_plans_that_are_of_no_use_are_made_ever_more_seldom_until_another_index_runs() -> None:
    thresholds, pacing = Thresholds(every=100.0, pause=10.0), Pacing()
    pacing = pacing.followed(1, 0, thresholds)
    assert pacing.last is None
    pauses = []
    for now in range(6):
        pacing = pacing.planned(now, thresholds)
        pauses.append(pacing.pause)
    assert pauses == [20.0, 40.0, 80.0, 100.0, 100.0, 100.0]
    assert pacing.followed(1, 9, thresholds) == pacing
    assert pacing.followed(2, 9, thresholds) == Pacing(9, 2, 10.0)


def score(covered: int, matched: int, missed: int = 0) -> Score:
    plan = RegularPlan.make(SCHEMA, bits=4)
    whole = [np.array([number, 0]) for number in (matched, covered, missed)]
    return Score(plan, 100, *whole, np.array([1, 1]))


def test_a_move_pays_if_it_saves_more_than_it_costs_and_is_more_than_noise() -> None:
    price = MovePrice(margin=0.1, horizon=10.0, seconds=1.0)
    assert price.judge(score(150, 50), score(60, 50)) == (
        True,
        "0.667 → 0.167, which saves 0.90 deliveries an event",
    )
    close = price.judge(score(100, 50), score(96, 50))
    assert close == (False, "0.500 → 0.479 is not better by 10%")
    poor, said = replace(price, horizon=1.0).judge(score(60, 50), score(51, 50))
    assert (poor, "does not pay in 1 s" in said) == (False, True)
    assert not price.judge(score(150, 50), score(60, 50, missed=1))[0]


@pytest.mark.parametrize(
    "wrong", [{"drift": 0.0}, {"rise": 1.5}, {"fpr": -1.0}, {"every": 0.0}, {"pause": -1.0}, {"least": 0}]
)
def test_thresholds_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="right"):
        Thresholds(**wrong)  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=10))
def test_drift_is_between_none_and_all_and_does_not_care_which_came_first(
    counts: list[tuple[int, int]],
) -> None:
    one, other = (np.array([[pair[i] for pair in counts]], np.float64) for i in range(2))
    found = drift(one, other)
    assert 0.0 <= found[0] <= 1.0 + 1e-9
    assert np.allclose(found, drift(other, one))
    assert np.allclose(drift(one, 7 * one), 0.0)


def test_a_window_forgets_what_is_over_and_follows_subscriptions_that_come_and_go() -> None:
    window = Window().taking(entry(0, 0), 5 * SECOND).taking(entry(1, 3 * SECOND), 5 * SECOND)
    new = entry(2, 6 * SECOND, ids=("b", "c"), sums=sums(covered=7, matched=7))
    window = window.taking(new, 5 * SECOND)
    assert [each.batch for each in window.entries] == [1, 2]
    assert window.recent(9_999).files == ("file1", "file2")
    assert window.recent(1).files == ("file2",)
    assert window.held_since(0.2) == 6 * SECOND
    assert window.recent(1).held_since(0.2) is None
    reading = window.reading(SCHEMA)
    assert reading.judged.covered.tolist() == [7, 0]  # what a had is forgotten with it
    assert [row["id"] for row in reading.subscriptions()] == ["b", "c"]
    assert reading.total.events == 4_000
    assert window.alike(0.2).files == ("file1", "file2")
    moved = np.roll(sums().histogram, 9, axis=1)
    changed = window.taking(entry(3, 7 * SECOND, sums=sums(histogram=moved)), 5 * SECOND)
    assert changed.alike(0.2).files == ("file3",)
    assert (changed.alike(0.2).span, changed.span) == (SECOND, 5 * SECOND)
    later = window.taking(entry(3, 7 * SECOND, version=2, ids=("b", "c")), 5 * SECOND).reading(SCHEMA)
    assert later.judged.covered.tolist() == [100, 0]  # under the new index alone


def test_a_state_is_read_as_it_was_written_and_needs_no_more_files_than_its_window(tmp_path: Path) -> None:
    files, state = StateFiles(tmp_path), StreamState()
    for batch in range(8):
        window = state.window.taking(entry(batch, batch * SECOND), 2 * SECOND)
        order = PlanningOrder(batch, "why", 1, 0, 5, 9, None, ("a", "b")) if batch == 7 else None
        baseline = Baseline.begin(1, SCHEMA.digest, 0, sums().histogram)
        state = StreamState(batch, window, state.totals, baseline, Pacing(5, 1, 2.0), order)
        files.keep(state)
    assert len(list(tmp_path.iterdir())) == 4
    again = StateFiles(tmp_path).latest()
    assert (again.batch, again.order, again.pacing, again.totals) == (
        7,
        state.order,
        state.pacing,
        state.totals,
    )
    assert [each.batch for each in again.window.entries] == [each.batch for each in state.window.entries]
    assert again.window.reading(SCHEMA).judged.covered.tolist() == [200, 0]
    assert StateFiles(tmp_path).after(6).batch == 6
    (tmp_path / f"{7:012d}.npz").write_bytes(b"PK")
    with pytest.raises(PipelineError, match="another --out"):
        StateFiles(tmp_path).latest()
