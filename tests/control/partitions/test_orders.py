"""Orders and answers as bytes: what was sent is what is read, and what is damaged is wrong and nothing else."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import dz_sets, topologies

from flowsieve.control.partitions.division import Division
from flowsieve.control.partitions.orders import (
    Answer,
    Begin,
    Bound,
    Disown,
    Order,
    Own,
    Ping,
    RequestPart,
    Rewire,
    Take,
    answer_from_bytes,
    answer_to_bytes,
    order_from_bytes,
    order_to_bytes,
)
from flowsieve.control.partitions.wire import SIZE, length_of
from flowsieve.errors import BadInput
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.generators import ring
from flowsieve.network.tree import TreeMap

RING = ring(4)
TREES = TreeMap.over(RING, Division.even(3).partitions)
PARTS = [
    RequestPart(True, Side.PUBLISHER, "p", "h1", Dz.parse("00"), DzSet.of("00")),
    RequestPart(False, Side.SUBSCRIBER, "ä\n\0", "h2", Dz.parse("1"), DzSet.of("100", "1" * 100)),
]
NUMBERS = {Dz.parse("00"): 1, Dz.parse("1"): 7}
ORDERS: list[Order] = [
    Begin(RING, TREES),
    Begin(RING, TREES, Tables.FREE, {"s1": 3, "s2": 0}, np.array([[1, 2**64 - 1], [3, 4]], np.uint64)),
    Own({}, []),
    Own(NUMBERS, PARTS, {"s1": 5}),
    Disown(Dz.parse("")),
    Disown(Dz.parse("0110")),
    Take(NUMBERS, PARTS),
    Rewire(TREES),
    Bound({"s1": 4, "s2": None}),
    Ping(),
]
ROWS = np.arange(24, dtype=np.uint64).reshape(3, 8)
ANSWER = Answer(ROWS, {0: "full", 3: "Überlauf"}, {"s1": 9}, {"s1": 0.25}, 12)


def body(message: bytes) -> bytes:
    assert length_of(message[:SIZE]) == len(message) - SIZE
    return message[SIZE:]


def comparable(order: Order) -> object:
    """All of an order; arrays do not compare as a whole."""
    if isinstance(order, Begin) and order.events is not None:
        return order.topology, order.trees, order.tables, order.room, order.events.tolist()
    return order


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: type(order).__name__)
def test_an_order_is_read_as_it_was_sent(order: Order) -> None:
    serial, read = order_from_bytes(body(order_to_bytes(41, order)))
    assert serial == 41
    assert comparable(read) == comparable(order)


def test_an_answer_is_read_as_it_was_sent() -> None:
    serial, read = answer_from_bytes(body(answer_to_bytes(2**40, ANSWER)))
    assert serial == 2**40
    assert read.rows.dtype == np.uint64
    assert np.array_equal(read.rows, ANSWER.rows)
    assert (read.refused, read.needs, read.waste, read.visits) == (
        ANSWER.refused,
        ANSWER.needs,
        ANSWER.waste,
        ANSWER.visits,
    )


@given(topologies(), st.integers(1, 5), st.lists(dz_sets(), max_size=4))
def test_any_network_and_any_sets_survive_the_way(topology, n, sets) -> None:
    trees = TreeMap.over(topology, Division.even(n).partitions)
    parts = [
        RequestPart(True, Side.SUBSCRIBER, str(number), "h0", Dz.parse(""), dz)
        for number, dz in enumerate(sets)
    ]
    for order in (Begin(topology, trees), Rewire(trees), Take({Dz.parse(""): 1}, parts)):
        assert order_from_bytes(body(order_to_bytes(1, order))) == (1, order)


MESSAGES = [body(order_to_bytes(1, order)) for order in ORDERS] + [body(answer_to_bytes(1, ANSWER))]


def read_both(data: bytes) -> None:
    """Read bytes as either; what cannot be read is bad input."""
    for read in (order_from_bytes, answer_from_bytes):
        with suppress(BadInput):
            read(data)


@given(st.sampled_from(MESSAGES), st.integers(0, 2**32 - 1).map(Random))
def test_damaged_bytes_are_bad_input_and_nothing_else(message: bytes, random: Random) -> None:
    damaged = bytearray(message)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(damaged)) if damaged else 0
        what = random.choice(["flip", "cut", "double", "drop"])
        if what == "flip" and damaged:
            damaged[at] = random.choice([damaged[at] ^ (1 << random.randrange(8)), *b'09-.[]{},":enI'])
        elif what == "cut":
            del damaged[at:]
        elif what == "double":
            damaged[at:at] = damaged[at : at + random.randint(1, 30)]
        else:
            del damaged[at : at + random.randint(1, 30)]
    read_both(bytes(damaged))


@given(st.binary(max_size=60))
def test_any_bytes_are_bad_input_and_nothing_else(data: bytes) -> None:
    read_both(data)


def message(head: Any, arrays: Any, data: bytes = b"") -> bytes:
    text = json.dumps([head, arrays]).encode()
    return len(text).to_bytes(SIZE, "big") + text + data


VALUES: list[Any] = [None, -1, 0, 2**80, 1e400, float("nan"), "x", [], {}, [[]], {"a": 1}, [[1, 2, 3]], True]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("order", [*ORDERS, ANSWER], ids=lambda order: type(order).__name__)
def test_a_field_of_the_wrong_kind_is_bad_input_and_nothing_else(order: Order | Answer, value: Any) -> None:
    sent = body(answer_to_bytes(1, order) if isinstance(order, Answer) else order_to_bytes(1, order))
    end = SIZE + int.from_bytes(sent[:SIZE], "big")
    head, arrays = json.loads(sent[SIZE:end])
    for key in head:
        read_both(message({**head, key: value}, arrays, sent[end:]))


@pytest.mark.parametrize(
    "arrays",
    [
        [["<u8", [2**70]]],
        [["<u8", [-1]]],
        [["<u8", [0.5]]],
        [["<u8", "1"]],
        [["|O", [1]]],
        [["nonsense", [1]]],
        [["<u8,,", [1]]],
        [[{}, [1]]],
        [["<u8"]],
        [1],
        1,
        None,
        [["<u8", [0]], ["<u8", [0]]],
        [["<f4", [2, 1]]],
    ],
    ids=repr,
)
def test_arrays_that_are_none_are_bad_input_and_nothing_else(arrays: Any) -> None:
    head = {"serial": 1, "refused": [], "needs": {}, "waste": {}, "visits": 0, "order": "ping"}
    read_both(message(head, arrays, b"\0" * 8))


def test_an_order_that_there_is_none_of_is_named() -> None:
    with pytest.raises(BadInput, match="there is no order 'dance'"):
        order_from_bytes(message({"serial": 1, "order": "dance"}, []))
