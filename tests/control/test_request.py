"""Requests carry a filter if and only if they add something."""

from __future__ import annotations

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
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
