"""What a host asks for in all, from its single interests: a change is announced only where the sum of them changes.

Per host and side a trie counts how many interests ask for exactly a dz. One more is announced unless another
covers it already; one less is announced for the gaps that nothing else covers. The plain twin is the union of
the host's sets, `index.dzset.DzSet`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import bit_at, bit_words, with_room
from flowsieve.flow.tables.spread_kernel import announce, spread
from flowsieve.flow.tables.trie_kernel import FREE, MAX_DEPTH, NODES

# Columns of `counts`, a node each: the left child (the right one follows it) or 0, and how many interests ask for
# exactly its dz. Free pairs are chained by LEFT; `host_counters` has FREE and NODES as trie_kernel's counters do.
LEFT, COUNT = 0, 1


@njit(cache=True)
def take_counted_pair(counts, host_counters):
    """Two nodes side by side, for which there is room; the number of the left one."""
    pair = host_counters[FREE]
    if pair > 0:
        host_counters[FREE] = counts[pair, LEFT]
    else:
        pair = host_counters[NODES]
        host_counters[NODES] = pair + 2
    for child in (pair, pair + 1):
        counts[child, LEFT] = counts[child, COUNT] = 0
    return pair


@njit(cache=True)
def count_interest(counts, host_counters, root, hi, lo, length):
    """Count one more dz of a host; returns `counts`, and whether another one of it covers it already."""
    counts = with_room(counts, host_counters[NODES] + 2 * MAX_DEPTH)
    node, covered = np.int64(root), False
    for depth in range(length):
        if counts[node, COUNT] > 0:
            covered = True
        if counts[node, LEFT] == 0:
            counts[node, LEFT] = take_counted_pair(counts, host_counters)
        node = np.int64(counts[node, LEFT]) + bit_at(hi, lo, depth)
    covered = covered or counts[node, COUNT] > 0
    counts[node, COUNT] += 1
    return counts, covered


@njit(cache=True)
def drop_interest(
    counts, host_counters, root, hi, lo, length, messages, runs, counters, partition_dz, home, scratch
):
    """Count one dz of a host less; announce the gaps that nothing else of the host covers.

    Returns `messages` and `runs`.
    """
    path, stage = scratch[0], scratch[1]
    node, covered = np.int64(root), False
    for depth in range(length):
        path[depth] = node
        covered = covered or counts[node, COUNT] > 0
        node = np.int64(counts[node, LEFT]) + bit_at(hi, lo, depth)
    counts[node, COUNT] -= 1
    if not covered and counts[node, COUNT] == 0:
        switch, kind, port = home
        level, path[length], stage[length] = length, node, 0
        while level >= length:
            node = path[level]
            pair = np.int64(counts[node, LEFT])
            if counts[node, COUNT] > 0:
                level -= 1
            elif pair == 0:
                messages, runs = announce(
                    messages, runs, counters, partition_dz, switch, kind, port, 0, hi, lo, level
                )
                level -= 1
            else:
                bit_hi, bit_lo = bit_words(level)
                if stage[level] == 2:
                    hi, lo, level = hi & ~bit_hi, lo & ~bit_lo, level - 1
                    continue
                if stage[level] == 1:
                    hi, lo = hi | bit_hi, lo | bit_lo
                stage[level] += 1
                level += 1
                path[level], stage[level] = pair + stage[level - 1] - 1, 0
        node = path[length]
    if counts[node, COUNT] == 0 and counts[node, LEFT] == 0:
        prune(counts, host_counters, path, length)
    return messages, runs


@njit(cache=True)
def prune(counts, host_counters, path, length):
    """Free the pairs on the way back up from a node that nobody asks for, as far as nobody asks for any of them."""
    for level in range(length - 1, -1, -1):
        node = path[level]
        pair = np.int64(counts[node, LEFT])
        for child in (pair, pair + 1):
            if counts[child, LEFT] > 0 or counts[child, COUNT] > 0:
                return
        counts[pair, LEFT] = host_counters[FREE]
        host_counters[FREE] = pair
        counts[node, LEFT] = 0
        if counts[node, COUNT] > 0:
            return


@njit(cache=True, nogil=True)
def change_interest(
    counts, host_counters, root, dz_hi, dz_lo, dz_length, adding, switch, kind, port, partition_dz,
    nodes, messages, runs, removed, counters, shape, roots, starts, scratch, dirty,
):  # fmt: skip
    """Add or drop all dz of one interest of a host, and spread what follows.

    Returns `counts`, `nodes`, `messages`, `runs` and `removed`.
    """
    for i in range(dz_hi.shape[0]):
        hi, lo, length = dz_hi[i], dz_lo[i], dz_length[i]
        if adding:
            counts, covered = count_interest(counts, host_counters, root, hi, lo, length)
            if not covered:
                messages, runs = announce(
                    messages, runs, counters, partition_dz, switch, kind, port, 1, hi, lo, length
                )
        else:
            messages, runs = drop_interest(
                counts,
                host_counters,
                root,
                hi,
                lo,
                length,
                messages,
                runs,
                counters,
                partition_dz,
                (switch, kind, port),
                scratch,
            )
    nodes, messages, runs, removed = spread(
        nodes, messages, runs, removed, counters, shape, roots, starts, scratch, dirty
    )
    return counts, nodes, messages, runs, removed


@njit(cache=True, nogil=True)
def add_interests(
    counts, host_counters, trie_roots, ends, dz, asked, asked_ends, asked_dz, partition_dz,
    nodes, messages, runs, removed, counters, shape, roots, starts, scratch, dirty,
):  # fmt: skip
    """Count many interests of many hosts, then announce what each host asks for in all, which is less.

    The dz of interest i stand in the rows of `dz` before `ends[i]`; what a host (a row of switch, kind, port in
    `asked`) asks for stands likewise in `asked_dz`. To announce again what was announced before changes nothing.
    Returns what `change_interest` does.
    """
    at = 0
    for i in range(trie_roots.shape[0]):
        while at < ends[i]:
            counts, _ = count_interest(
                counts, host_counters, trie_roots[i], dz[at, 0], dz[at, 1], np.int64(dz[at, 2])
            )
            at += 1
    at = 0
    for i in range(asked.shape[0]):
        switch, kind, port = asked[i, 0], asked[i, 1], asked[i, 2]
        while at < asked_ends[i]:
            hi, lo, length = asked_dz[at, 0], asked_dz[at, 1], np.int64(asked_dz[at, 2])
            messages, runs = announce(
                messages, runs, counters, partition_dz, switch, kind, port, 1, hi, lo, length
            )
            at += 1
    nodes, messages, runs, removed = spread(
        nodes, messages, runs, removed, counters, shape, roots, starts, scratch, dirty
    )
    return counts, nodes, messages, runs, removed
