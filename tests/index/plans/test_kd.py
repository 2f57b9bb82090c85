from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter, BadPlan
from flowsieve.index.covers import cover
from flowsieve.index.covers.walk import cell_of, root
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.plan import plan_from_json
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.witness import meet

SCHEMA = Schema.parse(
    {
        "A": {"type": "int", "min": 0, "max": 99},
        "B": {"type": "int", "min": 0, "max": 99},
        "word": {"type": "string"},
    }
)
TREE = [("A", 10), None, ("B", 50), None, None]  # A < 10; else B < 50 and B >= 50
CUTS: dict[str, list[int]] = {"A": [5, 70], "B": [60]}
PLAN = KdPlan.make(SCHEMA, TREE, 4, CUTS)


def dz(a: int, b: int, plan: KdPlan = PLAN) -> str:
    return str(plan.encode({"A": a, "B": b})[0])


def test_an_event_goes_down_the_tree_and_on_where_most_cuts_are() -> None:
    # The axes are A: 5, 10, 70 and B: 50, 60.
    assert dz(9, 80)[0] == "0"
    assert dz(10, 49)[:2] == "10"
    assert dz(10, 50)[:2] == "11"
    assert dz(10, 50) == "1100"  # A's cell 10..99 has a cut at 70, B's 50..99 one at 60: A is the first
    assert dz(70, 50) == "1110"
    assert dz(70, 60) == "1111"
    assert dz(70, 10) == "1010"  # nothing is left to cut: the last bit is 0


def test_covers_follow_the_tree() -> None:
    def exact(text: str) -> list[str]:
        return PLAN.cover(Filter.parse(text, SCHEMA), 0).texts()

    assert exact("A < 10") == ["0"]
    assert exact("A >= 10 and B < 50") == ["10"]
    assert exact("B >= 60") == ["01", "1101", "1111"]
    assert exact("True") == [""]


def test_a_half_without_events_is_touched_by_nothing() -> None:
    below = DzSet.of("1011", "1010")
    touched = PLAN.touches(Filter.parse("True", SCHEMA), below)
    assert dict(zip(below.texts(), touched.tolist(), strict=True)) == {"101": True}
    assert not PLAN.touches(Filter.parse("True", SCHEMA), DzSet.of("1011"))[0]
    assert meet(PLAN, Dz.parse("1011"), []) is None
    assert meet(PLAN, Dz.parse("1010"), []) == {"A": 70, "B": 0, "word": ""}


def test_a_tree_of_one_leaf_goes_on_where_most_cuts_are() -> None:
    plan = KdPlan.make(SCHEMA, [None], 2, {"A": [20, 40, 60], "B": [50]})
    assert [dz(a, 0, plan) for a in (0, 20, 40, 60)] == ["00", "01", "10", "11"]


def test_all_dz_of_a_deep_plan_have_its_length() -> None:
    plan = KdPlan.make(SCHEMA, TREE, 112, CUTS)
    assert plan.encode({"A": 1, "B": 1})[0].length == 112
    assert plan.cover(Filter.parse("A < 10", SCHEMA), 0) == DzSet.of("0")
    assert plan.cover(Filter.parse("A == 1", SCHEMA), 1).covers(plan.encode({"A": 1, "B": 1})[0])


def test_a_plan_of_no_bits_sends_everything_everywhere() -> None:
    plan = KdPlan.make(SCHEMA, TREE, 0, CUTS)
    assert plan.cover(Filter.parse("A == 3", SCHEMA), 5) == WHOLE
    assert plan.encode({"A": 3, "B": 3})[0].length == 0


def test_a_string_is_cut_at_places_of_its_bits() -> None:
    plan = KdPlan.make(SCHEMA, [("word", 4), None, None], 4, {"word": 3, "A": [50]})
    wanted = Filter.parse("word == 'hello' and A < 50", SCHEMA)
    assert plan.cover(wanted, 0) == DzSet(plan.encode({"word": "hello", "A": 3}))


