"""Logs are compared: what is missing, what came twice, what nobody asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flowsieve.loop.judgement import Judgement, judge
from flowsieve.loop.workload import NAMES

COOL = "temperature < 100"


def judged(folder: Path, rows: list[tuple[int, int, int]]) -> Judgement:
    """Of three events, two are cool; `rows` are what came, as (subscription, publisher, number)."""
    values = np.zeros((3, len(NAMES)), np.int64)
    values[1, 0] = 500
    np.savez(folder / "p.npz", publisher="ab", seqs=np.array([5, 6, 7]), values=values)
    np.savez(folder / "s.npz", publishers=np.array(["ab"]), rows=np.array(rows, np.int64).reshape(-1, 3))
    return judge([folder / "p.npz"], {folder / "s.npz": [COOL, "temperature >= 100"]})


def test_all_that_is_wanted_came_once(tmp_path: Path) -> None:
    assert judged(tmp_path, [(0, 0, 5), (1, 0, 6), (0, 0, 7)]) == Judgement(3, 3, 0, 0, 0, 0)


def test_what_is_missing_doubled_or_unasked_is_told(tmp_path: Path) -> None:
    found = judged(tmp_path, [(0, 0, 5), (0, 0, 5), (0, 0, 6)])
    assert found == Judgement(published=3, wanted=3, lost=2, lost_events=2, doubled=1, strange=1)
    assert not found.holds


def test_who_got_nothing_has_lost_all(tmp_path: Path) -> None:
    assert judged(tmp_path, []).lost == 3
