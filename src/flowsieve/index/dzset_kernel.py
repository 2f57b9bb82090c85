"""Compiled operations on sorted arrays of dz; each has its plain twin of the same name in `index.algebra`.

A dz stands left-aligned in 128 bits: `hi` the upper 64, `lo` the lower, zero behind its `length`. Arrays are
sorted by (hi, lo, length), so that a cell stands before the cells inside it. Results are written into arrays
that are long enough, and cut to size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.index.dz import LONGEST

ZERO = np.uint64(0)
ONE = np.uint64(1)
ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@njit(cache=True, nogil=True, inline="always")
def mask_hi(length):
    """The upper 64 bits of a mask over the first `length` of 128."""
    if length <= 0:
        return ZERO
    if length >= 64:
        return ONES
    return ONES << np.uint64(64 - length)


@njit(cache=True, nogil=True, inline="always")
def mask_lo(length):
    if length <= 64:
        return ZERO
    if length >= 128:
        return ONES
    return ONES << np.uint64(128 - length)


@njit(cache=True, nogil=True, inline="always")
def covers(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    """Twin: `Dz.covers`."""
    if a_length > b_length:
        return False
    return (b_hi & mask_hi(a_length)) == a_hi and (b_lo & mask_lo(a_length)) == a_lo


@njit(cache=True, nogil=True, inline="always")
def precedes(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    """Twin: `Dz.__lt__`."""
    if a_hi != b_hi:
        return a_hi < b_hi
    if a_lo != b_lo:
        return a_lo < b_lo
    return a_length < b_length


@njit(cache=True, nogil=True)
def push(hi, lo, length, n, x_hi, x_lo, x_length):
    """Put x, next in sorted order, behind `n` canonical dz: drop it if covered, join siblings; the new n."""
    if n and covers(hi[n - 1], lo[n - 1], length[n - 1], x_hi, x_lo, x_length):
        return n
    while n and x_length and length[n - 1] == x_length:
        # A sibling before x differs from it in the last bit alone, and there has a 0.
        up = x_length - 1
        if (x_hi & mask_hi(up)) != hi[n - 1] or (x_lo & mask_lo(up)) != lo[n - 1]:
            break
        x_hi, x_lo, x_length = hi[n - 1], lo[n - 1], up
        n -= 1
    hi[n], lo[n], length[n] = x_hi, x_lo, x_length
    return n + 1


@njit(cache=True, nogil=True)
def canonical(hi, lo, length):
    n = 0
    out_hi, out_lo, out_length = np.empty_like(hi), np.empty_like(lo), np.empty_like(length)
    for i in range(len(hi)):
        n = push(out_hi, out_lo, out_length, n, hi[i], lo[i], length[i])
    return out_hi[:n].copy(), out_lo[:n].copy(), out_length[:n].copy()


@njit(cache=True, nogil=True)
def union(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    room = len(a_hi) + len(b_hi)
    hi, lo, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int64)
    n = i = j = 0
    while i < len(a_hi) or j < len(b_hi):
        if j == len(b_hi) or (
            i < len(a_hi) and precedes(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j])
        ):
            n = push(hi, lo, length, n, a_hi[i], a_lo[i], a_length[i])
            i += 1
        else:
            n = push(hi, lo, length, n, b_hi[j], b_lo[j], b_length[j])
            j += 1
    return hi[:n].copy(), lo[:n].copy(), length[:n].copy()


@njit(cache=True, nogil=True)
def intersection(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    room = len(a_hi) + len(b_hi)
    hi, lo, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int64)
    n = i = j = 0
    while i < len(a_hi) and j < len(b_hi):
        if covers(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
            hi[n], lo[n], length[n] = b_hi[j], b_lo[j], b_length[j]
            n += 1
            j += 1
        elif covers(b_hi[j], b_lo[j], b_length[j], a_hi[i], a_lo[i], a_length[i]):
            hi[n], lo[n], length[n] = a_hi[i], a_lo[i], a_length[i]
            n += 1
            i += 1
        elif precedes(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
            i += 1
        else:
            j += 1
    return hi[:n].copy(), lo[:n].copy(), length[:n].copy()


@njit(cache=True, nogil=True)
def grown(array, room):
    """The same array with more room behind it. (Copied one by one: Numba compiles slices for seconds.)"""
    out = np.empty(room, array.dtype)
    for i in range(len(array)):
        out[i] = array[i]
    return out


@njit(cache=True, nogil=True)
def difference(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    room = len(a_hi) + len(b_hi) + 128
    hi, lo, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int64)
    # Cells still to be judged, upper halves below lower ones, so that results come out sorted.
    s_hi, s_lo, s_length = np.empty(130, np.uint64), np.empty(130, np.uint64), np.empty(130, np.int64)
    n = j = 0
    for i in range(len(a_hi)):
        s_hi[0], s_lo[0], s_length[0] = a_hi[i], a_lo[i], a_length[i]
        depth = 1
        while depth:
            depth -= 1
            x_hi, x_lo, x_length = s_hi[depth], s_lo[depth], s_length[depth]
            while (
                j < len(b_hi)
                and precedes(b_hi[j], b_lo[j], b_length[j], x_hi, x_lo, x_length)
                and not covers(b_hi[j], b_lo[j], b_length[j], x_hi, x_lo, x_length)
            ):
                j += 1
            if j < len(b_hi) and covers(b_hi[j], b_lo[j], b_length[j], x_hi, x_lo, x_length):
                continue
            if j < len(b_hi) and covers(x_hi, x_lo, x_length, b_hi[j], b_lo[j], b_length[j]):
                up_hi, up_lo = x_hi, x_lo
                if x_length < 64:
                    up_hi |= ONE << np.uint64(63 - x_length)
                else:
                    up_lo |= ONE << np.uint64(127 - x_length)
                s_hi[depth], s_lo[depth], s_length[depth] = up_hi, up_lo, x_length + 1
                s_hi[depth + 1], s_lo[depth + 1], s_length[depth + 1] = x_hi, x_lo, x_length + 1
                depth += 2
                continue
            if n == room:
                room *= 2
                hi, lo, length = grown(hi, room), grown(lo, room), grown(length, room)
            hi[n], lo[n], length[n] = x_hi, x_lo, x_length
            n += 1
    return hi[:n].copy(), lo[:n].copy(), length[:n].copy()


@njit(cache=True, nogil=True)
def first_untidy(hi, lo, length):
    """Where the first dz stands that has a wrong length, or a bit behind its length; -1 if none does."""
    for i in range(len(hi)):
        if not 0 <= length[i] <= LONGEST or hi[i] & ~mask_hi(length[i]) or lo[i] & ~mask_lo(length[i]):
            return i
    return -1


@njit(cache=True, nogil=True)
def find(hi, lo, length, x_hi, x_lo, x_length):
    """Where a dz stands that covers x, in a canonical set; -1 if none does."""
    low, high = 0, len(hi)
    while low < high:  # the last dz that begins no later than x is the only one that can cover it
        middle = (low + high) >> 1
        if hi[middle] < x_hi or (hi[middle] == x_hi and lo[middle] <= x_lo):
            low = middle + 1
        else:
            high = middle
    if low and covers(hi[low - 1], lo[low - 1], length[low - 1], x_hi, x_lo, x_length):
        return low - 1
    return -1


@njit(cache=True, nogil=True)
def find_many(hi, lo, length, x_hi, x_lo, x_length):
    """`find` for many dz of one length."""
    out = np.empty(len(x_hi), np.int64)
    for i in range(len(x_hi)):
        out[i] = find(hi, lo, length, x_hi[i], x_lo[i], x_length)
    return out


@njit(cache=True, nogil=True)
def covers_all(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    """Whether every dz of b lies in one of a."""
    i = 0
    for j in range(len(b_hi)):
        while i < len(a_hi) and not covers(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
            if not precedes(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
                return False
            i += 1
        if i == len(a_hi):
            return False
    return True


@njit(cache=True, nogil=True)
def overlap_any(a_hi, a_lo, a_length, b_hi, b_lo, b_length):
    """Whether some dz of b shares something with one of a."""
    i = j = 0
    while i < len(a_hi) and j < len(b_hi):
        if covers(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
            return True
        if covers(b_hi[j], b_lo[j], b_length[j], a_hi[i], a_lo[i], a_length[i]):
            return True
        if precedes(a_hi[i], a_lo[i], a_length[i], b_hi[j], b_lo[j], b_length[j]):
            i += 1
        else:
            j += 1
    return False
