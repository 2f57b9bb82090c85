"""Receiving: applications see exact results, once, and what is dropped is counted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client.copies import LEAST, MARKS
from flowsieve.client.inbox import Inbox, MatchedEvent
from flowsieve.client.outbox import EventDatagram, Outbox
from flowsieve.client.stats import Stats
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage
from flowsieve.header.encoding import PrefixEncoding, encoding_of
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.event_mac import MacChecker, Signer, publisher_key
from flowsieve.protocol.event_message import decode, encode

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
PLAN = RegularPlan.make(SCHEMA, bits=5)
ENCODING = encoding_of("ipv6")
EPOCH, KEY = 3, bytes(range(16))


def wants(text: str) -> Filter:
    return Filter.parse(text, SCHEMA)


class Scene:
    """A publisher and a subscriber with a coarse index, so that false positives are there."""

    def __init__(self, remembered: int = 100, **subscriptions: str) -> None:
        self.inbox = Inbox(SCHEMA, ENCODING, b"myself  ", Stats(), remembered)
        self.inbox.checker = MacChecker([(EPOCH, KEY)])
        self.outbox = self.publisher(b"other   ")
        for id, text in subscriptions.items():
            self.inbox.open(id, wants(text))
            self.inbox.confirm(id, PLAN.cover(wants(text), 0))

    @staticmethod
    def publisher(name: bytes) -> Outbox:
        made = Outbox(PLAN, ENCODING, name, Signer(EPOCH, publisher_key(KEY, name)))
        made.advertised["all"] = wants("True")
        return made

    def send(self, price: int, live: bool = True) -> EventDatagram:
        (datagram,) = self.outbox.event({"price": price, "live": live})
        return datagram

    def take(self, *datagrams: EventDatagram) -> list[MatchedEvent]:
        return [arrival for each in datagrams if (arrival := self.inbox.take(each.payload)) is not None]

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.inbox.stats.to_json().items() if count}


def test_an_event_reaches_the_subscriptions_that_match_and_no_other() -> None:
    scene = Scene(cheap="price < 50", live="live", dear="price > 900")
    (arrival,) = scene.take(scene.send(10))
    assert arrival.subscriptions == ("cheap", "live")
    assert (arrival.event.values, arrival.event.publisher, arrival.event.seq) == (
        {"price": 10, "live": True},
        b"other   ",
        1,
    )
    assert scene.counts == {"received": 1, "delivered": 2}


def test_false_positives_are_dropped_and_told_from_what_is_for_others() -> None:
    scene = Scene(cheap="price < 50")
    assert scene.take(scene.send(60), scene.send(1000)) == []
    assert scene.counts == {"received": 2, "false_positives": 1, "passed_over": 1}


def test_second_copies_are_dropped() -> None:
    scene = Scene(cheap="price < 50")
    one, two = scene.send(10), scene.send(20)
    assert len(scene.take(one, two, one, one, two)) == 2
    assert scene.counts == {"received": 5, "delivered": 2, "duplicates": 3}


def test_the_same_event_to_another_address_is_a_repeat_and_delivered_once() -> None:
    scene = Scene(cheap="price < 50")
    first = scene.send(10)
    other = scene.publisher(b"other   ")
    (second,) = other.event({"price": 900, "live": True})
    assert len(scene.take(first, second, second)) == 1
    assert scene.counts == {"received": 3, "delivered": 1, "repeats": 1, "duplicates": 1}


def test_memory_for_copies_is_bounded_and_what_is_older_counts_as_one() -> None:
    scene = Scene(remembered=LEAST, all="True")
    sent = [scene.send(n) for n in range(3 * LEAST)]
    late = sent.pop(1)
    assert len(scene.take(*sent)) == len(sent)
    assert len(scene.inbox._copies) == LEAST
    assert scene.take(*sent, late) == []
    assert scene.inbox.stats.duplicates == len(sent) + 1
    assert scene.inbox.stats.lost == 1  # which stays, since it was not handed on


def test_ever_new_destinations_of_a_datagram_are_copies_of_it() -> None:
    scene = Scene(all="True")
    first = scene.send(10)
    moved = [
        EventDatagram(
            b"", encode(replace(decode(first.payload), destination=bytes([255, 14, *n.to_bytes(14)])))
        )
        for n in range(100)
    ]
    assert len(scene.take(first, *moved)) == 1
    assert scene.counts == {"received": 101, "delivered": 1, "duplicates": 100}


def test_without_keys_ever_new_destinations_take_no_room_either() -> None:
    scene = Scene(all="True")
    scene.inbox.checker = None
    message = decode(scene.send(10).payload)
    for n in range(100):
        payload = encode(replace(message, mac=b"", destination=bytes([255, 21, *n.to_bytes(14)])))
        scene.take(EventDatagram(b"", payload))
    assert scene.counts == {
        "received": 100,
        "delivered": 1,
        "unchecked": 1,
        "repeats": MARKS - 1,
        "duplicates": 100 - MARKS,
    }
    assert len(scene.inbox._copies) == 1


def test_what_its_publisher_has_not_signed_is_believed_in_nothing() -> None:
    scene = Scene(all="True")
    assert len(scene.take(scene.send(10))) == 1
    message, (digest,) = decode(scene.send(11).payload), scene.outbox.digests()[:1]
    absurd = replace(decode(digest.payload), seq=2**60, stamps=(2**60, 1) * 3)
    other = Signer(EPOCH, publisher_key(KEY, b"another "))
    for forged in (
        replace(message, mac=b"", epoch=0),
        replace(message, mac=bytes(8)),
        replace(message, epoch=EPOCH + 1),
        replace(message, seq=3),
        replace(message, publisher=b"another "),
        replace(message, values={"price": 12, "live": True}),
        replace(message, data=b"more"),
        replace(message, stamps=(9, *message.stamps[1:])),
        replace(absurd, mac=b""),
        absurd,
        replace(absurd, mac=other.mac(b"whatever")),
    ):
        assert scene.take(EventDatagram(b"", encode(forged))) == []
    assert scene.counts == {"received": 1, "delivered": 1, "forged": 11}
    assert len(scene.take(EventDatagram(b"", encode(message)))) == 1
    assert scene.inbox.stats.lost == 0


def mutated(data: st.DataObject, payload: bytes) -> bytes:
    """A datagram with a few bytes changed, cut off or added."""
    made = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 4))):
        made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(made)))
    return bytes(made[:end]) + data.draw(st.binary(max_size=4))


@given(st.data(), st.booleans())
def test_whatever_comes_the_inbox_lives_and_what_is_real_gets_through(
    data: st.DataObject, signed: bool
) -> None:
    scene = Scene(cheap="price < 512", dear="price >= 900")
    if not signed:
        scene.inbox.checker = None
    real = [scene.send(price) for price in (10, 950, 20)]
    payloads = [each.payload for each in (*real, *scene.outbox.digests())]
    for _ in range(20):
        junk = data.draw(st.binary(max_size=100)) if data.draw(st.booleans()) else None
        scene.inbox.take(mutated(data, data.draw(st.sampled_from(payloads))) if junk is None else junk)
    got = scene.take(*real)
    if signed:
        assert scene.inbox.stats.lost == 0
        counts = scene.inbox.stats
        assert counts.delivered == len({each.payload for each in real})
        assert len(got) + counts.duplicates >= len(real)


@given(st.data())
def test_any_change_that_the_mac_covers_is_noticed(data: st.DataObject) -> None:
    checker, payload = MacChecker([(EPOCH, KEY)]), Scene().send(10).payload
    at = data.draw(st.integers(0, len(payload) - 1))
    changed = bytearray(payload)
    changed[at] ^= data.draw(st.integers(1, 255))
    if checker.holds(bytes(changed)):
        with suppress(
            BadMessage
        ):  # then it is the address or the bits of the dz, or nothing that can be read
            before, after = decode(payload), decode(bytes(changed))
            assert replace(after, destination=before.destination, bits=before.bits) == before


def test_what_a_client_publishes_itself_it_does_not_get() -> None:
    scene = Scene(all="True")
    mine = scene.publisher(b"myself  ").event({"price": 1, "live": True})
    assert scene.take(*mine) == []
    assert scene.counts == {}


def test_nonsense_is_counted_and_disturbs_nothing() -> None:
    scene = Scene(all="True")
    good = scene.send(10)
    outside = good._replace(payload=good.payload.replace(b"price\x0a", b"price\xd1"))
    assert scene.take(EventDatagram(b"", b""), EventDatagram(b"", b"\xc1" * 30), outside) == []
    assert len(scene.take(good)) == 1
    assert scene.counts == {"received": 1, "delivered": 1, "malformed": 3}


def test_losses_in_the_subscriptions_dz_are_counted_from_confirmation_on() -> None:
    scene = Scene()
    scene.inbox.open("cheap", wants("price < 50"))
    assert len(scene.take(scene.send(10))) == 1
    scene.send(11)
    assert len(scene.take(scene.send(12))) == 1
    assert scene.inbox.stats.lost == 0
    scene.inbox.confirm("cheap", PLAN.cover(wants("price < 50"), 0))
    scene.take(scene.send(13))
    scene.send(14)
    scene.send(900)
    scene.take(scene.send(15))
    assert scene.inbox.stats.lost == 1
    scene.send(16)
    scene.take(*scene.outbox.digests())
    assert scene.inbox.stats.lost == 2


def test_a_closed_subscription_gets_and_claims_nothing() -> None:
    scene = Scene(cheap="price < 50", dear="price >= 512")
    scene.take(scene.send(10), scene.send(1000))
    scene.inbox.close("cheap")
    scene.send(10)
    assert scene.take(scene.send(10)) == []
    assert len(scene.take(scene.send(1000))) == 1
    assert scene.inbox.stats.lost == 0
    scene.inbox.close("dear")
    scene.inbox.close("never was")
    assert scene.take(scene.send(1000)) == []


def test_events_under_another_tag_are_filtered_and_unchecked() -> None:
    scene = Scene(cheap="price < 50")
    scene.outbox = Outbox(PLAN, PrefixEncoding(POOLS["ipv6"][1]), b"other   ", scene.outbox.signer)
    scene.outbox.advertised["all"] = wants("True")
    assert len(scene.take(scene.send(10))) == 1
    assert scene.counts == {"received": 1, "delivered": 1, "unchecked": 1}
