"""Fit a switch's table into few entries, where that costs least unwanted traffic.

A subtree may be collapsed into one region that gets every port any part of it needs; its price is the traffic
that then goes out of ports that did not ask for it. For a price λ of an entry, one pass bottom-up finds the
best cut of the trie (collapse, or keep what the children need); the cut's labels then make the smallest
table. λ is chosen so that the table fits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.palette_kernel import PICKS, combined_set, in_set, intern_one, mixed
from flowsieve.flow.spread_kernel import ADVERTISED, WANTED
from flowsieve.flow.table_kernel import arriving_port, write_label
from flowsieve.flow.trie_kernel import LEFT, go_on
from flowsieve.flow.words_kernel import NONE, ZERO, bit_at, has_port


@njit(cache=True)
def first_with_bit(cells, low, high, depth):
    """Where the sorted cells in [low, high), alike before this depth, turn from 0 to 1 at it."""
    while low < high:
        middle = (low + high) // 2
        if bit_at(cells[middle, 0], cells[middle, 1], depth):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def price_nodes(
    links, sets, root, start, first, cells, mass, is_host, scratch, ends, keys, unions, extras
):  # fmt: skip
    """The trie in preorder: where each subtree ends, its dz, the ports it needs, and what collapsing it would cost.

    Traffic is given as sorted cells (rows of hi, lo, length) over which a mass is spread evenly; `mass` adds
    up the cells before each. A leaf weighs what lies in it; nothing, where nothing can arrive. What coarse
    neighbours send too much weighs nothing either: it is little.
    """
    path, stage, place = scratch[0], scratch[1], scratch[2].copy()
    left, wanted, advertised = links[LEFT], sets[WANTED], sets[ADVERTISED]
    deep, words = path.shape[0], wanted.shape[1]
    waste = np.zeros((deep + 1, words * 64))  # by level: what goes unwanted out of each port
    lows, highs = np.zeros(deep + 1, np.int64), np.zeros(deep + 1, np.int64)
    spread = np.zeros(deep + 1)  # by level: the part of the mass of wider cells that falls into the node
    nothing = np.zeros(words, np.uint64)
    hi, lo = first
    low, high, thin = 0, cells.shape[0], 0.0
    for depth in range(start + 1):
        while low < high and np.int64(cells[low, 2]) == depth:
            thin += mass[low + 1] - mass[low]
            low += 1
        if depth < start:
            middle = first_with_bit(cells, low, high, depth)
            if bit_at(hi, lo, depth):
                low = middle
            else:
                high = middle
            thin /= 2
    lows[0], highs[0], spread[0] = low, high, thin
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        node = np.int64(path[level])
        depth = start + level
        if stage[level] == 0:
            place[level] = n
            keys[n, 0], keys[n, 1], keys[n, 2] = hi, lo, np.uint64(depth)
            waste[level, :] = 0.0
            unions[n, :] = ZERO
            n += 1
            if left[node] < 0:
                at = place[level]
                write_label(wanted[node], advertised[node], unions[at])
                source = arriving_port(wanted[node], advertised[node], is_host, nothing)
                if source != NONE:
                    weight = mass[highs[level]] - mass[lows[level]] + spread[level]
                    for port in range(words * 64):
                        if port != source and not has_port(unions[at], port):
                            waste[level, port] = weight
                extras[at] = 0.0
                ends[at] = n
        if left[node] >= 0 and stage[level] < 2:
            middle = first_with_bit(cells, lows[level], highs[level], depth)
            low, high, thin = lows[level], highs[level], spread[level] / 2
            if stage[level] == 0:
                high = middle
            else:
                low = middle
            while low < high and np.int64(cells[low, 2]) == depth + 1:
                thin += mass[low + 1] - mass[low]
                low += 1
            level, hi, lo = go_on(left, path, stage, level, depth, hi, lo)
            lows[level], highs[level], spread[level] = low, high, thin
            continue
        at = place[level]
        if left[node] >= 0:
            ends[at] = n
            price = 0.0
            for port in range(words * 64):
                if has_port(unions[at], port):
                    price += waste[level, port]
            # A hair's difference by place, so that equal prices do not all fall at one λ.
            seed = mixed(mixed(np.uint64(depth), keys[at, 0]), keys[at, 1])
            extras[at] = price * (1.0 + 1e-6 * np.float64(seed >> np.uint64(44)) / 2.0**20)
        if level > 0:
            parent = place[level - 1]
            for w in range(words):
                unions[parent, w] |= unions[at, w]
            for port in range(words * 64):
                waste[level - 1, port] += waste[level, port]
        if left[node] >= 0:
            level, hi, lo = go_on(left, path, stage, level, depth, hi, lo)
        else:
            level -= 1
    return n


@njit(cache=True, nogil=True)
def single_sets(unions, singles, rows, vectors, label_ids, set_ids, combined, sizes):
    """Per node the set of the one label that it has when collapsed."""
    palette = (rows, vectors, label_ids, set_ids, combined, sizes)
    for k in range(unions.shape[0]):
        singles[k] = intern_one(palette, unions[k])


@njit(cache=True, nogil=True)
def cut_tree(
    rows, vectors, label_ids, set_ids, combined, sizes, ends, extras, singles, price, costs, values, ways,
    keep
):  # fmt: skip
    """A good cut at a price per entry: `keep[k]` is whether node k is split further. Returns the waste of the cut.

    Bottom-up, a node is worked out both collapsed and split at best; the parent chooses, since a collapsed
    child's label may ask for an entry that a split one's would not. What children need is counted as the
    smallest table counts it: one more entry where they have no label in common. `ways[k]` says which children
    are collapsed in the best split.
    """
    palette = (rows, vectors, label_ids, set_ids, combined, sizes)
    n = ends.shape[0]
    for k in range(n - 1, -1, -1):
        costs[k] = np.inf
        if ends[k] == k + 1:
            continue
        left, right = k + 1, ends[k + 1]
        for way in range(4):
            cost = (extras[left] if way & 1 else costs[left]) + (extras[right] if way & 2 else costs[right])
            if cost >= costs[k]:
                continue
            both, apart = combined_set(
                palette,
                singles[left] if way & 1 else values[left],
                singles[right] if way & 2 else values[right],
            )
            if apart:
                cost += price
            if cost < costs[k]:
                costs[k], values[k], ways[k] = cost, both, way
    whole = extras[0] + (0.0 if in_set(vectors, singles[0], 0) else price)
    apart = costs[0] + (price if ends[0] > 1 and not in_set(vectors, values[0], 0) else 0.0)
    keep[0] = apart < whole
    waste, k = 0.0, 0
    while k < n:
        if keep[k]:
            keep[k + 1], keep[ends[k + 1]] = ways[k] & 1 == 0, ways[k] & 2 == 0
            k += 1
        else:
            waste += extras[k]
            values[k] = singles[k]
            k = ends[k]
    return waste


@njit(cache=True, nogil=True)
def table_of_cut(rows, vectors, ends, keys, keep, values, out, write):
    """The smallest table of the cut's labels; its entries into `out` if asked (hi, lo, length, ports...)."""
    n, count = ends.shape[0], 0
    above = np.zeros(200, np.int64)  # the label in force, by depth
    top = np.int64(keys[0, 2])
    k = 0
    while k < n:
        depth = np.int64(keys[k, 2]) - top
        label = above[depth - 1] if depth > 0 else 0
        if not in_set(vectors, values[k], label):
            label = vectors[PICKS][values[k]]
            if write:
                out[count, :3] = keys[k]
                out[count, 3:] = rows[0][label]
            count += 1
        above[depth] = label
        k = k + 1 if keep[k] else ends[k]
    return count
