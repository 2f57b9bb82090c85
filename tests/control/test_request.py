"""Requests say what they ask for, a filter or dz, if and only if they add something."""

from __future__ import annotations

import json
from functools import partial
from itertools import count

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request, free_id
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import DzSet

SCHEMA = Schema.parse({"a": {"type": "bool"}})
ALL = Filter.parse("True", SCHEMA)


def test_ops_know_their_side_and_whether_they_add() -> None:
    assert [(op.value, op.side, op.adding) for op in Op] == [
        ("adv", Side.PUBLISHER, True),
        ("sub", Side.SUBSCRIBER, True),
        ("unadv", Side.PUBLISHER, False),
        ("unsub", Side.SUBSCRIBER, False),
    ]


@pytest.mark.parametrize("op", Op)
def test_what_adds_has_either_a_filter_or_dz_and_what_ends_has_neither(op: Op) -> None:
    for filter, dz in ((ALL, None), (None, DzSet.of("01")), (ALL, DzSet.of("01")), (None, None)):
        if ((filter is None) + (dz is None) == 1) if op.adding else (filter is None and dz is None):
            Request(op, "r", "h", filter, dz)
        else:
            with pytest.raises(AssertionError, match="a filter or dz"):
                Request(op, "r", "h", filter, dz)


def test_every_op_has_a_reverse_of_the_same_side() -> None:
    for op in Op:
        assert op.reverse.reverse is op
        assert (op.reverse.side, op.reverse.adding) == (op.side, not op.adding)


@pytest.mark.parametrize(
    "request_",
    [
        Request(Op.SUBSCRIBE, "r", "h", ALL),
        Request(Op.ADVERTISE, "r", "north", dz=DzSet.of("01", "1")),
        Request(Op.UNSUBSCRIBE, "r", "h"),
    ],
    ids=str,
)
def test_what_a_request_asks_for_survives_as_a_json_value(request_: Request) -> None:
    told = json.loads(json.dumps(request_.told))
    read = Request.read(request_.op, "r", request_.endpoint, told, partial(Filter.parse, schema=SCHEMA))
    assert read == request_


@pytest.mark.parametrize(("op", "told"), [(Op.SUBSCRIBE, None), (Op.UNSUBSCRIBE, "True"), (Op.SUBSCRIBE, 3)])
def test_what_does_not_fit_the_op_is_no_request(op: Op, told: object) -> None:
    with pytest.raises(ValueError, match=op.value):
        Request.read(op, "r", "h", told, partial(Filter.parse, schema=SCHEMA))  # type: ignore[arg-type]


def test_a_free_id_is_the_first_that_is_not_taken() -> None:
    numbers = count(1)
    assert free_id("ann", {"ann-1", "ann-3"}, numbers) == "ann-2"
    assert free_id("ann", {"ann-1", "ann-3"}, numbers) == "ann-4"
