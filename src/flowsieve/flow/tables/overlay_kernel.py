"""Overlay tables from the port sets in a switch's trie, where something changed.

The value of a node is the set of ports that its whole subtree shares, and that is the label in force there; an entry
stands where it differs from the parent's. So a single pass, bottom-up and over what changed, knows of a node and of its
parent what was in force and what is. The plain twin is `meaning.overlay`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import NONE, ONE, ZERO, bit_words, only_port_of, with_room
from flowsieve.flow.tables.table_kernel import C_PORTS, net_changes, note_change
from flowsieve.flow.tables.trie_kernel import (
    ADVERTISED,
    DIRTY,
    DIRTY_TRIES,
    ENTRY,
    FORCE,
    HEAD,
    INNER,
    OPS,
    VALUE,
    WANTED,
    group,
    number_of,
    words_of,
)

# Rows of `labels`: the values of two siblings, and that of their parent.
LEFT_ONE, RIGHT_ONE, ABOVE = 0, 1, 2


@njit(cache=True)
def read_value(nodes, node, words, labels, row):
    """A node's value as it should be; that of a leaf are the ports wanted, with somebody else advertising."""
    first = group(VALUE, words)
    if nodes[node, HEAD] & INNER:
        for w in range(words):
            labels[row, w] = nodes[node, first + w]
        return
    source = only_port_of(nodes, node, group(ADVERTISED, words), words)
    first = group(WANTED, words)
    for w in range(words):
        labels[row, w] = ZERO if source == NONE else nodes[node, first + w]
    if source >= 0:
        labels[row, source >> 6] &= ~(ONE << np.uint64(source & 63))


@njit(cache=True)
def settle(nodes, changed, counters, trie, node, hi, lo, length, words, labels, row):
    """Put a node's value in force under its parent's, and note what that does to its entry."""
    head, force = nodes[node, HEAD], group(FORCE, words)
    was, now, moved = head & ENTRY != ZERO, False, False
    for w in range(words):
        now = now or labels[row, w] != labels[ABOVE, w]
        moved = moved or labels[row, w] != nodes[node, force + w]
    if was != now or (now and moved):
        at = note_change(changed, counters, trie, hi, lo, length, was, now)
        for w in range(words):
            changed[at, C_PORTS + w] = nodes[node, force + w] if was else ZERO
            changed[at, C_PORTS + words + w] = labels[row, w] if now else ZERO
    if moved:
        for w in range(words):
            nodes[node, force + w] = labels[row, w]
    nodes[node, HEAD] = head & ~(DIRTY | ENTRY) | (ENTRY if now else ZERO)


@njit(cache=True)
def settle_trie(nodes, changed, counters, trie, root, start, first, scratch, labels, words):
    """Bottom-up over the dirty inner nodes of one trie: their values, then their children's entries.

    Returns `changed`.
    """
    path, stage = scratch[0], scratch[1]
    wanting = INNER | DIRTY
    hi, lo = first
    level, path[0], stage[0] = 0, root, 0
    if nodes[root, HEAD] & wanting != wanting:
        level = -1
    while level >= 0:
        node = path[level]
        pair = number_of(nodes[node, HEAD])
        bit_hi, bit_lo = bit_words(start + level)
        if stage[level] < 2:
            child = pair + stage[level]
            if stage[level] == 1:
                hi |= bit_hi
                lo |= bit_lo
            stage[level] += 1
            if nodes[child, HEAD] & wanting == wanting:
                level += 1
                path[level], stage[level] = child, 0
            continue
        read_value(nodes, pair, words, labels, LEFT_ONE)
        read_value(nodes, pair + 1, words, labels, RIGHT_ONE)
        for w in range(words):
            labels[ABOVE, w] = labels[LEFT_ONE, w] & labels[RIGHT_ONE, w]
            nodes[node, group(VALUE, words) + w] = labels[ABOVE, w]
        changed = with_room(changed, counters[OPS] + 3)
        length = start + level + 1
        settle(nodes, changed, counters, trie, pair + 1, hi, lo, length, words, labels, RIGHT_ONE)
        hi &= ~bit_hi
        lo &= ~bit_lo
        settle(nodes, changed, counters, trie, pair, hi, lo, length, words, labels, LEFT_ONE)
        level -= 1
    changed = with_room(changed, counters[OPS] + 1)
    read_value(nodes, root, words, labels, LEFT_ONE)
    labels[ABOVE, :] = ZERO
    settle(nodes, changed, counters, trie, root, hi, lo, start, words, labels, LEFT_ONE)
    return changed


@njit(cache=True, nogil=True)
def refresh_overlay(nodes, changed, removed, counters, roots, starts, firsts, scratch, dirty, entries):
    """Bring the entries of all changed tries up to date; returns `changed`, and a copy of its rows: the net changes."""
    words = words_of(nodes)
    labels = np.zeros((3, words), np.uint64)
    changed = with_room(changed, 3)
    half = dirty.shape[0] // 2
    for i in range(counters[DIRTY_TRIES]):
        trie = dirty[half + i]
        dirty[trie] = 0
        first = (firsts[trie, 0], firsts[trie, 1])
        changed = settle_trie(
            nodes, changed, counters, trie, roots[trie], starts[trie], first, scratch, labels, words
        )
    counters[DIRTY_TRIES] = 0
    return net_changes(changed, removed, counters, entries, words)
