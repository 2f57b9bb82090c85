"""A random subsample of subscriptions, where all would be too many.

Not every third or every tenth: subscriptions are often written in patterns, and regular steps would follow them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 11


def subsample(number: int, most: int) -> NDArray[np.int64]:
    """At most `most` of the numbers below `number`, at random, in their order; the same for the same numbers."""
    if number <= most:
        return np.arange(number)
    return np.sort(np.random.default_rng(SEED).choice(number, most, replace=False))
