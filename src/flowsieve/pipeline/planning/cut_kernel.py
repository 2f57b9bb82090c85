"""Where to cut a line of places, compiled; the plain twin is `cutting.best_cut`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_cut(events, starts, ends, low, high):
    """The place in (low, high] at which cutting the places low..high avoids most deliveries, and how many.

    `events`, `starts` and `ends` say how many events lie, boxes start, and boxes end before each place. 0: no gain.
    """
    best, most = 0, 0.0
    for place in range(low + 1, high + 1):
        left = np.float64(events[place] - events[low])
        right = np.float64(events[high + 1] - events[place])
        gain = left * (starts[high + 1] - starts[place]) + right * (ends[place] - ends[low])
        if gain > most:
            best, most = place, gain
    return best, most


@njit(cache=True, nogil=True)
def halve(events, starts, ends, depth, cut):
    """Fill in the cuts of a complete tree of halvings, in heap order from 1; -1: nothing to gain there."""
    low, high = np.zeros(1 << depth, np.int64), np.zeros(1 << depth, np.int64)
    high[1] = len(events) - 2
    for node in range(1, 1 << depth):
        a, b = low[node], high[node]
        place = 0
        if a < b:
            place, _ = best_cut(events, starts, ends, a, b)
            if place == 0:  # nobody gains today: in the middle
                place = (a + b + 1) >> 1
        cut[node] = place or -1
        if 2 * node < 1 << depth:
            # A single place stays whole in the lower half; the upper one is empty.
            low[2 * node], high[2 * node] = a, place - 1 if place else b
            low[2 * node + 1], high[2 * node + 1] = place or b + 1, b


@njit(cache=True, nogil=True)
def balance(load, depth, cut):
    """As `halve`, but into halves of equal load; `load` says how much lies before each place."""
    low, high = np.zeros(1 << depth, np.int64), np.zeros(1 << depth, np.int64)
    high[1] = len(load) - 2
    for node in range(1, 1 << depth):
        a, b = low[node], high[node]
        place = 0
        if a < b:
            middle = (load[a] + load[b + 1]) / 2.0
            place = np.searchsorted(load[a + 1 : b + 1], middle) + a + 1
            if place > b:
                place = b
            if place > a + 1 and middle - load[place - 1] < load[place] - middle:
                place -= 1
        cut[node] = place or -1
        if 2 * node < 1 << depth:
            low[2 * node], high[2 * node] = a, place - 1 if place else b
            low[2 * node + 1], high[2 * node + 1] = place or b + 1, b
