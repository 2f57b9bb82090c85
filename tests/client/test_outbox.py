"""Publishing: an event is checked first, then becomes datagrams that say all that a subscriber needs."""

from __future__ import annotations

import pytest

from flowsieve.client.outbox import Outbox
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadMessage, BadValue
from flowsieve.header.encoding import Encoding, PrefixEncoding, encoding_of
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.event_message import MessageKind, decode

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "note": {"type": "string"},
    }
)
IPV6 = encoding_of("ipv6")
CHEAP = {"price": 10, "side": "buy", "note": "ok"}


def outbox(encoding: Encoding = IPV6, *promises: str) -> Outbox:
    made = Outbox(RegularPlan.make(SCHEMA, bits=11), encoding, b"publishr")
    for promise in promises or ("price < 500",):
        made.advertised[promise] = Filter.parse(promise, SCHEMA)
    return made


@pytest.mark.parametrize(
    "encoding", [IPV6, PrefixEncoding(POOLS["ipv6"][1]), encoding_of("ipv4")], ids=lambda each: str(each.tag)
)
def test_an_event_goes_to_the_address_of_its_dz_and_says_so(encoding: Encoding) -> None:
    box = outbox(encoding)
    (datagram,) = box.event(CHEAP, b"more")
    message = decode(datagram.payload)
    assert (message.kind, message.publisher, message.seq) == (MessageKind.EVENT, b"publishr", 1)
    assert (message.values, message.data) == (CHEAP, b"more")
    assert message.destination == datagram.destination
    (dz,) = RegularPlan.make(SCHEMA, bits=11).encode(CHEAP)
    assert message.dz(encoding) == dz
    assert datagram.destination == encoding.address_of(dz).to_bytes(encoding.tag.group.width // 8)


def test_events_are_numbered_from_one_and_stamped() -> None:
    box = outbox()
    messages = [decode(box.event(CHEAP)[0].payload) for _ in range(3)]
    assert [message.seq for message in messages] == [1, 2, 3]
    assert [message.stamps for message in messages] == [(n, 1) * 4 for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "values, data, error, wrong",
    [
        (CHEAP | {"price": 1024}, b"", BadValue, "price = 1024 is outside the range"),
        (CHEAP | {"prise": 1}, b"", BadValue, "there is no attribute 'prise'; did you mean 'price'"),
        ({"price": 1}, b"", BadValue, "side is missing"),
        (CHEAP | {"price": 700}, b"", BadValue, "lies outside what is advertised: 'price < 500'"),
        (CHEAP | {"note": "x" * 1000}, b"", BadMessage, "a datagram has room for 960"),
        (CHEAP, bytes(1000), BadMessage, "a datagram has room for 960"),
        (CHEAP, "text", BadInput, "is bytes, not 'text'"),
    ],
)
def test_a_bad_event_is_refused_and_leaves_no_gap(
    values: dict[str, object], data: bytes, error: type[Exception], wrong: str
) -> None:
    box = outbox()
    with pytest.raises(error, match=wrong):
        box.event(values, data)
    assert decode(box.event(CHEAP)[0].payload).stamps == (1, 1) * 4
    assert box.seq == 1


def test_nothing_is_published_that_was_not_advertised() -> None:
    box = Outbox(RegularPlan.make(SCHEMA), IPV6, b"publishr")
    with pytest.raises(BadValue, match="nothing is advertised"):
        box.event(CHEAP)


def test_digests_go_where_events_went_last() -> None:
    box = outbox()
    assert box.digests() == []
    sent = [box.event(CHEAP | {"price": price})[0] for price in (10, 400, 10, 10)]
    digests = box.digests()
    assert [digest.destination for digest in digests] == [sent[0].destination, sent[1].destination]
    newest = decode(digests[0].payload)
    assert (newest.kind, newest.seq, newest.values) == (MessageKind.DIGEST, 4, {})
    assert newest.stamps == decode(sent[3].payload).stamps
    assert box.seq == 4


def test_after_the_last_digests_only_what_is_sent_anew_is_told() -> None:
    box = outbox()
    first, second = (box.event(CHEAP | {"price": price})[0] for price in (10, 400))
    assert {each.destination for each in box.last_digests()} == {first.destination, second.destination}
    assert box.digests() == []
    again = box.event(CHEAP | {"price": 10})[0]
    (told,) = box.digests()
    assert told.destination == again.destination
    assert decode(told.payload).stamps == decode(again.payload).stamps  # counts go on where they were


def test_an_ordinary_event_takes_less_than_a_hundred_bytes() -> None:
    box = outbox()
    sizes = [len(box.event(CHEAP | {"price": n % 500})[0].payload) for n in range(1000)]
    assert max(sizes) < 100
