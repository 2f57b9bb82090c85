"""Covers under a budget, compiled; the plain twin is `covers.refine`, name by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.index.covers.box_kernel import (
    ONE,
    ZERO,
    any_encloses,
    any_fills,
    any_touches,
    copy_corner,
    keep_touching,
    list_all,
    outside,
    upper,
    whole_corner,
)
from flowsieve.index.covers.refine import EFFORT_PER_CELL
from flowsieve.index.dzset_kernel import grown
from flowsieve.index.plans.split_kernel import axes_of, cut_of, next_of, start_of, volume_of

NODE = np.dtype(
    [
        ("hi", "u8"),
        ("lo", "u8"),
        ("length", "i8"),
        ("state", "i8"),  # the splitter's
        ("at", "i8"),  # the boxes that touch the cell: where their list begins, and how many they are
        ("count", "i8"),
        ("start", "i8"),  # the codes of the sample in the cell: from `start` to before `end`
        ("end", "i8"),
        ("waste", "f8"),  # these three as in `Weight`
        ("volume", "f8"),
        ("hits", "i8"),
        ("shrunk", "i8"),
        ("hope", "f8"),  # as in `_Node`
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
    near = pool.near[node.at : node.at + node.count]  # all of it touches the half that is left, too
    node.half, node.shrunk = -1, 0
    while node.length < task.bits and not any_encloses(task, near, corner):
        axis, middle = cut_of(task, node.state, corner)
        if axis == axes_of(task):  # the spare one: all that is left is touched
            break
        low = any_touches(task, near, axis, corner[0, axis], middle)
        if low and any_touches(task, near, axis, middle + ONE, corner[1, axis]):
            break
        descend(task, node, corner, axis, middle, 0 if low else 1)
        node.shrunk = 1
    share = outside(task, near, corner)
    node.volume = volume_of(task, corner, node.length) * share
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
    node.hope = node.waste
    if share > 0.0 and any_fills(task, near, node.state, corner, node.length):
        node.hope = 0.0


@njit(cache=True, nogil=True)
def descend(task, node, corner, axis, middle, half):
    """Turn a cell, cut on an axis behind a place, into its lower half (0) or its upper half (1)."""
    hi, lo = upper(node.hi, node.lo, node.length)
    cut = cut_codes(task, node.start, node.end, hi, lo)
    if half == 0:
        corner[1, axis] = middle
        node.end = cut
    else:
        corner[0, axis] = middle + ONE
        node.hi, node.lo, node.start = hi, lo, cut
    node.length += 1
    node.state = next_of(task, node.state, half)


@njit(cache=True, nogil=True)
def halve(task, pool, serial, most_effort):
    """Look at the two halves of a cell, once; the pool, and whether there are any."""
    if pool.nodes[serial].half >= 0:
        return pool, True
    effort = EFFORT_PER_CELL * pool.used[0] + pool.used[1]
    if pool.nodes[serial].length == task.bits or effort > most_effort:
        return pool, False
    pool = enlarged(pool, 2, 2 * pool.nodes[serial].count)
    node = pool.nodes[serial]
    node.half = pool.used[0]
    axis, middle = cut_of(task, node.state, pool.corners[serial])
    for half in range(2):
        made = pool.used[0]
        child, corner = pool.nodes[made], pool.corners[made]
        child.hi, child.lo, child.length, child.state = node.hi, node.lo, node.length, node.state
        child.start, child.end, child.at = node.start, node.end, pool.used[1]
        copy_corner(pool.corners[serial], corner)
        descend(task, child, corner, axis, middle, half)
        child.count = keep_touching(
            task, pool.near, node.at, node.count, axis, corner[0, axis], corner[1, axis], child.at
        )
        pool.used[0] += 1
        pool.used[1] += child.count
        settle(task, pool, made, serial)
    return pool, True


@njit(cache=True, nogil=True)
def best_move(task, pool, start, most, patience, most_effort):
    """The pool, and the gain per dz and the cost (0: no move) of the best move from a cell."""
    while pool.nodes[start].hope > 0.0:
        serial, gain, best_gain, best_cost, drops, dead = start, 0.0, 0.0, 0, 0, False
        for cost in range(1, most + 1):
            pool, halved = halve(task, pool, serial, most_effort)
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
            if max(low.hope, high.hope) == 0.0:
                dead = True
                break
            serial = node.half if low.hope >= high.hope else node.half + 1
        if best_cost or not dead:
            return pool, best_gain, best_cost
        pool.nodes[serial].hope = 0.0
    return pool, 0.0, 0


@njit(cache=True, nogil=True)
def make(pool, start, cost, out):
    """Write down the cells that take the place of one after a move; how many these are."""
    serial = start
    for step in range(cost):
        low = pool.nodes[serial].half
        serial, out[step] = low, low + 1
        if pool.nodes[low].hope < pool.nodes[low + 1].hope:
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
def refine(task, budget, patience, most_effort, price, free):
    axes, boxes = len(task.axis_last), len(task.first)
    room = 8 * min(budget, 1024) + 64
    pool = Pool(
        np.empty(room, NODE),
        np.empty((room, 2, axes), np.uint64),
        np.empty(4 * boxes + 2 * room, np.int64),
        np.zeros(2, np.int64),
    )
    whole = pool.nodes[0]
    whole.hi, whole.lo, whole.length, whole.state = ZERO, ZERO, 0, start_of(task)
    whole.at, whole.count, whole.start, whole.end = 0, boxes, 0, len(task.codes_hi)
    whole_corner(task, pool.corners[0])
    list_all(task, pool.near)
    pool.used[0], pool.used[1] = 1, boxes
    settle(task, pool, 0, -1)

    hi, lo, length = np.empty(budget, np.uint64), np.empty(budget, np.uint64), np.empty(budget, np.int64)
    heap, new = np.empty(budget, np.int64), np.empty(budget, np.int64)
    done, in_heap, in_new, size = 0, 0, 1, 1
    new[0] = 0
    while in_new or in_heap:
        for i in range(in_new):
            pool, gain_per_dz, cost = best_move(task, pool, new[i], budget - size, patience, most_effort)
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
            if size >= free and pool.nodes[serial].gain_per_dz < price:
                node = pool.nodes[serial]
                hi[done], lo[done], length[done] = node.hi, node.lo, node.length
                done += 1
            elif size + cost > budget:
                new[0], in_new = serial, 1
            else:
                size += cost
                in_new = make(pool, serial, cost, new)
    return hi[:done], lo[:done], length[:done]
