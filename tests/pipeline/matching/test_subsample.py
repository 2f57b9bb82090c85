"""Some of many stand for all of them, also where the many follow a pattern."""

from __future__ import annotations

import numpy as np
import pytest

from flowsieve.pipeline.matching.subsample import subsample


def test_few_are_all_taken_in_their_order() -> None:
    assert subsample(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert subsample(0, 5).tolist() == []


@pytest.mark.parametrize("period", [2, 3, 4, 5, 8, 10, 25])
def test_every_kind_of_a_pattern_has_its_share(period: int) -> None:
    some = subsample(10_000, 400)
    assert len(set(some.tolist())) == 400
    assert (np.diff(some) > 0).all()
    counts = np.bincount(some % period, minlength=period)
    assert counts.min() > 0.25 * 400 / period
    assert counts.max() < 2.5 * 400 / period


def test_the_same_numbers_are_drawn_again() -> None:
    assert subsample(9_999, 200).tolist() == subsample(9_999, 200).tolist()
