"""Requests carry a filter if and only if they add something."""

from __future__ import annotations

from itertools import count

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request, free_id
from flowsieve.flow.tables.compiler import Side

ALL = Filter.parse("True", Schema.parse({"a": {"type": "bool"}}))


def test_ops_know_their_side_and_whether_they_add() -> None:
    assert [(op.value, op.side, op.adding) for op in Op] == [
        ("adv", Side.PUBLISHER, True),
        ("sub", Side.SUBSCRIBER, True),
        ("unadv", Side.PUBLISHER, False),
        ("unsub", Side.SUBSCRIBER, False),
    ]


@pytest.mark.parametrize("op", Op)
def test_only_what_adds_has_a_filter(op: Op) -> None:
    Request(op, "r", "h", ALL if op.adding else None)
    with pytest.raises(AssertionError, match="a filter is for"):
        Request(op, "r", "h", None if op.adding else ALL)


def test_an_op_and_its_reverse_are_of_one_side_and_one_of_them_adds() -> None:
    for op in Op:
        assert op.reverse.reverse is op
        assert op.reverse.side is op.side
        assert op.reverse.adding is not op.adding


def test_a_free_id_is_the_first_that_is_not_taken() -> None:
    numbers = count(1)
    assert free_id("ann", {"ann-1", "ann-3"}, numbers) == "ann-2"
    assert free_id("ann", {"ann-1", "ann-3"}, numbers) == "ann-4"
