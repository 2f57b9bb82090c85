"""Compiled: a table of prefixes laid out flat. Its twin is `flat.look_up`."""

from __future__ import annotations

import numpy as np
from numba import njit

ZERO = np.uint64(0)
ONE = np.uint64(1)
ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True)
def last_of(hi, lo, length):
    """The highest key in a prefix that starts at (hi, lo)."""
    if length < 64:
        return hi | ONES >> np.uint64(length), ONES
    if length < 128:
        return hi, lo | ONES >> np.uint64(length - 64)
    return hi, lo


@njit(cache=True, nogil=True)
def after(hi, lo):
    """The next key; (0, 0) after the highest."""
    lo = lo + ONE
    return (hi + ONE if lo == ZERO else hi), lo


@njit(cache=True, nogil=True)
def sweep(hi, lo, length, priority):
    """Where the winner changes along the line of keys: (hi, lo, row) of each change, row -1 for a miss.

    The rows are sorted by start, then from short to long: a prefix comes after all that hold it, and they are
    the stack. Each keeps who wins inside it, so a pushed row is only compared with the winner below: it is
    the longer one, or the later of two equal prefixes, and therefore wins ties.
    """
    rows = hi.shape[0]
    out_hi = np.empty(2 * rows + 1, np.uint64)
    out_lo = np.empty(2 * rows + 1, np.uint64)
    out_row = np.empty(2 * rows + 1, np.int32)
    end_hi = np.empty(rows, np.uint64)
    end_lo = np.empty(rows, np.uint64)
    winner = np.empty(rows + 1, np.int32)  # winner[d]: among the first d on the stack
    winner[0] = -1
    depth = 0
    out_hi[0], out_lo[0], out_row[0] = ZERO, ZERO, -1
    n = 1
    for row in range(rows + 1):
        while depth > 0 and (
            row == rows
            or end_hi[depth - 1] < hi[row]
            or (end_hi[depth - 1] == hi[row] and end_lo[depth - 1] < lo[row])
        ):
            depth -= 1
            at_hi, at_lo = after(end_hi[depth], end_lo[depth])
            if at_hi != ZERO or at_lo != ZERO:
                n = _change(out_hi, out_lo, out_row, n, at_hi, at_lo, winner[depth])
        if row < rows:
            end_hi[depth], end_lo[depth] = last_of(hi[row], lo[row], length[row])
            best = winner[depth]
            depth += 1
            winner[depth] = row if best < 0 or priority[row] >= priority[best] else best
            n = _change(out_hi, out_lo, out_row, n, hi[row], lo[row], winner[depth])
    return out_hi[:n].copy(), out_lo[:n].copy(), out_row[:n].copy()


@njit(cache=True, nogil=True)
def _change(out_hi, out_lo, out_row, n, hi, lo, row):
    """Note that `row` wins from (hi, lo) on: a later note replaces one at the same place, equal ones join."""
    if out_hi[n - 1] == hi and out_lo[n - 1] == lo:
        n -= 1
    if n > 0 and out_row[n - 1] == row:
        return n
    out_hi[n], out_lo[n], out_row[n] = hi, lo, row
    return n + 1


@njit(cache=True, nogil=True)
def port_words(row, port, words):
    """Set bit `port[i] - 1` in the words of row `row[i]`, for all i."""
    for i in range(row.shape[0]):
        bit = port[i] - 1
        words[row[i], bit >> 6] |= ONE << np.uint64(bit & 63)


@njit(cache=True, nogil=True)
def interval_of(hi, lo, start, stop, key_hi, key_lo):
    """The last interval among start..stop-1 that begins at or before a key; the first one must."""
    low, high = start, stop
    while high - low > 1:
        middle = (low + high) >> 1
        if hi[middle] < key_hi or (hi[middle] == key_hi and lo[middle] <= key_lo):
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def intervals_of(hi, lo, keys_hi, keys_lo):
    """`interval_of` for many keys."""
    out = np.empty(keys_hi.shape[0], np.int64)
    for i in range(out.shape[0]):
        out[i] = interval_of(hi, lo, 0, hi.shape[0], keys_hi[i], keys_lo[i])
    return out
