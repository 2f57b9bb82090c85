# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Covers for regular plans, compiled; the plain twins are the functions of the same names in `cover`.

A cell is its dz, left-aligned in 128 bits, its first and last place on each axis, and the list of the boxes that
touch it: `count` of them, in a long array that many cells share.
"""

from __future__ import annotations

from math import ldexp
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.index.cover import FEW_BOXES, LEAST_SHARE
from flowsieve.index.dzset_kernel import grown, push

ZERO = np.uint64(0)
ONE = np.uint64(1)


class Task(NamedTuple):
    """A plan, the boxes to cover, and the sample that says where events fall (empty: waste is volume)."""

    levels: NDArray[np.int64]  # the axis that each level halves
    axis_last: NDArray[np.uint64]  # the last place on each axis
    first: NDArray[np.uint64]  # as in `Span`: a row per box, a column per axis
    last: NDArray[np.uint64]
    below: NDArray[np.uint64]
    above: NDArray[np.uint64]
    codes_hi: NDArray[np.uint64]  # the sample's dz, sorted
    codes_lo: NDArray[np.uint64]
    places: NDArray[np.uint64]  # a row per event of the sample, a column per axis
    unwanted: NDArray[np.int64]  # room for as many numbers as there are codes, and one more
    prior: float  # as in `EventSample`


NODE = np.dtype(
    [
        ("hi", "u8"),
        ("lo", "u8"),
        ("length", "i8"),
        ("at", "i8"),  # the boxes that touch the cell: where their list begins, and how many they are
        ("count", "i8"),
        ("start", "i8"),  # the codes of the sample in the cell: from `start` to before `end`
        ("end", "i8"),
        ("waste", "f8"),  # these three as in `Weight`
        ("volume", "f8"),
        ("hits", "i8"),
        ("shrunk", "i8"),
        ("half", "i8"),  # the node of the lower half, the upper one follows it; -1: not looked at yet
        ("gain_per_dz", "f8"),  # the best move from here
        ("cost", "i8"),
    ]
)


class Pool(NamedTuple):
    """All cells that a search has looked at."""

    nodes: NDArray[np.void]
    corners: NDArray[np.uint64]  # of each node the first and the last place on each axis
    near: NDArray[np.int64]  # the lists of boxes
    used: NDArray[np.int64]  # of `nodes` and of `near`


@njit(cache=True, nogil=True, inline="always")
def upper(hi, lo, length):
    """The left-aligned dz of the upper half of a cell."""
    if length < 64:
        return hi | (ONE << np.uint64(63 - length)), lo
    return hi, lo | (ONE << np.uint64(127 - length))


@njit(cache=True, nogil=True, inline="always")
def bit_at(hi, lo, level):
    """The bit of a left-aligned dz that tells the halves at a level apart."""
    if level < 64:
        return hi >> np.uint64(63 - level) & ONE
    return lo >> np.uint64(127 - level) & ONE


@njit(cache=True, nogil=True, inline="always")
def middle_of(corner, axis):
    """The last place of the lower half of a cell."""
    return corner[0, axis] + ((corner[1, axis] - corner[0, axis]) >> ONE)


@njit(cache=True, nogil=True)
def copy_corner(source, target):
    for axis in range(source.shape[1]):
        target[0, axis], target[1, axis] = source[0, axis], source[1, axis]


@njit(cache=True, nogil=True)
def whole_corner(task, target):
    for axis in range(len(task.axis_last)):
        target[0, axis], target[1, axis] = ZERO, task.axis_last[axis]


@njit(cache=True, nogil=True)
def keep_touching(task, near, source, count, axis, first, last, target):
    """Copy those boxes of a list that reach into first..last on an axis; how many these are."""
    kept = 0
    for i in range(source, source + count):
        box = near[i]
        if task.first[box, axis] <= last and task.last[box, axis] >= first:
            near[target + kept] = box
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def any_touches(task, near, axis, first, last):
    for box in near:
        if task.first[box, axis] <= last and task.last[box, axis] >= first:
            return True
    return False


@njit(cache=True, nogil=True)
def any_encloses(task, near, corner):
    for box in near:
        inside = True
        for axis in range(corner.shape[1]):
            if task.below[box, axis] > corner[0, axis] or task.above[box, axis] < corner[1, axis]:
                inside = False
                break
        if inside:
            return True
    return False


@njit(cache=True, nogil=True)
def touches(task, hi, lo, length):
    axes = len(task.axis_last)
    corner = np.empty((2, axes), np.uint64)
    out = np.zeros(len(hi), np.bool_)
    for i in range(len(hi)):
        whole_corner(task, corner)
        for level in range(min(length[i], len(task.levels))):
            axis = task.levels[level]
            middle = middle_of(corner, axis)
            if bit_at(hi[i], lo[i], level):
                corner[0, axis] = middle + ONE
            else:
                corner[1, axis] = middle
        for box in range(len(task.first)):
            touched = True
            for axis in range(axes):
                if task.first[box, axis] > corner[1, axis] or task.last[box, axis] < corner[0, axis]:
                    touched = False
                    break
            if touched:
                out[i] = True
                break
    return out


@njit(cache=True, nogil=True)
def outside(task, near, corner):
    """The share of a cell outside all boxes of a list: every sum and product in the order of the twin's."""
    axes, few = corner.shape[1], 1 < len(near) <= FEW_BOXES
    apart = 1.0
    for box in near:
        share, before = 0.0, 1.0
        for axis in range(axes):
            gap = 0.0
            if task.below[box, axis] > corner[0, axis]:
                gap = np.float64(task.below[box, axis] - corner[0, axis])
            if task.above[box, axis] < corner[1, axis]:
                gap += np.float64(corner[1, axis] - task.above[box, axis])
            if gap > 0.0:
                size = np.float64(corner[1, axis] - corner[0, axis]) + 1.0
                share += before * (gap / size)
                before *= (size - gap) / size
        if share == 0.0:
            return 0.0
        apart *= share
    apart = max(apart, 1e-300)
    if not few:
        return apart
    inside = 0.0
    for chosen in range(1, 1 << len(near)):
        share, sign = 1.0, -1.0
        for i in range(len(near)):
            if chosen >> i & 1:
                sign = -sign
        for axis in range(axes):
            low, high = corner[0, axis], corner[1, axis]
            for i in range(len(near)):
                if chosen >> i & 1:
                    low = max(low, task.below[near[i], axis])
                    high = min(high, task.above[near[i], axis])
            if low > high:
                share = 0.0
                break
            share *= (np.float64(high - low) + 1.0) / (np.float64(corner[1, axis] - corner[0, axis]) + 1.0)
        inside += sign * share
    return max(1.0 - inside, LEAST_SHARE * apart)


