"""Binary tries in one matrix, and how to walk one without recursion.

A row of `nodes` is a node, so that a visit costs one line of memory and not one for each thing known of it: the word
HEAD, then groups of words, each a port set. HEAD has marks in its low bits, and above them the left child's number (the
right child follows it); at a leaf, the id of its set of labels, where tables go by such sets. A leaf has the ports
WANTED and ADVERTISED; an inner node has its VALUE in the same place. FORCE is the label as of the last update. Pairs of
children that are free are chained by their HEAD. No child is number 0, so 0 ends the chain.

On a walk `path` has the nodes from the root down to the one at `level`, and `stage` how many children of each have
been entered. The plain twin of what a trie says is `meaning.port_sets`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import ZERO, bit_words

HEAD = 0
# Groups of words behind HEAD.
WANTED, ADVERTISED, FORCE = 0, 1, 2
VALUE = WANTED
GROUPS = 3
# Marks: something below changed since the last update; an entry stands here; there are children.
DIRTY, ENTRY, INNER = np.uint64(1), np.uint64(2), np.uint64(4)
MARKS = DIRTY | ENTRY | INNER
MARK_BITS = np.uint64(3)
# `counters`: of nodes, free ones and used ones; then those of spread_kernel and table_kernel.
FREE, NODES, RUN, RUNS, TAIL, VISITS, GONE, OPS, DIRTY_TRIES = 0, 1, 2, 3, 4, 5, 6, 7, 8
N_COUNTERS = 16
MAX_DEPTH = 130  # levels that a walk has room for


@njit(cache=True, inline="always")
def words_of(nodes):
    """How many words a port set takes."""
    return (nodes.shape[1] - 1) // GROUPS


@njit(cache=True, inline="always")
def group(kind, words):
    """The column in which a group of words begins."""
    return 1 + kind * words


@njit(cache=True, inline="always")
def number_of(head):
    """An inner node's left child."""
    return np.int64(head >> MARK_BITS)


@njit(cache=True, inline="always")
def numbered(number, marks):
    return np.uint64(number) << MARK_BITS | marks


@njit(cache=True)
def take_pair(nodes, counters):
    """Two rows side by side, for which there is room; the number of the left one."""
    pair = counters[FREE]
    if pair > 0:
        counters[FREE] = np.int64(nodes[pair, HEAD])
        return pair
    pair = counters[NODES]
    counters[NODES] = pair + 2
    return pair


@njit(cache=True)
def give_pair(nodes, counters, pair):
    nodes[pair, HEAD] = np.uint64(counters[FREE])
    counters[FREE] = pair


@njit(cache=True)
def split(nodes, counters, node, words):
    """Turn a leaf into a node with two leaves like it; the number of the left one."""
    pair = take_pair(nodes, counters)
    for child in (pair, pair + 1):
        nodes[child, HEAD] = DIRTY
        for column in range(1, 1 + 2 * words):
            nodes[child, column] = nodes[node, column]
    nodes[node, HEAD] = numbered(pair, nodes[node, HEAD] & ENTRY | DIRTY | INNER)
    return pair


@njit(cache=True, inline="always")
def go_on(nodes, path, stage, level, depth, hi, lo):
    """From a node with children into the first, then the second, then back up; (hi, lo) are the bits on the way."""
    bit_hi, bit_lo = bit_words(depth)
    if stage[level] == 2:
        return level - 1, hi & ~bit_hi, lo & ~bit_lo
    if stage[level] == 1:
        hi |= bit_hi
        lo |= bit_lo
    path[level + 1], stage[level + 1] = number_of(nodes[path[level], HEAD]) + stage[level], 0
    stage[level] += 1
    return level + 1, hi, lo


@njit(cache=True)
def count_nodes(nodes, root, scratch):
    path, stage = scratch[0], scratch[1]
    hi = lo = ZERO
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        if stage[level] == 0:
            n += 1
        if nodes[path[level], HEAD] & INNER:
            level, hi, lo = go_on(nodes, path, stage, level, 0, hi, lo)
        else:
            level -= 1
    return n
