"""Rules that choose dimensions, and the counts that they choose by."""

from __future__ import annotations

import numpy as np
import pytest
from plan_workloads import SCHEMA, events_of, filters_of, workload

from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import Workshop
from flowsieve.pipeline.planning.selection import brute_force, greedy, matches_along


@pytest.mark.parametrize("selection", ["emcs", "cs", "gs", "brs"])
def test_selections_find_the_dimensions_that_tell_subscriptions_apart(selection: str) -> None:
    schema, filters, events, _ = workload(1)
    shop = Workshop(schema, filters, 12, 0, events)
    assert sorted(shop.select(selection)) == [1, 4]


def test_matches_along_a_dimension_are_counted_as_the_statistics_have_them() -> None:
    schema, filters, events, _ = workload(4)
    for space, wanted, batch in ((schema, filters, events), (SCHEMA, filters_of(6, 80), events_of(6, 400))):
        boxes = BoxTable.of(space, wanted)
        points = boxes.points(batch)
        plain = [
            int(((boxes.low[:, d][:, None] <= points[d]) & (points[d] <= boxes.high[:, d][:, None])).sum())
            for d in range(len(space))
        ]
        assert matches_along(boxes, points).tolist() == plain
    boxes = BoxTable.of(schema, filters)
    plain = matches_along(boxes, boxes.points(events)).tolist()
    figures = Workshop(schema, filters, 12, 0, events).statistics()
    assert np.diagonal(figures.matched).tolist() == plain


def test_greedy_never_beats_brute_force() -> None:
    schema, filters, events, _ = workload(5)
    simulate = Workshop(schema, filters, 10, 0, events).simulate
    everything = tuple(range(6))
    by_greed, by_force = greedy(everything, simulate), brute_force(everything, simulate)
    assert simulate([by_force])[0] <= simulate([by_greed])[0] <= simulate([everything])[0]
