"""Fit a switch's table into few entries, where that costs least unwanted traffic.

A subtree may be collapsed into one region that gets every port any part of it needs; its price is the traffic that then goes out of
ports that did not ask for it. For a price λ of an entry, one pass bottom-up finds the best cut of the trie (collapse, or keep what the
children need); the cut's labels then make the smallest table. λ is chosen so that the table fits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.palette_kernel import PICKS, combine, holds_label, intern_one, mixed
from flowsieve.flow.spread_kernel import ADVERTISED, LEFT, WANTED
from flowsieve.flow.table_kernel import arriving_port, write_label
from flowsieve.flow.words_kernel import NONE, ZERO, bit_at, bit_words, has_port


@njit(cache=True)
def count_nodes(links, root, scratch):
    path, stage = scratch[0], scratch[1]
    left = links[LEFT]
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        node = np.int64(path[level])
        if stage[level] == 0:
            n += 1
        if left[node] >= 0 and stage[level] < 2:
            path[level + 1], stage[level + 1] = left[node] + stage[level], 0
            stage[level] += 1
            level += 1
        else:
            level -= 1
    return n


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
    links, sets, root, start, first, cells, mass, is_host, is_loose, scratch, ends, keys, unions, extras
):  # fmt: skip
    """The trie in preorder: where each subtree ends, its dz, the ports it needs, and what collapsing it would cost.

    Traffic is given as sorted cells (rows of hi, lo, length) over which a mass is spread evenly; `mass` adds up the cells before each.
    A leaf weighs what lies in it; nothing, where nothing can arrive.
    """
    path, stage, place = scratch[0], scratch[1], scratch[2].copy()
    left, wanted, advertised = links[LEFT], sets[WANTED], sets[ADVERTISED]
    deep, words = path.shape[0], wanted.shape[1]
    waste = np.zeros((deep + 1, words * 64))
    lows, highs = np.zeros(deep + 1, np.int64), np.zeros(deep + 1, np.int64)
    spread = np.zeros(deep + 1)  # by level: the part of the mass of wider cells that falls into the node
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
                source = arriving_port(wanted[node], advertised[node], is_host, is_loose)
                if source != NONE:
                    weight = mass[highs[level]] - mass[lows[level]] + spread[level]
                    for port in range(words * 64):
                        if port != source and not has_port(unions[at], port):
                            waste[level, port] = weight
                extras[at] = 0.0
                ends[at] = n
        if left[node] >= 0 and stage[level] < 2:
            middle = first_with_bit(cells, lows[level], highs[level], depth)
            low, high, thin = lows[level], middle, spread[level] / 2
            if stage[level] == 1:
                low, high = middle, highs[level]
                bit_hi, bit_lo = bit_words(depth)
                hi |= bit_hi
                lo |= bit_lo
            while low < high and np.int64(cells[low, 2]) == depth + 1:
                thin += mass[low + 1] - mass[low]
                low += 1
            lows[level + 1], highs[level + 1], spread[level + 1] = low, high, thin
            path[level + 1], stage[level + 1] = left[node] + stage[level], 0
            stage[level] += 1
            level += 1
            continue
        at = place[level]
        if left[node] >= 0:
            bit_hi, bit_lo = bit_words(depth)
            hi &= ~bit_hi
            lo &= ~bit_lo
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
        level -= 1
    return n


@njit(cache=True, nogil=True)
def cut_tree(ends, unions, extras, n, price, costs, keep):
    """The best cut at a price per entry: `keep[k]` is whether node k is split further. Returns the waste of the cut."""
    for k in range(n - 1, -1, -1):
        needs = 0.0
        for w in range(unions.shape[1]):
            if unions[k, w] != ZERO:
                needs = price
        if ends[k] == k + 1:
            costs[k] = needs
            keep[k] = False
            continue
        apart = costs[k + 1] + costs[ends[k + 1]]
        together = extras[k] + needs
        keep[k] = apart < together
        costs[k] = min(apart, together)
    waste = 0.0
    k = 0
    while k < n:
        if keep[k]:
            k += 1
        else:
            waste += extras[k]
            k = ends[k]
    return waste


@njit(cache=True, nogil=True)
def table_of_cut(
    rows, vectors, label_ids, set_ids, combined, sizes, ends, keys, unions, n, keep, values, out, write
):  # fmt: skip
    """The smallest table of the cut's labels; its entries into `out` (hi, lo, length, ports...) if asked. Returns how many."""
    palette = (rows, vectors, label_ids, set_ids, combined, sizes)
    inner = np.empty(n, np.int64)  # the cut's nodes in preorder
    m = 0
    k = 0
    while k < n:
        inner[m] = k
        m += 1
        k = k + 1 if keep[k] else ends[k]
    for i in range(m - 1, -1, -1):
        k = inner[i]
        if keep[k]:
            values[k] = combine(palette, values[k + 1], values[ends[k + 1]])
        else:
            values[k] = intern_one(palette, unions[k])
    count = 0
    above = np.zeros(200, np.int64)  # the label in force, by depth
    root_depth = np.int64(keys[0, 2])
    for i in range(m):
        k = inner[i]
        depth = np.int64(keys[k, 2]) - root_depth
        inherited = above[depth - 1] if depth > 0 else 0
        label = inherited
        if not holds_label(palette, values[k], inherited):
            label = palette[1][PICKS][values[k]]
            if write:
                out[count, :3] = keys[k]
                out[count, 3:] = palette[0][0][label]
            count += 1
        above[depth] = label
    return count
