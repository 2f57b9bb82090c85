"""Compiled: 64 atoms of the address space at a time, pushed through the network as the bits of a word.

A matrix of bits has a row per word of atoms and a column per slot or host. The plain twin is the walk of
single packets in the embedded network; `tests/laws/test_verify.py` holds the two together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.flat_kernel import ONE, ONES, ZERO, after, interval_of, last_of


@njit(cache=True, nogil=True)
def ends_of(hi, lo, length):
    """The keys just behind prefixes; (0, 0) for one that ends with the space."""
    end_hi, end_lo = np.empty_like(hi), np.empty_like(lo)
    for i in range(hi.shape[0]):
        last_hi, last_lo = last_of(hi[i], lo[i], length[i])
        end_hi[i], end_lo[i] = after(last_hi, last_lo)
    return end_hi, end_lo


@njit(cache=True, nogil=True)
def numbers_of(hi, lo, keys_hi, keys_lo):
    """Where sorted keys stand among sorted atoms that hold them all."""
    out = np.empty(keys_hi.shape[0], np.int64)
    atom = 0
    for i in range(out.shape[0]):
        while hi[atom] != keys_hi[i] or lo[atom] != keys_lo[i]:
            atom += 1
        out[i] = atom
    return out


@njit(cache=True, nogil=True)
def _set_range(bits, column, begin, end):
    """Set the bits of atoms begin..end-1 in a column."""
    for word in range(begin >> 6, (end + 63) >> 6):
        mask = ONES
        if word == begin >> 6:
            mask &= ONES << np.uint64(begin & 63)
        if word == end >> 6:
            mask &= (ONE << np.uint64(end & 63)) - ONE
        bits[word, column] |= mask


@njit(cache=True, nogil=True)
def mark(bits, column, hi, lo, begin_hi, begin_lo, end_hi, end_lo):
    """Set the bits of the atoms in ranges of keys, each in its own column."""
    atoms = hi.shape[0]
    for i in range(column.shape[0]):
        begin = interval_of(hi, lo, 0, atoms, begin_hi[i], begin_lo[i])
        end = atoms
        if end_hi[i] != ZERO or end_lo[i] != ZERO:
            end = interval_of(hi, lo, 0, atoms, end_hi[i], end_lo[i])
        _set_range(bits, column[i], begin, end)


@njit(cache=True, nogil=True)
def spread(sends, first_slot, begin, atoms, ports):
    """Lay a flat table over the atoms: which of them leave the switch by which slot."""
    for i in range(begin.shape[0]):
        end = begin[i + 1] if i + 1 < begin.shape[0] else atoms
        for word in range(ports.shape[1]):
            bits, slot = ports[i, word], first_slot + 64 * word
            while bits != ZERO:
                if bits & ONE != ZERO:
                    _set_range(sends, slot, begin[i], end)
                bits >>= ONE
                slot += 1


@njit(cache=True, nogil=True)
def endless(sends, first, far, alive):
    """What stays on a link without end: set in `alive` (a word per slot) for the atoms of one word.

    At first every atom that a switch sends out is taken to be on the link; an atom that no other link could
    have brought to that switch is then taken off, until nothing changes. A packet never turns back at once.
    """
    for slot in range(far.shape[0]):
        alive[slot] = sends[slot] if far[slot] >= 0 else ZERO
    changed = True
    while changed:
        changed = False
        for switch in range(first.shape[0] - 1):
            come, twice = ZERO, ZERO  # atoms that come in at all, and by two links or more
            for slot in range(first[switch], first[switch + 1]):
                if far[slot] >= 0:
                    twice |= come & alive[far[slot]]
                    come |= alive[far[slot]]
            for slot in range(first[switch], first[switch + 1]):
                if far[slot] >= 0:
                    left = alive[slot] & (twice | (come & ~alive[far[slot]]))
                    changed |= left != alive[slot]
                    alive[slot] = left


@njit(cache=True, nogil=True)
def find_endless(sends, first, at, far, looping):
    """Flag the switches that some packet comes to without end; the first word with such an atom, or -1."""
    alive = np.empty(far.shape[0], np.uint64)
    found = -1
    for word in range(sends.shape[0]):
        endless(sends[word], first, far, alive)
        for slot in range(far.shape[0]):
            if alive[slot] != ZERO:
                looping[at[far[slot]]] = True
                if found < 0:
                    found = word
    return found


@njit(cache=True, nogil=True)
def push(sends, advertised, publisher, home, first, at, far, hop_limit, once, twice):
    """Send all advertised atoms of one publisher: which hosts they reach, and which they reach again."""
    slots = far.shape[0]
    one, two = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)  # coming in: at least one copy, two
    next_one, next_two = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
    busy, next_busy = np.empty(slots, np.int64), np.empty(slots, np.int64)
    for word in range(sends.shape[0]):
        once[word, :] = ZERO
        twice[word, :] = ZERO
        one[home] = advertised[word, publisher]
        if one[home] == ZERO:
            continue
        busy[0] = home
        n = 1
        hops = 1
        while n > 0:
            next_n = 0
            for i in range(n):
                came = busy[i]
                here_one, here_two = one[came], two[came]
                one[came], two[came] = ZERO, ZERO
                if hops >= hop_limit:
                    continue
                for slot in range(first[at[came]], first[at[came] + 1]):
                    go = sends[word, slot] & here_one
                    if go == ZERO or slot == came:
                        continue
                    again = sends[word, slot] & here_two
                    if far[slot] < 0:
                        host = -1 - far[slot]
                        twice[word, host] |= again | (once[word, host] & go)
                        once[word, host] |= go
                    else:
                        to = far[slot]
                        if next_one[to] == ZERO:
                            next_busy[next_n] = to
                            next_n += 1
                        next_two[to] |= again | (next_one[to] & go)
                        next_one[to] |= go
            one, next_one = next_one, one
            two, next_two = next_two, two
            busy, next_busy = next_busy, busy
            n = next_n
            hops += 1


@njit(cache=True, nogil=True)
def judge(wants, advertised, publisher, once, twice, lost, doubled):
    """Flag the hosts that miss an atom that they want, and those that get one twice."""
    for word in range(once.shape[0]):
        offered = advertised[word, publisher]
        if offered == ZERO:
            continue
        for host in range(once.shape[1]):
            if host != publisher and wants[word, host] & offered & ~once[word, host] != ZERO:
                lost[host] = True
            if twice[word, host] != ZERO:
                doubled[host] = True