@njit(cache=True, nogil=True)
def cut_codes(task, start, end, hi, lo):
    """Where the codes begin that are not below (hi, lo), among those from start to end."""
    while start < end:
        middle = (start + end) >> 1
        code = task.codes_hi[middle]
        if code < hi or (code == hi and task.codes_lo[middle] < lo):
            start = middle + 1
        else:
            end = middle
    return start


@njit(cache=True, nogil=True)
def count_unwanted(task, near, start, end):
    """Note, for each code from start to end, how many events before it lie in no box."""
    task.unwanted[start] = 0
    for row in range(start, end):
        wanted = False
        for box in near:
            wanted = True
            for axis in range(task.places.shape[1]):
                place = task.places[row, axis]
                if place < task.first[box, axis] or place > task.last[box, axis]:
                    wanted = False
                    break
            if wanted:
                break
        task.unwanted[row + 1] = task.unwanted[row] + (0 if wanted else 1)


@njit(cache=True, nogil=True)
def enlarged(pool, nodes, near):
    """A pool with room for so many more."""
    if pool.used[0] + nodes > len(pool.nodes):
        room = 2 * len(pool.nodes) + nodes
        corners = np.empty((room, 2, pool.corners.shape[2]), np.uint64)
        for i in range(len(pool.corners)):
            copy_corner(pool.corners[i], corners[i])
        pool = Pool(grown(pool.nodes, room), corners, pool.near, pool.used)
    if pool.used[1] + near > len(pool.near):
        pool = Pool(pool.nodes, pool.corners, grown(pool.near, 2 * len(pool.near) + near), pool.used)
    return pool


@njit(cache=True, nogil=True)
def settle(task, pool, serial, above):
    """Shrink a new cell (a half of the one above) to the smallest around what touches it, and weigh it.

    Twin: `_Search.node`, with `volume_weight` and `EventSample.weight`.
    """
    node, corner = pool.nodes[serial], pool.corners[serial]
    near = pool.near[
        node.at : node.at + node.count
    ]  # whatever touches the cell touches the half that is left
    node.half, node.shrunk = -1, 0
    while node.length < len(task.levels) and not any_encloses(task, near, corner):
        axis = task.levels[node.length]
        middle = middle_of(corner, axis)
        low = any_touches(task, near, axis, corner[0, axis], middle)
        if low and any_touches(task, near, axis, middle + ONE, corner[1, axis]):
            break
        descend(task, node, corner, 0 if low else 1)
        node.shrunk = 1
    share = outside(task, near, corner)
    node.volume = ldexp(1.0, -node.length) * share
    node.waste = node.volume
    if len(task.codes_hi) and share > 0.0:
        if above < 0:
            count_unwanted(task, near, node.start, node.end)
        node.hits = task.unwanted[node.end] - task.unwanted[node.start]
        if above < 0:
            node.waste = (node.hits + task.prior * node.volume) / len(task.codes_hi)
        else:
            up = pool.nodes[above]
            node.waste = (
                up.waste * (node.hits + task.prior * (node.volume / up.volume)) / (up.hits + task.prior)
            )


