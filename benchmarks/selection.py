"""Choosing dimensions: the kernels of EMCS and CS against vectorised loops, and how long methods take.

10,000 subscriptions, 100,000 events, 8 dimensions. The peers compare every event with every box, dimension by
dimension, in loops that the compiler vectorises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.bench import Result, at_least, at_most, rounded, seconds
from benchmarks.workloads import zipfsel
from flowsieve.pipeline.matching import match_kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import Matcher
from flowsieve.pipeline.matching.statistics import empty_sums
from flowsieve.pipeline.planning.methods import Workshop
from flowsieve.pipeline.planning.selection import matches_along

SUBSCRIPTIONS, EVENTS = 10_000, 100_000
PEER_EVENTS = 2_000  # the loops are slow, and linear in the events


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def along_pairs(points, low, high, inside, out):  # type: ignore[no-untyped-def]
    """Matches along each pair of dimensions: for every event all boxes, dimension by dimension."""
    dimensions, boxes = low.shape
    for event in range(points.shape[1]):
        for d in range(dimensions):
            value = points[d, event]
            for box in range(boxes):
                inside[d, box] = np.int32(low[d, box] <= value) & np.int32(value <= high[d, box])
        for i in range(dimensions):
            for j in range(i, dimensions):
                total = np.int32(0)
                for box in range(boxes):
                    total += inside[i, box] & inside[j, box]
                out[i, j] += total


@njit(nogil=True, fastmath=True)  # type: ignore[untyped-decorator]
def along(points, low, high, out):  # type: ignore[no-untyped-def]
    for d in range(low.shape[0]):
        for event in range(points.shape[1]):
            value, total = points[d, event], np.int32(0)
            for box in range(low.shape[1]):
                total += np.int32(low[d, box] <= value) & np.int32(value <= high[d, box])
            out[d] += total


def run() -> Result:
    load = zipfsel(1, SUBSCRIPTIONS, EVENTS)
    boxes = BoxTable.of(load.schema, load.filters)
    points = boxes.points(load.events)
    low, high = np.ascontiguousarray(boxes.low.T), np.ascontiguousarray(boxes.high.T)
    few = np.ascontiguousarray(points[:, :PEER_EVENTS])
    plain = np.zeros(8, np.int64)
    inside, pairs = np.zeros((8, len(boxes)), np.int32), np.zeros((8, 8), np.int64)
    for _ in range(2):  # the first is to compile
        plain[:] = pairs[:] = 0
        emcs = min(seconds(lambda: matches_along(boxes, points)) for _ in range(5))
        emcs_loop = seconds(lambda: along(few, low, high, plain)) * EVENTS / PEER_EVENTS
        cs_loop = seconds(lambda: along_pairs(few, low, high, inside, pairs)) * EVENTS / PEER_EVENTS
    out = matches_along(boxes, points)
    assert matches_along(boxes, few).tolist() == plain.tolist()
    built = seconds(lambda: Matcher.of(boxes))
    matcher, sums = Matcher.of(boxes), empty_sums(boxes)

    def correlate() -> None:
        rows = matcher.rows(points)
        match_kernel.add_along(matcher.subscriptions.bits, matcher.counts, rows, True, sums)

    cs = min(seconds(correlate) for _ in range(3))
    assert np.diagonal(sums.along).tolist() == (3 * out).tolist()
    shop = Workshop(load.schema, load.filters, 23, 0, load.events)
    times = {
        name: rounded(seconds(lambda name=name: shop.select(name))) for name in ("evs", "emcs", "cs", "gs")
    }
    figures: dict[str, Any] = {
        "emcs_ms": rounded(1000 * emcs),
        "cs_seconds": rounded(cs),
        "cs_seconds_to_build": rounded(built),
        "select_seconds": times,
    }
    peers = {"emcs_loop_seconds": rounded(emcs_loop), "cs_loop_seconds": rounded(cs_loop)}
    goals = {
        "emcs, ms": at_most(1000 * emcs, 10),
        "cs, seconds": at_most(cs, 1),
        "cs against a vectorised loop": at_least(cs_loop / cs, 5),
    }
    return Result("selection", figures, peers, goals)
