"""Fit a switch's table into few entries, where that costs least unwanted traffic.

Every cell gets the ports that it needs, and may get more; that costs the traffic that then goes out of ports
that did not ask for it. For a price λ of an entry, one pass bottom-up finds what each subtree costs with a
label handed down from above, and one pass top-down takes the labels. λ is chosen so that the table fits.

A subtree can always set a label of its own for λ, so only labels that cost less than that on top of the best one
have to be known. Where one label for all of a subtree wastes a trifle of that, it is taken as it is: most of a trie
lies below what a cut tells apart. For other nodes these are labels of its halves or unions of them, and with all of
them the cut would be the best there is. The FEW cheapest come close to it: the plain twin is in
`tests/flow/capacity/test_fitted.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import NONE, ONE, ZERO, bit_at, has_port, lowest_bit
from flowsieve.flow.tables.palette_kernel import mixed
from flowsieve.flow.tables.table_kernel import arriving_port, write_label
from flowsieve.flow.tables.trie_kernel import ADVERTISED, HEAD, INNER, WANTED, go_on, group, words_of

FEW = 4  # labels kept per node
TRIFLE = 0.1  # of the price of an entry: what wastes less is not told apart
LEAK = (
    0.02  # of what nobody here asked for, this part is expected to come from coarse neighbours all the same
)

# Columns of `spans`: the cells and the events inside a node; of `sums`: the mass that wider cells spread over it,
# all mass in it, and what it weighs.
CELLS, CELLS_END, EVENTS, EVENTS_END = 0, 1, 2, 3
SPREAD, MASS, WEIGHT = 0, 1, 2


@njit(cache=True)
def first_with_bit(rows, low, high, depth):
    """Where the sorted rows in [low, high), alike before this depth, turn from 0 to 1 at it."""
    while low < high:
        middle = (low + high) // 2
        if bit_at(rows[middle, 0], rows[middle, 1], depth):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def weigh_half(traffic, bit, depth, spans, sums):
    """From the node at this depth to one half of it: what that weighs (`flow.weights`)."""
    cells, mass, events, prior = traffic
    low, high, first, last = spans[depth]
    seen = last - first
    if bit:
        low, first = first_with_bit(cells, low, high, depth), first_with_bit(events, first, last, depth)
    else:
        high, last = first_with_bit(cells, low, high, depth), first_with_bit(events, first, last, depth)
    spread = sums[depth, SPREAD] / 2
    while low < high and np.int64(cells[low, 2]) == depth + 1:
        spread += mass[low + 1] - mass[low]
        low += 1
    inside = mass[high] - mass[low] + spread
    share = (last - first + prior * (inside / sums[depth, MASS])) / (seen + prior)
    spans[depth + 1, CELLS], spans[depth + 1, CELLS_END] = low, high
    spans[depth + 1, EVENTS], spans[depth + 1, EVENTS_END] = first, last
    sums[depth + 1, SPREAD], sums[depth + 1, MASS] = spread, inside
    sums[depth + 1, WEIGHT] = sums[depth, WEIGHT] * share


@njit(cache=True, nogil=True)
def weigh_nodes(nodes, root, start, first, traffic, is_host, scratch, ends, keys, needs, waste):
    """The trie in preorder: where each subtree ends, its dz, the ports a leaf needs, what is unwanted at each port.

    `traffic` is that of `flow.weights.Weights`. A leaf weighs what is expected in it; little, where only coarse
    neighbours would send anything; nothing, where nobody else publishes.
    """
    path, stage, place = scratch[0], scratch[1], scratch[2].copy()
    deep, words = path.shape[0], words_of(nodes)
    first_wanted, first_advertised = group(WANTED, words), group(ADVERTISED, words)
    spans, sums = np.zeros((deep + 1, 4), np.int64), np.zeros((deep + 1, 3))  # by depth
    nothing = np.zeros(words, np.uint64)
    hi, lo = first
    cells, mass, events, _ = traffic
    while spans[0, CELLS] < cells.shape[0] and cells[spans[0, CELLS], 2] == ZERO:
        spans[0, CELLS] += 1
    spans[0, CELLS_END], spans[0, EVENTS_END] = cells.shape[0], events.shape[0]
    sums[0, SPREAD], sums[0, MASS], sums[0, WEIGHT] = mass[spans[0, CELLS]], mass[-1], 1.0
    for depth in range(start):
        weigh_half(traffic, bit_at(hi, lo, depth), depth, spans, sums)
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        node = np.int64(path[level])
        depth = start + level
        if stage[level] == 0:
            place[level] = n
            keys[n, 0], keys[n, 1], keys[n, 2] = hi, lo, np.uint64(depth)
            n += 1
        at = place[level]
        if nodes[node, HEAD] & INNER:
            if stage[level] < 2:
                weigh_half(traffic, stage[level], depth, spans, sums)
            else:
                ends[at] = n
                waste[at] = waste[at + 1] + waste[ends[at + 1]]
            level, hi, lo = go_on(nodes, path, stage, level, depth, hi, lo)
            continue
        ends[at] = n
        wanted = nodes[node, first_wanted : first_wanted + words]
        advertised = nodes[node, first_advertised : first_advertised + words]
        write_label(wanted, advertised, needs[at])
        source = arriving_port(wanted, advertised, is_host, nothing)
        weight = sums[depth, WEIGHT]
        if source == NONE:
            weight *= LEAK
            source = arriving_port(wanted, advertised, is_host, ~nothing)
        if source != NONE:
            # A hair's difference by place, so that equal weights do not all fall at one λ.
            seed = mixed(mixed(np.uint64(depth), hi), lo)
            weight *= 1.0 + 1e-6 * np.float64(seed >> np.uint64(44)) / 2.0**20
            for port in range(waste.shape[1]):
                if port != source and not has_port(needs[at], port):
                    waste[at, port] = weight
        level -= 1
    return n


@njit(cache=True)
def covers(label, other):
    for w in range(label.shape[0]):
        if other[w] & ~label[w] != ZERO:
            return False
    return True


@njit(cache=True)
def cost_of_more(label, fewer, waste):
    """What a label costs on top of one with fewer ports, at the most."""
    cost = 0.0
    for w in range(label.shape[0]):
        more = label[w] & ~fewer[w]
        while more != ZERO:
            cost += waste[(w << 6) + lowest_bit(more)]
            more &= more - ONE
    return cost


@njit(cache=True)
def cost_without_entry(label, labels, costs, waste):
    """What a node costs, at the most, if the label from above is left in force there."""
    least = np.inf
    for i in range(FEW):
        if costs[i] >= least:
            break
        if covers(label, labels[i]):
            least = min(least, costs[i] + cost_of_more(label, labels[i], waste))
    return least


@njit(cache=True)
def consider(label, waste, price, labels, costs, k, left, right):
    """Keep a label among the few of node k, if it is one of the cheapest."""
    cost = min(costs[left, 0] + price, cost_without_entry(label, labels[left], costs[left], waste[left]))
    cost += min(costs[right, 0] + price, cost_without_entry(label, labels[right], costs[right], waste[right]))
    if cost >= costs[k, FEW - 1] or cost >= costs[k, 0] + price:
        return
    # Known already, or no cheaper than to add ports to one that is.
    if cost >= cost_without_entry(label, labels[k], costs[k], waste[k]) * (1.0 - 1e-9):
        return
    at = FEW - 1
    while at > 0 and costs[k, at - 1] > cost:
        costs[k, at] = costs[k, at - 1]
        labels[k, at, :] = labels[k, at - 1]
        at -= 1
    costs[k, at] = cost
    labels[k, at, :] = label


@njit(cache=True, nogil=True)
def weigh_labels(ends, needs, waste, price, labels, costs, alike):
    """Per node the labels that are cheapest to be handed down from above, at a price per entry, and their costs.

    `alike` are the nodes inside which nothing is told apart: leaves, and what wastes a trifle with one label.
    """
    costs[:] = np.inf
    nothing = np.zeros(needs.shape[1], np.uint64)
    union = np.zeros(needs.shape[1], np.uint64)
    for k in range(ends.shape[0] - 1, -1, -1):
        if ends[k] == k + 1:
            labels[k, 0, :] = needs[k]
            costs[k, 0] = 0.0
            alike[k] = True
            continue
        left, right = k + 1, ends[k + 1]
        alike[k] = False
        if alike[left] and alike[right]:
            union[:] = labels[left, 0] | labels[right, 0]
            cost = cost_of_more(union, nothing, waste[k])
            if cost <= TRIFLE * price:
                labels[k, 0, :] = union
                costs[k, 0] = cost
                alike[k] = True
                continue
        for half in (left, right):
            for i in range(FEW):
                if costs[half, i] < np.inf:
                    consider(labels[half, i], waste, price, labels, costs, k, left, right)
        for i in range(FEW):
            for j in range(FEW):
                if costs[left, i] + costs[right, j] < costs[k, 0] + price:
                    union[:] = labels[left, i] | labels[right, j]
                    consider(union, waste, price, labels, costs, k, left, right)


@njit(cache=True, nogil=True)
def make_table(ends, keys, waste, price, labels, costs, alike, out, write):
    """The size of the table at a price, and its waste; its entries into `out` if asked (hi, lo, length, ports...)."""
    count, wasted = 0, 0.0
    force = np.zeros(
        (200, labels.shape[2]), np.uint64
    )  # the label in force, by depth; first that of no entry
    top = np.int64(keys[0, 2])
    k = 0
    while k < ends.shape[0]:
        depth = np.int64(keys[k, 2]) - top + 1
        label = force[depth]
        label[:] = force[depth - 1]
        without = cost_without_entry(label, labels[k], costs[k], waste[k])
        if without == np.inf or costs[k, 0] + price < without:
            label[:] = labels[k, 0]
            if write:
                out[count, :3] = keys[k]
                out[count, 3:] = label
            count += 1
        if alike[k]:
            wasted += cost_of_more(label, force[0], waste[k])
            k = ends[k]
        else:
            k += 1
    return count, wasted
