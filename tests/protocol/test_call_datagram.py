"""Calls and answers as datagrams, and back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadMessage
from flowsieve.header.host_groups import EVENTS_IPV4, EVENTS_IPV6
from flowsieve.header.tag import POOLS
from flowsieve.lab.blueprint import MAX_PORTS
from flowsieve.protocol.addresses import CONTROL_ADDRESSES
from flowsieve.protocol.call import Call, call_key
from flowsieve.protocol.call_datagram import (
    CallDatagram,
    Gone,
    More,
    Part,
    Unreadable,
    cut,
    decode,
    digest_of,
    encode,
    pack_answer,
    unpack_answer,
)
from flowsieve.protocol.limits import MAX_DATAGRAM, MAX_NUMBER, MOST_ASKED, MOST_PARTS, PART_BYTES
from flowsieve.protocol.version import VERSION

CALL: dict[str, Any] = {
    "session": "0f" * 16,
    "n": 1,
    "host": "h1",
    "token": "t",
    "op": "sub",
    "filter": "a < 3",
}
keys = st.tuples(st.binary(min_size=16, max_size=16), st.integers(1, MAX_NUMBER))
digests = st.binary(min_size=8, max_size=8)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
parts = st.builds(
    lambda key, digest, count, at, chunk: Part(key, digest, count, at % count, chunk),
    keys,
    digests,
    st.integers(1, MOST_PARTS),
    st.integers(0, MOST_PARTS),
    st.binary(max_size=PART_BYTES),
)
asked = st.lists(st.integers(0, MOST_PARTS - 1), min_size=1, max_size=MOST_ASKED).map(tuple)


@given(parts | st.builds(More, keys, digests, asked) | st.builds(Gone, keys, digests))
def test_what_was_encoded_is_decoded_and_fits_a_datagram(datagram):
    assert len(encode(datagram)) <= MAX_DATAGRAM
    assert decode(encode(datagram)) == datagram


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4))
def test_a_call_says_what_it_said(fields):
    message = fields | CALL
    assert decode(encode(CallDatagram(call_key(message), message))) == CallDatagram(
        (b"\x0f" * 16, 1), message
    )


@given(st.dictionaries(st.text(max_size=5), plain, max_size=4), st.integers(0, 5000))
def test_an_answer_is_the_sum_of_its_parts(fields, size):
    answer = {"ok": fields | {"more": "x" * size}}
    packed = pack_answer(answer)
    digest = digest_of(packed)
    count = -(-len(packed) // PART_BYTES)
    whole = cut((bytes(16), 1), packed, digest, range(count + 3))
    assert [(part.index, part.count, part.digest) for part in whole] == [
        (i, count, digest) for i in range(count)
    ]
    assert unpack_answer(b"".join(part.chunk for part in whole)) == answer


@given(st.binary(max_size=300))
def test_any_bytes_are_a_datagram_or_a_bad_message(data):
    with suppress(BadMessage):
        decode(data)


@given(st.lists(plain | st.just(1) | st.integers(0, 4) | keys | digests, max_size=9))
def test_any_items_are_a_datagram_or_a_bad_message(items):
    with suppress(BadMessage):
        decode(msgpack.packb([VERSION, *items]))


@given(parts.map(encode), st.data())
def test_a_truncated_datagram_is_none(whole, data):
    with pytest.raises(BadMessage):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"session": "0F" * 16}, "32 random digits"),
        ({"session": "0f" * 15}, "32 random digits"),
        ({"session": None}, "a call has a session"),
        ({"n": 0}, "n = 0; it is a whole number from 1"),
        ({"n": True}, "n = True"),
        ({"n": 1 << 63}, "whole number from 1"),
        ({"host": 3}, "host = 3; it is a text"),
        ({"op": b"sub"}, "op = b'sub'; it is a text"),
        ({"deadline": 0}, "deadline = 0; it is a number of seconds up to 300"),
        ({"deadline": float("inf")}, "deadline = inf"),
        ({"deadline": True}, "deadline = True"),
        ({"more": {1, 2}}, "holds what no datagram can say"),
        ({"more": 1 << 70}, "holds what no datagram can say"),
        ({"more": "\ud800"}, "holds what no datagram can say"),
        ({"filter": "\ud800"}, "it is a text without halves of surrogate pairs"),
        ({"filter": "x" * 1300}, "room for 1,232; shorten its filter, or ask the controller over HTTP"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(change, what):
    message = CALL | change
    with pytest.raises(BadMessage, match=what):
        encode(CallDatagram(Call.parse(message).key, message))


def test_a_datagram_of_another_version_is_told_as_such_with_the_call_in_it_if_there_is_one():
    assert decode(msgpack.packb([1, 0, CALL, "more"])) == Unreadable(1, (b"\x0f" * 16, 1))
    for rest in ([], [{}], [{"session": "x", "n": 1}], [7]):
        assert decode(msgpack.packb([3, 0, *rest])) == Unreadable(3, None)
    assert decode(msgpack.packb([0, 1, bytes(16), 1])) == Unreadable(0, None)


def test_a_call_without_a_token_is_a_call():
    message = {name: value for name, value in CALL.items() if name != "token"}
    assert decode(encode(CallDatagram(call_key(message), message))) == CallDatagram(
        (b"\x0f" * 16, 1), message
    )


def test_an_answer_that_is_too_long_names_another_way():
    with pytest.raises(BadMessage, match="ask the controller over HTTP"):
        pack_answer({"ok": {"x": bytes(MOST_PARTS * PART_BYTES)}})


@pytest.mark.parametrize("answer", [[], {}, {"ok": 3}, {"error": "no"}, {"okay": {}}])
def test_what_says_neither_yes_nor_no_is_no_answer(answer):
    with pytest.raises(BadMessage):
        unpack_answer(msgpack.packb(answer))


def test_the_address_of_the_controller_is_no_events_and_no_hosts():
    for pool in POOLS.values():
        for tag in pool:
            assert not any(tag.group.covers(address) for address in CONTROL_ADDRESSES.values())
    for family, first in ((4, EVENTS_IPV4), (6, EVENTS_IPV6)):
        assert not 0 <= CONTROL_ADDRESSES[family].first - int(first) <= MAX_PORTS
