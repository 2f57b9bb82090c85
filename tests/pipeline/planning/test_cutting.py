"""Cuts along one dimension."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.pipeline.planning import cut_kernel
from flowsieve.pipeline.planning.cutting import Profile, avoiding, balancing, best_cut
from flowsieve.pipeline.planning.training_data import TrainingData


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8),
)
def test_the_best_cut_is_that_of_the_definition(counts: list[tuple[int, int, int]]) -> None:
    columns = [
        np.concatenate([[0], np.cumsum(column)]).astype(np.int64) for column in zip(*counts, strict=True)
    ]
    profile = Profile(*columns)
    for low in range(len(counts)):
        for high in range(low, len(counts)):
            place, gain = cut_kernel.best_cut(*profile, low, high)
            assert (place, gain) == best_cut(profile, low, high)


@pytest.mark.parametrize("halve", [avoiding, balancing])
def test_cuts_ascend_and_lie_on_the_line(halve: object) -> None:
    training = TrainingData.of(SCHEMA, filters_of(1, 50), events_of(1, 500))
    for d, attribute in enumerate(SCHEMA):
        halvings = halve(training, d)  # type: ignore[operator]
        numbers = halvings.numbers(halvings.depth)
        if attribute.kind == "string":
            assert numbers == halvings.depth
            continue
        assert len(numbers) == (1 << halvings.depth) - 1
        assert numbers == sorted(numbers)
        assert attribute.min <= numbers[0] and numbers[-1] <= attribute.max + 1
