"""Planners: every method makes a plan that loses nothing, learns from what it saw, and is better for it."""

from __future__ import annotations

import json

import pytest
from plan_workloads import SCHEMA, events_of, filters_of

from flowsieve.errors import BadInput
from flowsieve.index.plan import plan_from_json, plan_to_json
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make

METHODS = (*INDEXERS, "evs+si", "emcs+asi", "cs+ri", "gs+asi", "gs+lw", "gs+kd", "brs+ri", "random+ri")


@pytest.mark.parametrize("text", METHODS)
@pytest.mark.parametrize("max_dz", [0, 6])
def test_no_method_loses_an_event_that_it_never_saw(text: str, max_dz: int) -> None:
    filters = filters_of(3, 90)
    plan = make(Method.parse(text), Workshop(SCHEMA, filters, 14, max_dz, events_of(1, 1500)))
    again = plan_from_json(json.loads(json.dumps(plan_to_json(plan))), SCHEMA)
    assert again == plan
    assert plan.bits <= 14
    others = filters_of(8, 40)  # subscriptions that came after the plan
    later, wanted = events_of(2, 1500), filters + others
    (score,) = evaluate_here([Candidate.of(again, wanted, max_dz)], BoxTable.of(SCHEMA, wanted), later)
    assert score.false_negatives == 0
    assert score.matches == sum(int(f.matches_batch(later).sum()) for f in wanted) > 0


def test_the_same_data_gives_the_same_plan() -> None:
    filters = filters_of(5, 60)
    for text in ("si", "asi", "lw", "kd", "cs+asi"):
        one, other = (
            make(Method.parse(text), Workshop(SCHEMA, filters, 12, 0, events_of(4, 900))) for _ in range(2)
        )
        assert one == other


@pytest.mark.parametrize("text", ["", "rx", "gs", "gs+auto", "xx+asi", "gs+cs+ri", "auto+ri"])
def test_a_method_that_is_none_is_named(text: str) -> None:
    with pytest.raises(BadInput, match="there is no"):
        Method.parse(text)
