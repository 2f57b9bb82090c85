"""What a host asks for in all, from its single interests: a change is announced only where the sum of them changes.

Per host and side a trie counts how many interests ask for exactly a dz. One more is announced unless another
covers it already; one less is announced for the gaps that nothing else covers. The plain twin is the union of
the host's sets, `index.dzset.DzSet`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import ONE, ZERO, bit_at, grown
from flowsieve.flow.tables.spread_kernel import announce
from flowsieve.flow.tables.trie_kernel import FREE, LEFT, go_on

# `counts`: LEFT and FREE as in spread_kernel's `links`, and per node how many interests ask for exactly its dz.
COUNT = 2


@njit(cache=True)
def take_counted_pair(counts, counters):
    if counters[0] > 0:
        counters[0] -= 1
        pair = np.int64(counts[FREE][counters[0]])
    else:
        pair = counters[1]
        if pair + 2 > counts[LEFT].shape[0]:
            counts[LEFT] = grown(counts[LEFT], pair + 2)
            counts[COUNT] = grown(counts[COUNT], pair + 2)
        counters[1] = pair + 2
    for child in (pair, pair + 1):
        counts[LEFT][child] = -1
        counts[COUNT][child] = 0
    return pair


@njit(cache=True)
def count_interest(counts, host_counters, root, hi, lo, length):
    """Count one more dz of a host; returns whether another one of it covers it already."""
    node, covered = np.int64(root), False
    left, count = counts[LEFT], counts[COUNT]
    for depth in range(length):
        if count[node] > 0:
            covered = True
        if left[node] < 0:
            pair = take_counted_pair(counts, host_counters)
            left, count = counts[LEFT], counts[COUNT]
            left[node] = pair
        node = np.int64(left[node]) + bit_at(hi, lo, depth)
    covered = covered or count[node] > 0
    count[node] += 1
    return covered


@njit(cache=True)
def add_interest(
    counts, host_counters, root, hi, lo, length, work, counters, partition_dz, switch, kind, port
):
    """Count one more dz of a host; announce it unless another already covers it."""
    if not count_interest(counts, host_counters, root, hi, lo, length):
        announce(work, counters, partition_dz, switch, kind, port, ONE, hi, lo, length)


@njit(cache=True)
def drop_interest(
    counts, host_counters, root, hi, lo, length, work, counters, partition_dz, switch, kind, port, scratch
):
    """Count one dz of a host less; announce the gaps that nothing else of the host covers."""
    path, stage = scratch[0], scratch[1]
    left, count = counts[LEFT], counts[COUNT]
    node, covered = np.int64(root), False
    for depth in range(length):
        path[depth] = node
        covered = covered or count[node] > 0
        node = np.int64(left[node]) + bit_at(hi, lo, depth)
    count[node] -= 1
    if not covered and count[node] == 0:
        level, path[length], stage[length] = length, node, 0
        gap_hi, gap_lo = hi, lo
        while level >= length:
            node = np.int64(path[level])
            if count[node] > 0:
                level -= 1
                continue
            if left[node] < 0:
                announce(work, counters, partition_dz, switch, kind, port, ZERO, gap_hi, gap_lo, level)
                level -= 1
                continue
            level, gap_hi, gap_lo = go_on(left, path, stage, level, level, gap_hi, gap_lo)
        node = np.int64(path[length])
    if count[node] == 0 and left[node] < 0:
        for level in range(length - 1, -1, -1):
            node = np.int64(path[level])
            pair = np.int64(left[node])
            if left[pair] >= 0 or left[pair + 1] >= 0 or count[pair] > 0 or count[pair + 1] > 0:
                break
            left[node] = -1
            top = host_counters[0]
            if top == counts[FREE].shape[0]:
                counts[FREE] = grown(counts[FREE], top + 1)
            counts[FREE][top] = pair
            host_counters[0] = top + 1
            if count[node] > 0:
                break


@njit(cache=True, nogil=True)
def change_interest(
    counts, host_counters, root, dz, adding, work, counters, partition_dz, switch, kind, port, scratch
):
    """Add or drop all dz (rows of hi, lo, length) of one interest of a host."""
    for i in range(dz.shape[0]):
        hi, lo, length = dz[i, 0], dz[i, 1], np.int64(dz[i, 2])
        if adding:
            add_interest(
                counts, host_counters, root, hi, lo, length, work, counters, partition_dz, switch, kind, port
            )
        else:
            drop_interest(
                counts,
                host_counters,
                root,
                hi,
                lo,
                length,
                work,
                counters,
                partition_dz,
                switch,
                kind,
                port,
                scratch,
            )


@njit(cache=True, nogil=True)
def add_interests(
    counts, host_counters, roots, ends, dz, asked, asked_ends, asked_dz, work, counters, partition_dz
):
    """Count many interests of many hosts, then announce what each host asks for in all, which is less.

    The dz of interest i stand in the rows of `dz` before `ends[i]`; what a host (a row of switch, kind, port in
    `asked`) asks for stands likewise in `asked_dz`. To announce again what was announced before changes nothing.
    """
    at = 0
    for i in range(roots.shape[0]):
        while at < ends[i]:
            count_interest(counts, host_counters, roots[i], dz[at, 0], dz[at, 1], np.int64(dz[at, 2]))
            at += 1
    at = 0
    for i in range(asked.shape[0]):
        switch, kind, port = asked[i, 0], asked[i, 1], asked[i, 2]
        while at < asked_ends[i]:
            hi, lo, length = asked_dz[at, 0], asked_dz[at, 1], np.int64(asked_dz[at, 2])
            announce(work, counters, partition_dz, switch, kind, port, ONE, hi, lo, length)
            at += 1