@njit(cache=True, nogil=True)
def descend(task, node, corner, half):
    """Turn a cell into its lower half (0) or its upper half (1)."""
    axis = task.levels[node.length]
    middle = middle_of(corner, axis)
    hi, lo = upper(node.hi, node.lo, node.length)
    cut = cut_codes(task, node.start, node.end, hi, lo)
    if half == 0:
        corner[1, axis] = middle
        node.end = cut
    else:
        corner[0, axis] = middle + ONE
        node.hi, node.lo, node.start = hi, lo, cut
    node.length += 1


@njit(cache=True, nogil=True)
def halve(task, pool, serial, most_nodes):
    """Look at the two halves of a cell, once; the pool, and whether there are any."""
    if pool.nodes[serial].half >= 0:
        return pool, True
    if pool.nodes[serial].length == len(task.levels) or pool.used[0] + 2 > most_nodes:
        return pool, False
    pool = enlarged(pool, 2, 2 * pool.nodes[serial].count)
    node = pool.nodes[serial]
    node.half = pool.used[0]
    for half in range(2):
        made = pool.used[0]
        child, corner = pool.nodes[made], pool.corners[made]
        child.hi, child.lo, child.length = node.hi, node.lo, node.length
        child.start, child.end, child.at = node.start, node.end, pool.used[1]
        copy_corner(pool.corners[serial], corner)
        axis = task.levels[node.length]
        descend(task, child, corner, half)
        child.count = keep_touching(
            task, pool.near, node.at, node.count, axis, corner[0, axis], corner[1, axis], child.at
        )
        pool.used[0] += 1
        pool.used[1] += child.count
        settle(task, pool, made, serial)
    return pool, True


@njit(cache=True, nogil=True)
def best_move(task, pool, start, most, patience, most_nodes):
    """The pool, and the gain per dz and the cost (0: no move) of the best move from a cell."""
    while pool.nodes[start].waste > 0.0:
        serial, gain, best_gain, best_cost, drops, dead = start, 0.0, 0.0, 0, 0, False
        for cost in range(1, most + 1):
            pool, halved = halve(task, pool, serial, most_nodes)
            if not halved:
                dead = True
                break
            node = pool.nodes[serial]
            low, high = pool.nodes[node.half], pool.nodes[node.half + 1]
            gain += node.waste - low.waste - high.waste
            if low.shrunk or high.shrunk:
                if best_cost == 0 or gain / cost > best_gain:
                    best_gain, best_cost = gain / cost, cost
                drops += 1
                if drops == patience or pool.nodes[start].waste / (cost + 1) <= best_gain:
                    return pool, best_gain, best_cost
            if max(low.waste, high.waste) == 0.0:
                dead = True
                break
            serial = node.half if low.waste >= high.waste else node.half + 1
        if best_cost or not dead:
            return pool, best_gain, best_cost
        pool.nodes[serial].waste = 0.0
    return pool, 0.0, 0


@njit(cache=True, nogil=True)
def make(pool, start, cost, out):
    """Write down the cells that take the place of one after a move; how many these are."""
    serial = start
    for step in range(cost):
        low = pool.nodes[serial].half
        serial, out[step] = low, low + 1
        if pool.nodes[low].waste < pool.nodes[low + 1].waste:
            serial, out[step] = low + 1, low
    out[cost] = serial
    return cost + 1


@njit(cache=True, nogil=True, inline="always")
def goes_before(nodes, a, b):
    """The order of the heap: the larger gain first, then the older cell."""
    x, y = nodes[a].gain_per_dz, nodes[b].gain_per_dz
    return x > y or (x == y and a < b)


@njit(cache=True, nogil=True)
def heap_push(heap, n, nodes, item):
    heap[n] = item
    i = n
    while i:
        parent = (i - 1) >> 1
        if not goes_before(nodes, heap[i], heap[parent]):
            break
        heap[i], heap[parent] = heap[parent], heap[i]
        i = parent


