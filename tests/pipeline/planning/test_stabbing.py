"""The best cuts of one dimension, given those of all others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.pipeline.planning import stab_kernel
from flowsieve.pipeline.planning.stabbing import fewest_unstabbed


@settings(max_examples=60)
@given(st.integers(2, 6), st.data())
def test_the_cuts_that_stab_most_pairs_are_found(n: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.integers(0, 5), min_size=(n + 1) ** 2, max_size=(n + 1) ** 2))
    pairs = np.triu(np.array(cells, np.int64).reshape(n + 1, n + 1), 1)
    number = data.draw(st.integers(1, n))

    def left(cuts: tuple[int, ...]) -> int:
        return sum(
            int(pairs[i, j])
            for i in range(n + 1)
            for j in range(i + 1, n + 1)
            if not any(i <= c < j for c in cuts)
        )

    found = tuple(stab_kernel.fewest_unstabbed(pairs, number).tolist())
    assert len(set(found)) == number
    assert left(found) == left(fewest_unstabbed(pairs, number))
