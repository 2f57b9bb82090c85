"""The search for an order of levels."""

from __future__ import annotations

from plan_workloads import workload

from flowsieve.index.plans.learned import LevelwisePlan
from flowsieve.pipeline.planning.methods import Workshop
from flowsieve.pipeline.planning.ordering import best_order


def test_a_search_for_an_order_ends_when_its_time_is_over() -> None:
    schema, filters, events, _ = workload(4)
    training = Workshop(schema, filters, 9, 8, events).training
    rated = []

    def rate(plan: LevelwisePlan) -> float:
        rated.append(plan)
        return float(len(rated) % 5)

    order = best_order(training, 9, tuple(range(6)), rate, in_time=lambda: len(rated) < 10)
    assert len(rated) == 10
    assert len(order) == 9