def large(nodes: int) -> KdPlan:
    """A tree that halves cells round robin, written down in preorder."""
    schema = Schema.parse({f"a{i}": {"type": "int", "min": 0, "max": 4095} for i in range(8)})
    tree: list[Any] = []

    def grow(low: list[int], high: list[int], left: int, depth: int) -> None:
        i = depth % 8
        if left == 0 or high[i] - low[i] < 2:
            tree.append(None)
            return
        cut = (low[i] + high[i]) // 2
        tree.append((f"a{i}", cut))
        grow(low, [*high[:i], cut, *high[i + 1 :]], (left - 1) // 2, depth + 1)
        grow([*low[:i], cut, *low[i + 1 :]], high, left - 1 - (left - 1) // 2, depth + 1)

    grow([0] * 8, [4096] * 8, nodes, 0)
    return KdPlan.make(schema, tree, 23, {f"a{i}": list(range(256, 4096, 256)) for i in range(8)})


def test_a_tree_of_sixteen_thousand_nodes_encodes_many_events_as_one() -> None:
    plan = large(1 << 14)
    assert len(plan.axis) == 2 * (1 << 14) + 1
    rng = np.random.default_rng(3)
    points = rng.integers(0, 4096, (300, 8))
    names = np.full(300, "e", object)
    columns = {f"a{i}": points[:, i].astype(float) for i in range(8)}
    column = plan.encode_batch(EventBatch(plan.schema, names, names, columns))
    for row in range(0, 300, 10):
        event = {f"a{i}": int(points[row, i]) for i in range(8)}
        assert plan.encode(event) == (column.dz(row),)
    assert plan_from_json(json.loads(json.dumps(plan.to_json())), plan.schema) == plan


def random_filter(plan: KdPlan, seed: int, sides: int) -> Filter:
    rng = np.random.default_rng(seed)
    said = []
    for i in rng.choice(8, sides, replace=False):
        low = int(rng.integers(0, 3000))
        said.append(f"{low} <= a{i} <= {low + int(rng.integers(100, 1000))}")
    return Filter.parse(" and ".join(said), plan.schema)


@pytest.mark.parametrize("sides", [1, 2, 4])
def test_exact_covers_of_single_boxes_and_of_unions_are_the_walk_down_the_tree(sides: int) -> None:
    plan = large(1 << 8).shortened(13)
    one, other = (random_filter(plan, seed, sides) for seed in (sides, sides + 10))
    both = Filter.parse(f"({one.text}) or ({other.text})", plan.schema)
    for wanted in (one, other, both):
        found = plan.cover(wanted, 0)
        assert found == cover.exact(plan, plan.boxes(wanted))
        assert plan.count_cover(wanted) == len(found)


def test_what_a_cell_may_be_cut_on_follows_from_its_shape_and_the_bits_left() -> None:
    # Below A >= 10 and B < 50 there is one cut of A (70); B has none, and then all cuts are spare.
    assert PLAN.may_cut(cell_of(PLAN, Dz.parse("10"))) == [True, False, True]
    assert PLAN.shortened(3).may_cut(cell_of(PLAN, Dz.parse("10"))) == [True, False, False]
    assert PLAN.may_cut(root(PLAN)) == [True, True, True]
    assert PLAN.shortened(1).may_cut(root(PLAN)) == [True, False, False]


def test_a_box_fills_a_cell_that_is_not_cut_where_the_box_ends() -> None:
    (box,) = PLAN.boxes(Filter.parse("A >= 10 and B < 30", SCHEMA))
    assert cover.fills(PLAN, box, cell_of(PLAN, Dz.parse("10")))  # B is not cut below 50
    assert not cover.fills(PLAN, box, root(PLAN))


def test_covers_do_not_search_where_nothing_can_be_dropped() -> None:
    # All 18 bits go to the word, which has most places; none is left to tell A < 50 from the rest.
    plan = KdPlan.make(SCHEMA, [None], 18, {"word": 20, "A": [50]})
    wanted = Filter.parse("A < 50", SCHEMA)
    assert plan.cover(wanted, 32) == plan.cover(wanted, 0) == WHOLE
    start = time.process_time()
    for _ in range(20):
        assert plan.cover(wanted, 32) == WHOLE
        assert plan.count_cover(wanted) == 1
    assert time.process_time() - start < 0.5


def test_a_cover_too_long_to_list_is_refused_with_what_would_fit() -> None:
    plan = large(1 << 10).shortened(40)
    wanted = Filter.parse(" and ".join(f"300 <= a{i} < 3000" for i in range(8)), plan.schema)
    with pytest.raises(BadFilter, match=r"can be listed.*take bits = \d+"):
        plan.cover(wanted, 0)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([("A", 10), None], "the tree ends after 2 nodes, and 1 are still to come"),
        ([], "the tree ends after 0 nodes, and 1 are still to come"),
        ([None, None], "the tree is complete after 1 of its 2 nodes"),
        ([("A", 10), ("A", 70), None, None, None], "node 1 cuts A at place 3; right is one from 1 to 1"),
        ([("C", 10), None, None], "the tree cuts 'C', and only A, B have an axis"),
        ([("A", "x"), None, None], "A has cuts that are not numbers"),
        ([("A", 500), None, None], "A has a cut at 500"),
    ],
)
def test_a_tree_that_is_none_is_refused(tree: list[Any], message: str) -> None:
    with pytest.raises(BadPlan, match=message):
        KdPlan.make(SCHEMA, tree, 4, CUTS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"axis": [0, -2, 1, -1, -1]},
            "axis has -2 at position 1; it is a list of whole numbers from -1 to 1",
        ),
        ({"place": [2, 0]}, "5 dimensions and 2 places; right are as many of both"),
        ({"place": [2, 0, "x", 0, 0]}, "place has 'x' at position 2"),
        ({"place": [9, 0, 1, 0, 0]}, "node 0 cuts A at place 9; right is one from 1 to 3"),
        ({"bits": -1}, "bits = -1; it is a whole number"),
        ({"bits": 30}, "bits = 30 is more than the 23"),
        ({"nodes": 3}, "a kd plan has no 'nodes'"),
    ],
)
def test_a_plan_written_down_wrongly_is_refused(changes: dict[str, Any], message: str) -> None:
    assert plan_from_json(PLAN.to_json(), SCHEMA, room=23) == PLAN
    with pytest.raises(BadPlan, match=message):
        plan_from_json(PLAN.to_json() | changes, SCHEMA, room=23)
