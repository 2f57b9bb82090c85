"""Levels of a grid: what each leaves of the deliveries."""

from __future__ import annotations

import numpy as np

from flowsieve.pipeline.planning import level_kernel as kernel


def test_deliveries_after_one_more_level_are_those_of_a_plain_and() -> None:
    rng = np.random.default_rng(3)
    current = rng.integers(0, 1 << 63, (40, 3)).astype(np.uint64)
    bits = rng.integers(0, 1 << 63, (8, 3)).astype(np.uint64)
    row = rng.integers(0, len(bits), len(current))
    plain = np.array([event & bits[number] for event, number in zip(current, row, strict=True)])
    assert 0 < kernel.left_with(current, bits, row) == int(np.bitwise_count(plain).sum())
    kernel.keep_from(current, bits, row)
    assert np.array_equal(current, plain)
