"""Planners: every method makes a plan that loses nothing, learns from what it saw, and is better for it."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_material import SCHEMA, events_of, filters_of

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadInput
from flowsieve.index.plan import plan_from_json, plan_to_json
from flowsieve.index.plans.learned import LevelwisePlan
from flowsieve.pipeline.evaluation.boxes import BoxTable
from flowsieve.pipeline.evaluation.evaluation import Candidate, evaluate_here
from flowsieve.pipeline.planning import cut_kernel, stab_kernel
from flowsieve.pipeline.planning.cutting import Profile, avoiding, balancing, best_cut
from flowsieve.pipeline.planning.methods import INDEXERS, Method, Workshop, make
from flowsieve.pipeline.planning.ordering import best_order
from flowsieve.pipeline.planning.portfolio import auto_here
from flowsieve.pipeline.planning.selection import brute_force, greedy, matches_along
from flowsieve.pipeline.planning.stabbing import fewest_unstabbed
from flowsieve.pipeline.planning.training_data import TrainingData

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


def workload(seed: int) -> tuple[Schema, tuple[Filter, ...], EventBatch, EventBatch]:
    """Six dimensions of which two tell subscriptions apart."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Attribute(f"a{i}", "int", 0, 1023) for i in range(6)))
    centre = np.clip(rng.normal(400, 200, (300, 6)), 0, 1023)
    width = np.array([2000, 80, 2000, 2000, 120, 2000])
    filters = tuple(
        Filter.parse(
            " and ".join(
                f"{int(c - w / 2)} <= a{i} <= {int(c + w / 2)}"
                for i, (c, w) in enumerate(zip(row, width, strict=True))
            ),
            schema,
        )
        for row in centre
    )

    def events() -> EventBatch:
        points = np.clip(np.rint(rng.normal(400, 200, (4000, 6))), 0, 1023)
        empty = np.full(len(points), "", dtype=object)
        return EventBatch(schema, empty, empty, {f"a{i}": points[:, i].copy() for i in range(6)})

    return schema, filters, events(), events()


@pytest.mark.parametrize("selection", ["emcs", "cs", "gs", "brs"])
def test_selections_find_the_dimensions_that_tell_subscriptions_apart(selection: str) -> None:
    schema, filters, events, _ = workload(1)
    shop = Workshop(schema, filters, 12, 0, events)
    assert sorted(shop.select(selection)) == [1, 4]


def test_planners_beat_the_regular_index_on_later_events_and_auto_is_as_good_as_the_best() -> None:
    schema, filters, events, later = workload(2)
    shop = Workshop(schema, filters, 12, 0, events)
    plans = {text: make(Method.parse(text), shop) for text in ("ri", "gs+ri", "gs+asi", "lw", "kd")}
    plans["auto"] = auto_here(shop, 120).plan
    scores = evaluate_here(
        [Candidate.of(plan, filters, 0, count=False) for plan in plans.values()],
        BoxTable.of(schema, filters),
        later,
    )
    fpr = {text: score.fpr for text, score in zip(plans, scores, strict=True)}
    assert fpr["gs+ri"] < 0.8 * fpr["ri"]
    assert fpr["lw"] < 0.9 * fpr["gs+asi"]
    assert fpr["auto"] <= min(fpr.values()) + 0.01


def test_auto_keeps_its_deadline_and_says_what_it_passed_over() -> None:
    schema, filters, events, _ = workload(3)
    shop = Workshop(schema, filters, 12, 0, events)
    auto_here(shop, 120)  # compiled
    start = time.monotonic()
    outcome = auto_here(shop, 0.01)
    assert time.monotonic() - start < 10
    assert [trial.name for trial in outcome.trials] == ["lw"]
    assert "kd" in outcome.passed_over


def test_a_search_for_an_order_ends_when_its_time_is_over() -> None:
    schema, filters, events, _ = workload(4)
    material = Workshop(schema, filters, 9, 8, events).material
    rated = []

    def rate(plan: LevelwisePlan) -> float:
        rated.append(plan)
        return float(len(rated) % 5)

    order = best_order(material, 9, tuple(range(6)), rate, in_time=lambda: len(rated) < 10)
    assert len(rated) == 10
    assert len(order) == 9


def test_auto_keeps_its_deadline_when_everything_takes_long() -> None:
    schema, filters, events, _ = workload(5)
    shop = Workshop(schema, filters, 9, 8, events)
    now = 0.0

    def clock() -> float:  # every look at it costs a second: a busy machine
        nonlocal now
        now += 1.0
        return now

    outcome = auto_here(shop, 120.0, clock=clock)
    assert now <= 120.0
    assert "lw, for the budget" in {trial.name for trial in outcome.trials}
    assert {trial.name for trial in outcome.trials} >= {"lw", "gs+asi", "kd, small"}


def test_the_same_material_gives_the_same_plan() -> None:
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


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8),
)
def test_the_best_cut_is_that_of_the_definition(counts: list[tuple[int, int, int]]) -> None:
    columns = [
        np.concatenate([[0], np.cumsum(column)]).astype(np.int64) for column in zip(*counts, strict=True)
    ]
    profile = Profile(*columns)
    for low in range(len(counts)):
        for high in range(low, len(counts)):
            place, gain = cut_kernel.best_cut(*profile, low, high)
            assert (place, gain) == best_cut(profile, low, high)


@settings(max_examples=60)
@given(st.integers(2, 6), st.data())
def test_the_cuts_that_stab_most_pairs_are_found(n: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.integers(0, 5), min_size=(n + 1) ** 2, max_size=(n + 1) ** 2))
    pairs = np.triu(np.array(cells, np.int64).reshape(n + 1, n + 1), 1)
    number = data.draw(st.integers(1, n))

    def left(cuts: tuple[int, ...]) -> int:
        return sum(
            int(pairs[i, j])
            for i in range(n + 1)
            for j in range(i + 1, n + 1)
            if not any(i <= c < j for c in cuts)
        )

    found = tuple(stab_kernel.fewest_unstabbed(pairs, number).tolist())
    assert len(set(found)) == number
    assert left(found) == left(fewest_unstabbed(pairs, number))


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


@pytest.mark.parametrize("halve", [avoiding, balancing])
def test_cuts_ascend_and_lie_on_the_line(halve: object) -> None:
    material = TrainingData.of(SCHEMA, filters_of(1, 50), events_of(1, 500))
    for d, attribute in enumerate(SCHEMA):
        halvings = halve(material, d)  # type: ignore[operator]
        numbers = halvings.numbers(halvings.depth)
        if attribute.kind == "string":
            assert numbers == halvings.depth
            continue
        assert len(numbers) == (1 << halvings.depth) - 1
        assert numbers == sorted(numbers)
        assert attribute.min <= numbers[0] and numbers[-1] <= attribute.max + 1
