"""The best cuts of one dimension, given those of all others, compiled.

The plain twin is `stabbing.fewest_unstabbed`.

An event that a box does not hold along a dimension is kept from it if some cut lies between the two. So every such pair
is an interval of cuts, and the best cuts stab most of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.content.words_kernel import ONE, popcount


@njit(cache=True, nogil=True)
def add_pairs(tables, rows, after, before, point, first, last, pairs):
    """Count the pairs that all other dimensions let pass, by the first cut that stabs them and the one after the last.

    `rows[e]` names a row of bits for every other dimension; `after[p]` is how many cuts are not above place p, and
    `before` the same for places of boxes.
    """
    words = tables.shape[1]
    for event in range(len(rows)):
        place = point[event]
        for word in range(words):
            both = tables[rows[event, 0], word]
            for k in range(1, rows.shape[1]):
                both &= tables[rows[event, k], word]
            while both:
                box = word * 64 + np.int64(popcount((both & (~both + ONE)) - ONE))
                both &= both - ONE
                if place < first[box]:
                    pairs[after[place], after[first[box]]] += 1
                elif place > last[box]:
                    pairs[before[last[box]], after[place]] += 1


@njit(cache=True, nogil=True)
def fewest_unstabbed(pairs, number):
    """Which of the cuts 0..n-1 to take, so that fewest pairs [i, j) are stabbed by none; always `number` of them."""
    n = len(pairs) - 1
    inside = np.zeros((n + 2, n + 2))  # [s, t]: pairs with s <= i and j <= t
    for s in range(n, -1, -1):
        total = 0.0
        for t in range(n + 1):
            total += pairs[s, t] if t > s else 0.0
            inside[s, t] = total + inside[s + 1, t]
    # cost(s, t) of a cell between cuts s and t, or the ends -1 and n: pairs with s < i and j <= t.
    best = np.empty(n + 1)
    chosen = np.zeros((number + 1, n + 1), np.int64)
    for t in range(n + 1):
        best[t] = inside[0, t]
        chosen[0, t] = -1
    for k in range(1, number + 1):
        new = np.full(n + 1, np.inf)
        # The best cut before t never moves left as t grows: divide and conquer.
        stack = [(k, n, k - 1, n - 1)]
        while len(stack):
            low, high, left, right = stack.pop()
            if low > high:
                continue
            t = (low + high) >> 1
            found, at = np.inf, left
            for s in range(left, min(right, t - 1) + 1):
                cost = best[s] + inside[s + 1, t]
                if cost < found:
                    found, at = cost, s
            new[t] = found
            chosen[k, t] = at
            stack.append((low, t - 1, left, at))
            stack.append((t + 1, high, at, right))
        best = new
    out = np.empty(number, np.int64)
    t = n
    for k in range(number, 0, -1):
        t = chosen[k, t]
        out[k - 1] = t
    return out
