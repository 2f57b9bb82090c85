"""Which subscriptions get an event, compiled.

The plain twin is `index.dzset.DzSet.covers` on the cover of every subscription.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.content.words_kernel import ONE, lowest, popcount

ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def list_matches(bits, rows, owner, start, out):
    """List the subscriptions that each event matches, those of event e from start[e] on; the list, which may grow."""
    n = 0
    for event in range(len(rows)):
        start[event] = n
        last = -1
        for word in range(bits.shape[1]):
            both = bits[rows[event, 0], word]
            for d in range(1, rows.shape[1]):
                both &= bits[rows[event, d], word]
            while both:
                box = word * 64 + np.int64(popcount((both & (~both + ONE)) - ONE))
                both &= both - ONE
                if owner[box] != last:
                    last = owner[box]
                    if n == len(out):
                        more = np.empty(2 * len(out), np.int64)
                        more[:n] = out
                        out = more
                    out[n] = last
                    n += 1
    start[len(rows)] = n
    return out


@njit(cache=True, nogil=True)
def add_touched(bits, summary, owner, rows, begin, match_start, matches, stamp, serial, covered, missed):
    """Count the events whose cell a box of each subscription touches, and those that it should have got and does not.

    The entries of event e are begin[e] to before begin[e + 1]; an entry is a row of `rows`, whose bits are joined.
    `summary` has a bit for each word of a row of bits that is not empty.
    """
    for event in range(len(begin) - 1):
        serial += 1
        for entry in range(begin[event], begin[event + 1]):
            for part in range(summary.shape[1]):
                left = summary[rows[entry, 0], part]
                for k in range(1, rows.shape[1]):
                    left &= summary[rows[entry, k], part]
                while left:
                    word = part * 64 + lowest(left)
                    left &= left - ONE
                    both = bits[rows[entry, 0], word]
                    for k in range(1, rows.shape[1]):
                        both &= bits[rows[entry, k], word]
                    while both:
                        subscription = owner[word * 64 + lowest(both)]
                        both &= both - ONE
                        if stamp[subscription] != serial:
                            stamp[subscription] = serial
                            covered[subscription] += 1
        for i in range(match_start[event], match_start[event + 1]):
            if stamp[matches[i]] != serial:
                missed[matches[i]] += 1
    return serial


@njit(cache=True, nogil=True)
def holds(hi, lo, length, other_hi, other_lo):
    """Whether a dz (left-aligned, so many bits) covers another that is longer."""
    if length <= 64:
        return length == 0 or (hi ^ other_hi) >> np.uint64(64 - length) == ZERO
    return hi == other_hi and (lo ^ other_lo) >> np.uint64(128 - length) == ZERO


@njit(cache=True, nogil=True)
def parents(hi, lo, length):
    """Of sorted dz, the longest one before each that covers it; -1: none."""
    out = np.full(len(hi), -1, np.int64)
    for i in range(1, len(hi)):
        above = i - 1
        while above >= 0 and not (
            length[above] < length[i] and holds(hi[above], lo[above], length[above], hi[i], lo[i])
        ):
            above = out[above]
        out[i] = above
    return out


@njit(cache=True, nogil=True)
def add_listed(
    hi,
    lo,
    length,
    parent,
    members,
    member,
    code_hi,
    code_lo,
    begin,
    match_start,
    matches,
    stamp,
    serial,
    covered,
    missed,
):
    """As `add_touched`, for covers that are listed: sorted dz, each with the subscriptions whose cover has it."""
    for event in range(len(begin) - 1):
        serial += 1
        for entry in range(begin[event], begin[event + 1]):
            high, low = code_hi[entry], code_lo[entry]
            a, b = 0, len(hi)
            while a < b:  # the first dz that is above the code
                middle = (a + b) >> 1
                if hi[middle] < high or (hi[middle] == high and lo[middle] <= low):
                    a = middle + 1
                else:
                    b = middle
            node = a - 1
            while node >= 0:
                if holds(hi[node], lo[node], length[node], high, low):
                    for i in range(members[node], members[node + 1]):
                        subscription = member[i]
                        if stamp[subscription] != serial:
                            stamp[subscription] = serial
                            covered[subscription] += 1
                node = parent[node]
        for i in range(match_start[event], match_start[event + 1]):
            if stamp[matches[i]] != serial:
                missed[matches[i]] += 1
    return serial
