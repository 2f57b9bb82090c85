"""Events that came too late are sent again as what they are, and nothing else is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client.outbox import EventDatagram, Outbox
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadMessage
from flowsieve.header.frame import UdpFrame, build, parse
from flowsieve.header.tag import POOLS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.protocol.event_mac import MacChecker, Signer, publisher_key
from flowsieve.protocol.event_message import decode
from flowsieve.serving.late_events import ForeignTag, LateDigest, is_event, resent

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in "ab"})
KEY, NAME = bytes(range(16)), b"publishr"
OLD, NEW = RegularPlan.make(SCHEMA, bits=9), RegularPlan.make(SCHEMA, bits=7, dimensions=["b"])
PARTS = SelectivePlan.from_json(
    {
        "kind": "selective",
        "schema": SCHEMA.digest,
        "bits": 6,
        "dimensions": ["a", "b"],
        "parts": [[[0, 99], None], [[50, 500], [0, 500]]],
        "rest": False,
    },
    SCHEMA,
    23,
)


def index(version: int, plan: IndexPlan, header: str = "ipv6") -> ServedIndex:
    return ServedIndex(version, POOLS[header][version], plan)


def publisher(header: str = "ipv6") -> Outbox:
    made = Outbox(OLD, index(0, OLD, header).encoding, NAME, Signer(3, publisher_key(KEY, NAME)))
    made.advertised["all"] = Filter.parse("True", SCHEMA)
    return made


def frame(sent: EventDatagram, **other: object) -> bytes:
    size = len(sent.destination)
    source = bytes([10, 0, 0, 1]) if size == 4 else bytes.fromhex("fd" + "00" * 14 + "01")
    macs = b"\2" + bytes(4) + b"\1", b"\x33\x33" + bytes(4)
    whole = UdpFrame(*macs, source, sent.destination, 4711, EVENT_PORT, sent.payload)
    return build(replace(whole, **other))


@pytest.mark.parametrize("header", ["ipv6", "ipv4"])
@given(a=st.integers(0, 1023), b=st.integers(0, 1023), data=st.binary(max_size=20), finished=st.booleans())
def test_an_event_goes_where_the_index_of_now_sends_it_and_says_all_that_it_said(
    header: str, a: int, b: int, data: bytes, finished: bool
) -> None:
    box, now = publisher(header), index(1, NEW, header)
    (sent,) = box.event({"a": a, "b": b}, data)
    (again,) = resent(frame(sent, finished=finished), (index(0, OLD, header),), now)
    before, after = parse(frame(sent)), parse(again)  # which finds every checksum right
    (dz,) = NEW.encode({"a": a, "b": b})
    assert after.destination == now.encoding.destination(dz) and after.finished
    assert after.destination_mac[-2:] == after.destination[-2:]
    same = replace(after, destination=before.destination, destination_mac=before.destination_mac)
    assert replace(same, payload=before.payload) == before
    assert decode(after.payload) == replace(decode(sent.payload), bits=0)
    assert MacChecker([(3, KEY)]).holds(after.payload)


@pytest.mark.parametrize(("a", "b", "times"), [(60, 60, 2), (10, 900, 1), (900, 900, 0)])
def test_an_event_is_sent_as_often_as_the_plan_of_now_says(a: int, b: int, times: int) -> None:
    (sent,) = publisher().event({"a": a, "b": b})
    now = index(1, PARTS)
    frames = resent(frame(sent), (index(0, OLD),), now)
    found = [parse(each).destination for each in frames]
    assert found == [now.encoding.destination(dz) for dz in PARTS.encode({"a": a, "b": b})]
    assert len(found) == times


def test_a_digest_is_told_from_an_event() -> None:
    box = publisher()
    box.event({"a": 1, "b": 1})
    with pytest.raises(LateDigest):
        resent(frame(box.digests()[0]), (index(0, OLD),), index(1, NEW))


def test_what_is_of_no_late_index_is_foreign() -> None:
    (sent,) = publisher().event({"a": 1, "b": 1})
    now = index(1, NEW)
    for late in ((), (now,), (index(2, OLD),), (index(0, OLD, "ipv4"),)):
        with pytest.raises(ForeignTag):
            resent(frame(sent), late, now)
    with pytest.raises(ForeignTag):
        resent(frame(sent, destination_port=7), (index(0, OLD),), now)


def test_an_event_of_another_schema_is_none() -> None:
    (sent,) = publisher().event({"a": 1000, "b": 1})
    narrow = Schema.parse({name: {"type": "int", "min": 0, "max": 9} for name in "ab"})
    with pytest.raises(BadMessage, match="an event that cannot be one: a = 1000"):
        resent(frame(sent), (index(0, OLD),), index(1, RegularPlan.make(narrow, bits=4)))


@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_is_sent_again_or_told_to_be_nothing(data: bytes, framed: bool) -> None:
    (sent,) = publisher().event({"a": 1, "b": 1})
    packet = frame(sent, payload=data) if framed else data
    with suppress(BadMessage):
        assert resent(packet, (index(0, OLD),), index(1, NEW))
    assert is_event(packet) or not framed


def test_other_packets_are_not_looked_at() -> None:
    (sent,) = publisher().event({"a": 1, "b": 1})
    assert is_event(frame(sent))
    assert not is_event(frame(sent, destination_port=7421))
    assert not is_event(b"")
