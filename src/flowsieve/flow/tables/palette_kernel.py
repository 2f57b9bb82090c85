"""Interned port sets ("labels") and interned sets of labels, for the smallest tables.

The smallest table (ORTC) needs per trie node the set of labels that are as cheap as any: a set's id stands
for it, and how two sets combine is looked up once. Set 0 is "any label". Ids depend on history, so whatever
shows outside is chosen by content. The plain twin is `meaning.smallest`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.typed import Dict, List

from flowsieve.flow.tables.bits_kernel import count_ports, grown, grown_rows, same

ANY = 0
# `vectors` of a palette.
NEXT_LABEL, STARTS, ITEMS, PICKS, NEXT_SET = 0, 1, 2, 3, 4
# `sizes` of a palette.
LABELS, SETS, USED = 0, 1, 2


class Palette:
    """The storage behind the ids; the kernels take its fields apart."""

    def __init__(self, words: int) -> None:
        self.parts: tuple[Any, Any, Any, Any, Any, Any] = make_palette(words)
        self.rows, self.vectors, self.label_ids, self.set_ids, self.combined, self.sizes = self.parts


@njit(cache=True, inline="always")
def mixed(seed, word):
    seed = (seed ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return seed ^ (seed >> np.uint64(32))


@njit(cache=True)
def intern_label(parts, row):
    rows, vectors, label_ids, _, _, sizes = parts
    seed = np.uint64(row.shape[0])
    for w in range(row.shape[0]):
        seed = mixed(seed, row[w])
    first = np.int64(-1)
    if seed in label_ids:
        first = label_ids[seed]
        at = first
        while at >= 0:
            if same(rows[0][at], row):
                return at
            at = vectors[NEXT_LABEL][at] - 1
    at = sizes[LABELS]
    if at == rows[0].shape[0]:
        rows[0] = grown_rows(rows[0], at + 1)
        vectors[NEXT_LABEL] = grown(vectors[NEXT_LABEL], at + 1)
    rows[0][at, :] = row
    vectors[NEXT_LABEL][at] = first + 1
    label_ids[seed] = at
    sizes[LABELS] = at + 1
    return at


@njit(cache=True)
def make_palette(words):
    """The parts of a palette that knows the empty label alone.

    They are made here since Numba compiles anew, in every process, what Python does with a typed container.
    """
    rows = List([np.zeros((64, words), np.uint64)])
    vectors = List([np.zeros(64, np.int64) for _ in range(5)])
    label_ids = Dict.empty(types.uint64, types.int64)
    set_ids = Dict.empty(types.uint64, types.int64)
    combined = Dict.empty(types.int64, types.int64)
    parts = (rows, vectors, label_ids, set_ids, combined, np.array([0, 1, 0], np.int64))
    intern_label(parts, np.zeros(words, np.uint64))  # the empty label is 0: drop
    return parts


@njit(cache=True)
def comes_first(rows, a, b):
    """Whether label a is preferred to label b: fewer ports, then the smaller words."""
    ports_a, ports_b = count_ports(rows[0][a]), count_ports(rows[0][b])
    if ports_a != ports_b:
        return ports_a < ports_b
    for w in range(rows[0].shape[1]):
        if rows[0][a, w] != rows[0][b, w]:
            return rows[0][a, w] < rows[0][b, w]
    return False


@njit(cache=True)
def intern_set(parts, items, size):
    """The id of the set of the first `size` label ids of `items`, which ascend."""
    rows, vectors, _, set_ids, _, sizes = parts
    seed = np.uint64(size)
    for i in range(size):
        seed = mixed(seed, np.uint64(items[i]))
    first = np.int64(0)
    if seed in set_ids:
        first = set_ids[seed]
        at = first
        while at > 0:
            start = vectors[STARTS][at]
            if vectors[STARTS][at + 1] - start == size:
                equal = True
                for i in range(size):
                    if vectors[ITEMS][start + i] != items[i]:
                        equal = False
                        break
                if equal:
                    return at
            at = vectors[NEXT_SET][at]
    at, start = sizes[SETS], sizes[USED]
    for k in (STARTS, PICKS, NEXT_SET):
        if at + 2 > vectors[k].shape[0]:
            vectors[k] = grown(vectors[k], at + 2)
    if start + size > vectors[ITEMS].shape[0]:
        vectors[ITEMS] = grown(vectors[ITEMS], start + size)
    pick = items[0]
    for i in range(size):
        vectors[ITEMS][start + i] = items[i]
        if comes_first(rows, items[i], pick):
            pick = items[i]
    vectors[STARTS][at] = start
    vectors[STARTS][at + 1] = start + size
    vectors[PICKS][at] = pick
    vectors[NEXT_SET][at] = first
    set_ids[seed] = at
    sizes[SETS] = at + 1
    sizes[USED] = start + size
    return at


@njit(cache=True)
def intern_one(parts, row):
    one = np.empty(1, np.int64)
    one[0] = intern_label(parts, row)
    return intern_set(parts, one, 1)


@njit(cache=True)
def intern_two(parts, row, other):
    two = np.empty(2, np.int64)
    two[0], two[1] = intern_label(parts, row), intern_label(parts, other)
    if two[0] > two[1]:
        two[0], two[1] = two[1], two[0]
    return intern_set(parts, two, 2 if two[0] != two[1] else 1)


@njit(cache=True)
def combine(parts, a, b):
    """What the parent of a and b can have: what both can, or else what either can."""
    if a == ANY or a == b:
        return b
    if b == ANY:
        return a
    _, vectors, _, _, combined, _ = parts
    if a < b:
        a, b = b, a
    key = a << 32 | b
    if key in combined:
        return combined[key]
    starts, items = vectors[STARTS], vectors[ITEMS]
    i, i_end, j, j_end = starts[a], starts[a + 1], starts[b], starts[b + 1]
    both = np.empty(min(i_end - i, j_end - j), np.int64)
    either = np.empty(i_end - i + j_end - j, np.int64)
    n_both = n_either = 0
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and items[i] < items[j]):
            either[n_either] = items[i]
            i += 1
        elif i == i_end or items[j] < items[i]:
            either[n_either] = items[j]
            j += 1
        else:
            either[n_either] = both[n_both] = items[i]
            n_both += 1
            i += 1
            j += 1
        n_either += 1
    result = intern_set(parts, both, n_both) if n_both else intern_set(parts, either, n_either)
    combined[key] = result
    return result


@njit(cache=True)
def in_set(vectors, a, label):
    """Whether a label is in a set."""
    if a == ANY:
        return True
    low, high = vectors[STARTS][a], vectors[STARTS][a + 1]
    while low < high:
        middle = (low + high) // 2
        if vectors[ITEMS][middle] < label:
            low = middle + 1
        else:
            high = middle
    return low < vectors[STARTS][a + 1] and vectors[ITEMS][low] == label
