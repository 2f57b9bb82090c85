"""Receiving: applications see exact results, once, and what is dropped is counted."""

from __future__ import annotations

from flowsieve.client.inbox import Inbox, MatchedEvent
from flowsieve.client.outbox import EventDatagram, Outbox
from flowsieve.client.stats import Stats
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.header.encoding import PrefixEncoding, encoding_of
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
PLAN = RegularPlan.make(SCHEMA, bits=5)
ENCODING = encoding_of("ipv6")


def wants(text: str) -> Filter:
    return Filter.parse(text, SCHEMA)


class Scene:
    """A publisher and a subscriber with a coarse index, so that false positives are there."""

    def __init__(self, remembered: int = 100, **subscriptions: str) -> None:
        self.inbox = Inbox(SCHEMA, ENCODING, b"myself  ", Stats(), remembered)
        self.outbox = self.publisher(b"other   ")
        for id, text in subscriptions.items():
            self.inbox.open(id, wants(text))
            self.inbox.confirm(id, PLAN.cover(wants(text), 0))

    @staticmethod
    def publisher(name: bytes) -> Outbox:
        made = Outbox(PLAN, ENCODING, name)
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


def test_memory_for_copies_is_bounded() -> None:
    scene = Scene(remembered=3, all="True")
    sent = [scene.send(n) for n in range(6)]
    scene.take(*sent)
    assert len(scene.inbox._seen) == 3
    assert len(scene.take(*sent[3:])) == 0


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
    scene.outbox = Outbox(PLAN, PrefixEncoding(POOLS["ipv6"][1]), b"other   ")
    scene.outbox.advertised["all"] = wants("True")
    assert len(scene.take(scene.send(10))) == 1
    assert scene.counts == {"received": 1, "delivered": 1, "unchecked": 1}