@njit(cache=True, nogil=True)
def heap_pop(heap, n, nodes):
    top = heap[0]
    n -= 1
    heap[0] = heap[n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            return top
        if child + 1 < n and goes_before(nodes, heap[child + 1], heap[child]):
            child += 1
        if not goes_before(nodes, heap[child], heap[i]):
            return top
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@njit(cache=True, nogil=True)
def refine(task, budget, patience, most_nodes):
    axes, boxes = len(task.axis_last), len(task.first)
    room = 8 * min(budget, 1024) + 64
    pool = Pool(
        np.empty(room, NODE),
        np.empty((room, 2, axes), np.uint64),
        np.empty(4 * boxes + 2 * room, np.int64),
        np.zeros(2, np.int64),
    )
    whole = pool.nodes[0]
    whole.hi, whole.lo, whole.length = ZERO, ZERO, 0
    whole.at, whole.count, whole.start, whole.end = 0, boxes, 0, len(task.codes_hi)
    whole_corner(task, pool.corners[0])
    for box in range(boxes):
        pool.near[box] = box
    pool.used[0], pool.used[1] = 1, boxes
    settle(task, pool, 0, -1)

    hi, lo, length = np.empty(budget, np.uint64), np.empty(budget, np.uint64), np.empty(budget, np.int64)
    heap, new = np.empty(budget, np.int64), np.empty(budget, np.int64)
    done, in_heap, in_new, size = 0, 0, 1, 1
    new[0] = 0
    while in_new or in_heap:
        for i in range(in_new):
            pool, gain_per_dz, cost = best_move(task, pool, new[i], budget - size, patience, most_nodes)
            node = pool.nodes[new[i]]
            if cost:
                node.gain_per_dz, node.cost = gain_per_dz, cost
                heap_push(heap, in_heap, pool.nodes, new[i])
                in_heap += 1
            else:
                hi[done], lo[done], length[done] = node.hi, node.lo, node.length
                done += 1
        in_new = 0
        if in_heap:
            serial = heap_pop(heap, in_heap, pool.nodes)
            in_heap -= 1
            cost = pool.nodes[serial].cost
            if size + cost > budget:
                new[0], in_new = serial, 1
            else:
                size += cost
                in_new = make(pool, serial, cost, new)
    return hi[:done], lo[:done], length[:done]


@njit(cache=True, nogil=True)
def exact(task, most, most_visits):
    """The dz of the exact cover, canonical, and whether these are all: not more than `most`, nor too hard to find."""
    axes, boxes, bits = len(task.axis_last), len(task.first), len(task.levels)
    room = 1024
    hi, lo, length = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.int64)
    # The path to the cell in hand: of each level the cell, and the boxes that touch it.
    path_hi, path_lo = np.zeros(bits + 1, np.uint64), np.zeros(bits + 1, np.uint64)
    corners = np.empty((bits + 1, 2, axes), np.uint64)
    whole_corner(task, corners[0])
    near, count = np.empty((bits + 1) * boxes, np.int64), np.zeros(bits + 1, np.int64)
    for box in range(boxes):
        near[box] = box
    count[0] = boxes
    turn = np.zeros(bits + 1, np.int64)  # how many halves have been looked at
    n = level = visits = 0
    while level >= 0:
        if turn[level] == 0:
            visits += 1
            if n > most + bits or visits > most_visits:
                return hi[:n], lo[:n], length[:n], False
            some = near[level * boxes : level * boxes + count[level]]
            if level == bits or any_encloses(task, some, corners[level]):
                if n == room:
                    room *= 2
                    hi, lo, length = grown(hi, room), grown(lo, room), grown(length, room)
                n = push(hi, lo, length, n, path_hi[level], path_lo[level], level)
                turn[level] = 2
        if turn[level] == 2:
            turn[level] = 0
            level -= 1
            continue
        half = turn[level]
        turn[level] += 1
        if enter(task, near, count, corners, level, half):
            path_hi[level + 1], path_lo[level + 1] = path_hi[level], path_lo[level]
            if half:
                path_hi[level + 1], path_lo[level + 1] = upper(path_hi[level], path_lo[level], level)
            level += 1
    return hi[:n], lo[:n], length[:n], n <= most


