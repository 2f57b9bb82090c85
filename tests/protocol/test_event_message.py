"""Datagrams: what is encoded is decoded, and whatever else comes is refused as such."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadMessage
from flowsieve.header.encoding import PrefixEncoding, encoding_of
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.protocol.event_message import Message, MessageKind, decode, encode
from flowsieve.protocol.limits import MAX_DATAGRAM

IPV6, IPV4 = encoding_of("ipv6"), encoding_of("ipv4")
EVENT = Message(
    MessageKind.EVENT,
    b"publishr",
    7,
    bytes.fromhex("ff0ec800" + "00" * 12),
    6,
    (7, 1, 3, 2),
    {"price": 10, "side": "buy"},
)

HEAD = [2, b"4" * 4, 0, 0, b""]  # of a message that is not signed
numbers = st.integers(0, 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = (
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | names
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(MessageKind))
    address = draw(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16))
    stamps = tuple(draw(st.lists(numbers, max_size=24)))
    head = (
        draw(st.binary(min_size=8, max_size=8)),
        draw(numbers),
        address,
        draw(st.integers(0, 112)),
        stamps,
    )
    signed = {"epoch": draw(st.integers(0, 127)), "mac": draw(st.sampled_from([b"", b"8" * 8]))}
    if kind is MessageKind.DIGEST:
        return Message(kind, *head, **signed)
    said = draw(st.dictionaries(names, values, max_size=5))
    return Message(kind, *head, said, draw(st.binary(max_size=100)), **signed)


@given(messages())
def test_what_is_encoded_is_decoded(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200))
def test_random_bytes_are_no_message_and_nothing_worse(data: bytes) -> None:
    with suppress(BadMessage):
        assert decode(data).publisher in data


@given(messages(), st.data())
def test_a_damaged_message_is_another_or_none_and_nothing_worse(
    message: Message, data: st.DataObject
) -> None:
    damaged = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    for each in (bytes(damaged), bytes(damaged[:cut])):
        with suppress(BadMessage):
            encode(decode(each))


@pytest.mark.parametrize(
    "items, wrong",
    [
        ([], "begin with the protocol's version"),
        ([1, 0], "begin with the protocol's version"),
        ([2], "the kind of a message"),
        ([*HEAD, 2], "the kind of a message"),
        ([*HEAD, True], "the kind of a message"),
        ([*HEAD, 0, 1], "7 items are no message of kind event"),
        ([*HEAD, 1, b"8" * 7, 1, []], "the publisher is 8 bytes"),
        ([2, b"5" * 5, 0, 0, b"", 1, b"8" * 8, 1, []], "an address of 4 or 16 bytes"),
        ([2, b"4" * 4, 113, 0, b"", 1, b"8" * 8, 1, []], "0 to 112 bits"),
        ([2, b"4" * 4, 0, 128, b"", 1, b"8" * 8, 1, []], "told as 0 to 127"),
        ([2, b"4" * 4, 0, 0, b"7" * 7, 1, b"8" * 8, 1, []], "a MAC is 8 bytes or none"),
        ([*HEAD, 1, b"8" * 8, -1, []], "whole numbers from 0 on"),
        ([*HEAD, 1, b"8" * 8, 1, [2**63]], "whole numbers from 0 on"),
        ([*HEAD, 0, b"8" * 8, 1, [], []], "a map from names"),
        ([*HEAD, 0, b"8" * 8, 1, [], {"a": None}], "truth values, numbers and strings"),
        ([*HEAD, 0, b"8" * 8, 1, [], {"a": float("nan")}], "are finite"),
        ([*HEAD, 0, b"8" * 8, 1, [], {}, "text"], "what the application added is bytes"),
    ],
)
def test_what_is_wrong_is_named(items: list[object], wrong: str) -> None:
    with pytest.raises(BadMessage, match=wrong):
        decode(msgpack.packb(items))


def test_a_bomb_of_nested_or_promised_items_is_refused() -> None:
    for bomb in (b"\x91" * 1200, b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"):
        with pytest.raises(BadMessage):
            decode(bomb)


def test_an_event_that_fits_no_datagram_is_refused_before_it_is_sent() -> None:
    with pytest.raises(BadMessage, match="takes 1,011 bytes, and a datagram has room for 960"):
        encode(Message(MessageKind.EVENT, b"8" * 8, 1, bytes(16), 6, (), {"price": 10}, bytes(1000)))
    longest = Message(
        MessageKind.EVENT,
        b"8" * 8,
        2**63 - 1,
        bytes(16),
        112,
        (2**63 - 1,) * 24,
        {},
        bytes(956),
        127,
        b"8" * 8,
    )
    assert len(encode(longest)) <= MAX_DATAGRAM
    assert decode(encode(longest)) == longest
    with pytest.raises(BadMessage, match="a datagram of 1,233 bytes"):
        decode(bytes(MAX_DATAGRAM + 1))


def test_the_dz_stands_in_the_destination_behind_the_tag() -> None:
    assert EVENT.dz(IPV6) == Dz.parse("110010")
    assert EVENT.dz(IPV4) is None
    assert EVENT.dz(PrefixEncoding(POOLS["ipv6"][1])) is None
    four = Message(MessageKind.EVENT, b"8" * 8, 1, bytes([225, 168, 0, 0]), 4, ())
    assert four.dz(IPV4) == Dz.parse("0101")
    assert Message(MessageKind.EVENT, b"8" * 8, 1, bytes([225, 168, 0, 0]), 24, ()).dz(IPV4) is None


def test_a_message_is_small() -> None:
    assert len(encode(EVENT)) <= 80
