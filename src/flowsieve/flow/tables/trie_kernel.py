"""Binary tries in arrays, and how to walk one without recursion.

`links[LEFT]` holds a node's left child (the right one follows it), or -1 at a leaf; `links[FREE]` is a stack of
free pairs. On a walk `path` has the nodes from the root down to the one at `level`, and `stage` how many children
of each have been entered. The plain twin of what a trie says is `meaning.port_sets`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import bit_words

LEFT, FREE = 0, 1
MAX_DEPTH = 130  # levels that a walk has room for


@njit(cache=True, inline="always")
def go_on(left, path, stage, level, depth, hi, lo):
    """From a node with children into the first, then the second, then back up; (hi, lo) are the bits on the way."""
    bit_hi, bit_lo = bit_words(depth)
    if stage[level] == 2:
        return level - 1, hi & ~bit_hi, lo & ~bit_lo
    if stage[level] == 1:
        hi |= bit_hi
        lo |= bit_lo
    path[level + 1], stage[level + 1] = left[path[level]] + stage[level], 0
    stage[level] += 1
    return level + 1, hi, lo


@njit(cache=True)
def count_nodes(links, root, scratch):
    path, stage = scratch[0], scratch[1]
    left = links[LEFT]
    hi = lo = np.uint64(0)
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        if stage[level] == 0:
            n += 1
        if left[path[level]] >= 0:
            level, hi, lo = go_on(left, path, stage, level, 0, hi, lo)
        else:
            level -= 1
    return n