@njit(cache=True, nogil=True)
def enter(task, near, count, corners, level, half):
    """Write down a half of the cell at a level as the cell at the next; whether any box touches it."""
    boxes, axis = len(task.first), task.levels[level]
    middle = middle_of(corners[level], axis)
    copy_corner(corners[level], corners[level + 1])
    if half == 0:
        corners[level + 1, 1, axis] = middle
    else:
        corners[level + 1, 0, axis] = middle + ONE
    count[level + 1] = keep_touching(
        task,
        near,
        level * boxes,
        count[level],
        axis,
        corners[level + 1, 0, axis],
        corners[level + 1, 1, axis],
        (level + 1) * boxes,
    )
    return count[level + 1] > 0


@njit(cache=True, nogil=True)
def count(task, most_visits):
    """How many dz the exact cover has, as a float; beyond `most_visits` cells with several boxes, at most that many."""
    axes, boxes, bits = len(task.axis_last), len(task.first), len(task.levels)
    corners = np.empty((bits + 1, 2, axes), np.uint64)
    whole_corner(task, corners[0])
    near, near_count = np.empty((bits + 1) * boxes, np.int64), np.zeros(bits + 1, np.int64)
    for box in range(boxes):
        near[box] = box
    near_count[0] = boxes
    turn = np.zeros(bits + 1, np.int64)
    total, wholes = np.zeros(bits + 1), np.zeros(bits + 1, np.int64)  # of the halves looked at
    level = visits = 0
    while True:
        here, whole, known = 0.0, False, False
        if turn[level] == 0:
            visits += 1
            some = near[level * boxes : level * boxes + near_count[level]]
            whole = level == bits or any_encloses(task, some, corners[level])
            known = whole or len(some) == 1 or visits > most_visits
            if whole:
                here = 1.0
            elif known:
                for box in some:
                    here += count_one(task, box, corners[level], level)
        elif turn[level] == 2:
            known, whole = True, wholes[level] == 2
            here = 1.0 if whole else total[level]
        if known:
            turn[level], total[level], wholes[level] = 0, 0.0, 0
            level -= 1
            if level < 0:
                return here
            total[level] += here
            wholes[level] += whole
            continue
        half = turn[level]
        turn[level] += 1
        if enter(task, near, near_count, corners, level, half):
            level += 1


@njit(cache=True, nogil=True)
def count_one(task, box, corner, start):
    """How many dz the exact cover of one box has in a cell, without going there.

    Cells are products of intervals: at every level the box encloses as many cells as the product, over the axes,
    of the intervals that it encloses there. Those whose parent it encloses as well do not count: the parent does.
    """
    axes = len(task.axis_last)
    shift = np.zeros(axes, np.uint64)  # log2 of the places in an interval
    for level in range(start, len(task.levels)):
        shift[task.levels[level]] += ONE
    low, high, number = np.empty(axes, np.uint64), np.empty(axes, np.uint64), np.empty(axes)
    for axis in range(axes):
        low[axis], high[axis], number[axis] = enclosed(task, box, corner, axis, shift[axis])
    found = 1.0
    for axis in range(axes):
        found *= number[axis]
    for level in range(start, len(task.levels)):
        axis = task.levels[level]
        parent_low, parent_high, parents = low[axis], high[axis], number[axis]
        shift[axis] -= ONE
        low[axis], high[axis], number[axis] = enclosed(task, box, corner, axis, shift[axis])
        new = number[axis]
        if parents and new:
            in_low, in_high = max(low[axis], parent_low << ONE), min(high[axis], parent_high << ONE | ONE)
            new -= np.float64(in_high - in_low) + 1.0
        for other in range(axes):
            if other != axis:
                new *= number[other]
        found += new
    return found


@njit(cache=True, nogil=True)
def enclosed(task, box, corner, axis, shift):
    """Of the intervals of 2^shift places in a cell, those that a box touches and encloses: the first, the last, how
    many (as a float: they may be 2^64)."""
    if shift >= np.uint64(64):  # one interval, the whole axis; and no machine shifts by 64
        whole = task.below[box, axis] == ZERO and task.above[box, axis] == task.axis_last[axis]
        return ZERO, ZERO, 1.0 if whole else 0.0
    base, top = corner[0, axis], corner[1, axis]
    low = (max(task.first[box, axis], base) - base) >> shift
    high = (min(task.last[box, axis], top) - base) >> shift
    rest = (ONE << shift) - ONE
    below, above = max(task.below[box, axis], base) - base, min(task.above[box, axis], top) - base
    if below > low << shift:
        low = (below + rest) >> shift if below <= ~rest else high + ONE
    if above & rest != rest:
        if above >> shift == ZERO:
            return ZERO, ZERO, 0.0
        high = min(high, (above >> shift) - ONE)
    else:
        high = min(high, above >> shift)
    if low > high:
        return ZERO, ZERO, 0.0
    return low, high, np.float64(high - low) + 1.0
