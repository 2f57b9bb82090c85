"""A tree of cuts grown by the deliveries that each avoids, compiled.

The plain twin is in `tests/pipeline/planning/test_kd_planner.py`.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_split(points, first, last, events, boxes, corner, allowed, room):
    """The dimension and place at which cutting a cell avoids most deliveries, and how many these are.

    `events` and `boxes` list what lies in the cell and what touches it in part; `corner` is its first and last place
    on each dimension; `room` are three arrays that grow with the work.
    """
    best_axis, best_place, most = -1, 0, 0.0
    n = len(events)
    values, starts, ends = room
    for axis in range(points.shape[1]):
        low, high = corner[0, axis], corner[1, axis]
        if not allowed[axis] or low == high:
            continue
        begin = end = 0
        for box in boxes:
            if first[box, axis] > low:
                starts[begin] = first[box, axis]
                begin += 1
            if last[box, axis] < high:
                ends[end] = last[box, axis]
                end += 1
        if begin == 0 and end == 0:
            continue
        for i in range(n):
            values[i] = points[events[i], axis]
        sorted_values, sorted_starts, sorted_ends = (
            np.sort(values[:n]),
            np.sort(starts[:begin]),
            np.sort(ends[:end]),
        )
        at_value = at_start = at_end = 0
        while at_start < begin or at_end < end:
            place = high + 1
            if at_start < begin:
                place = sorted_starts[at_start]
            if at_end < end and sorted_ends[at_end] + 1 < place:
                place = sorted_ends[at_end] + 1
            while at_value < n and sorted_values[at_value] < place:
                at_value += 1
            while at_end < end and sorted_ends[at_end] < place:
                at_end += 1
            gain = np.float64(at_value) * (begin - at_start) + np.float64(n - at_value) * at_end
            if gain > most and place > low and place <= high:
                best_axis, best_place, most = axis, place, gain
            while at_start < begin and sorted_starts[at_start] == place:
                at_start += 1
    return best_axis, best_place, most


@njit(cache=True, nogil=True)
def partial(first, last, boxes, corner, out):
    """List the boxes that touch a cell but do not hold all of it; how many these are."""
    kept = 0
    for box in boxes:
        touched, whole = True, True
        for axis in range(corner.shape[1]):
            if first[box, axis] > corner[1, axis] or last[box, axis] < corner[0, axis]:
                touched = False
                break
            if first[box, axis] > corner[0, axis] or last[box, axis] < corner[1, axis]:
                whole = False
        if touched and not whole:
            out[kept] = box
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def grow(points, first, last, sizes, allowed, most_nodes, bits, least_events):
    """Grow the tree, always at the cell with most to gain; (axis, place, low, high) of its nodes, axis -1: a leaf."""
    axes = points.shape[1]
    capacity = 2 * most_nodes + 1
    axis, place = np.full(capacity, -1, np.int64), np.zeros(capacity, np.int64)
    low, high = np.full(capacity, -1, np.int64), np.full(capacity, -1, np.int64)
    depth = np.zeros(capacity, np.int64)
    corners = np.zeros((capacity, 2, axes), np.int64)
    for a in range(axes):
        corners[0, 1, a] = sizes[a] - 1
    events = [np.arange(len(points))]
    boxes = [np.arange(len(first))]
    room = np.empty(len(points), np.int64), np.empty(len(first), np.int64), np.empty(len(first), np.int64)
    buffer = np.empty(len(first), np.int64)
    heap = [(-1.0, 0, -1, 0)]
    a, p, gain = best_split(points, first, last, events[0], boxes[0], corners[0], allowed, room)
    heap[0] = (-gain, 0, a, p)
    nodes, inner = 1, 0
    nothing = np.empty(0, np.int64)
    while len(heap) and inner < most_nodes:
        negative, node, a, p = heapq.heappop(heap)
        if a < 0 or negative == 0.0:
            continue
        axis[node], place[node] = a, p
        inner += 1
        mine, near = events[node], boxes[node]
        events[node], boxes[node] = nothing, nothing
        for half in range(2):
            child = nodes
            nodes += 1
            if half == 0:
                low[node] = child
            else:
                high[node] = child
            depth[child] = depth[node] + 1
            for other in range(axes):
                corners[child, 0, other] = corners[node, 0, other]
                corners[child, 1, other] = corners[node, 1, other]
            if half == 0:
                corners[child, 1, a] = p - 1
            else:
                corners[child, 0, a] = p
            kept = 0
            for i in range(len(mine)):
                if (points[mine[i], a] >= p) == (half == 1):
                    kept += 1
            some = np.empty(kept, np.int64)
            kept = 0
            for i in range(len(mine)):
                if (points[mine[i], a] >= p) == (half == 1):
                    some[kept] = mine[i]
                    kept += 1
            if kept >= least_events and depth[child] < bits:
                count = partial(first, last, near, corners[child], buffer)
                left = buffer[:count].copy()
                events.append(some)
                boxes.append(left)
                b, q, gain = best_split(points, first, last, some, left, corners[child], allowed, room)
                if b >= 0:
                    heapq.heappush(heap, (-gain, child, b, q))
            else:
                events.append(nothing)
                boxes.append(nothing)
    return axis[:nodes], place[:nodes], low[:nodes], high[:nodes]
