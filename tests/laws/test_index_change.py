"""Going over to another index: whenever clients do, each event is handed on once, and no loss is made up.

The network is played as the transition has it: under the old tag an event goes where the old index sends it, then
everywhere, and from some moment on, decided at its publisher's port, over the controller; under the new tag it goes
where the new index sends it. Packets are lost, doubled and overtake each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client.inbox import Inbox
from flowsieve.client.outbox import EventDatagram, Outbox
from flowsieve.client.stats import Stats
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.tag import POOLS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.protocol.event_message import MessageKind, decode
from flowsieve.serving.late_events import sent_again

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 15} for name in "ab"})
OLD, NEW = (PrefixEncoding(tag) for tag in POOLS["ipv6"][:2])
PLANS: tuple[IndexPlan, ...] = (
    RegularPlan.make(SCHEMA, bits=4),
    RegularPlan.make(SCHEMA, bits=3, dimensions=["b"]),
    RegularPlan.make(SCHEMA, bits=6, dimensions=["b", "a"]),
    RegularPlan.make(SCHEMA, bits=1, dimensions=["a"]),
    SelectivePlan.from_json(
        {
            "kind": "selective",
            "schema": SCHEMA.digest,
            "bits": 6,
            "dimensions": ["a", "b"],
            "parts": [[[0, 9], None], [[5, 15], [0, 7]]],
            "rest": True,
        },
        SCHEMA,
        112,
    ),
)
FILTERS = ("a < 6", "b >= 9 and a < 12", "a < 3 or b < 3", "3 <= a < 9 and b < 9", "True")
STEPS = 80
PLAIN, CARRIED, SWITCHED = range(3)


class Packet(NamedTuple):
    """A packet on its way to the subscriber; whether the subscriber was owed it, by the index it was sent by."""

    payload: bytes
    owed: bool


@dataclass
class Publisher:
    box: Outbox
    fenced: bool = False
    over: bool = False
    published: dict[int, dict[str, object]] = field(default_factory=dict)


class Story:
    """Publishers, and one subscriber on another host."""

    def __init__(self, dice: Random, old: IndexPlan, new: IndexPlan, filters: list[str]) -> None:
        self.dice, self.old, self.new = dice, old, new
        self.filters = {text: Filter.parse(text, SCHEMA) for text in filters}
        self.inbox = Inbox(SCHEMA, OLD, b"myself  ", Stats())
        self.owed = {plan: {t: plan.cover(f, 0) for t, f in self.filters.items()} for plan in (old, new)}
        for text, wanted in self.filters.items():
            self.inbox.open(text, wanted)
            self.inbox.confirm(text, self.owed[old][text])
        self.publishers = [Publisher(self.outbox(name)) for name in (b"first   ", b"second  ")]
        self.phase = PLAIN
        self.over = False
        self.under_way: list[Packet] = []
        self.lost = 0  # of what was owed
        self.arrived: set[tuple[bytes, int]] = set()
        self.handed: list[tuple[bytes, int]] = []

    def outbox(self, name: bytes) -> Outbox:
        made = Outbox(self.old, OLD, name)
        made.advertised["all"] = Filter.parse("True", SCHEMA)
        return made

    def publish(self, publisher: Publisher, values: dict[str, object] | None = None) -> None:
        values = values or {name: self.dice.randrange(16) for name in "ab"}
        datagrams = publisher.box.event(values)
        publisher.published[publisher.box.seq] = values
        self.send(publisher, datagrams)

    def wanted_event(self) -> dict[str, object]:
        (wanted, *_) = self.filters.values()
        events = ({"a": a, "b": b} for a in range(16) for b in range(16))
        return next(event for event in events if wanted.matches(event))

    def send(self, publisher: Publisher, datagrams: list[EventDatagram]) -> None:
        """Decide at the publisher's port what becomes of packets: that alone is what a packet meets."""
        for _, payload, *_ in datagrams:
            message = decode(payload)
            old, new = message.dz(OLD), message.dz(NEW)
            if new is not None:
                if any(dz.covers(new) for dz in self.owed[self.new].values()):
                    self.under_way.append(Packet(payload, owed=message.kind is MessageKind.EVENT))
            elif publisher.fenced:
                if message.kind is MessageKind.EVENT:
                    again = sent_again(payload)
                    cells = self.new.encode(message.values)
                    wanted = (
                        cell for cell in cells if any(d.covers(cell) for d in self.owed[self.new].values())
                    )
                    self.under_way += [Packet(again, owed=False) for _ in wanted]
            else:
                assert old is not None
                owed = any(dz.covers(old) for dz in self.owed[self.old].values())
                if owed or self.phase > PLAIN:
                    self.under_way.append(Packet(payload, owed and message.kind is MessageKind.EVENT))

    def go_over(self, publisher: Publisher) -> None:
        if not publisher.over:
            publisher.over = True
            self.send(publisher, publisher.box.last_digests())
            publisher.box = publisher.box.under(self.new, NEW)

    def subscriber_goes_over(self) -> None:
        if not self.over:
            self.over = True
            self.inbox.go_over(NEW, self.owed[self.new])

    def arrive(self, packet: Packet) -> None:
        message = decode(packet.payload)
        if message.kind is MessageKind.EVENT:
            self.arrived.add((message.publisher, message.seq))
        matched = self.inbox.take(packet.payload)
        if matched is not None:
            self.handed.append((matched.event.publisher, matched.event.seq))
            expected = {text for text, wanted in self.filters.items() if wanted.matches(matched.event.values)}
            assert set(matched.subscriptions) == expected

    def deliver(self, loss: float, doubled: float, at: int = 0) -> None:
        """The fate of a packet under way."""
        packet = self.under_way.pop(at)
        if self.dice.random() < loss:
            self.lost += packet.owed
            return
        self.arrive(packet)
        if self.dice.random() < doubled:
            self.under_way.insert(self.dice.randint(0, len(self.under_way)), packet._replace(owed=False))

    def deliver_all(self, loss: float = 0.0, doubled: float = 0.0) -> None:
        while self.under_way:
            self.deliver(loss, doubled)

    def check(self) -> None:
        assert len(set(self.handed)) == len(self.handed)
        wanted = {
            (name, seq)
            for publisher, name in zip(self.publishers, (b"first   ", b"second  "), strict=True)
            for seq, values in publisher.published.items()
            if any(wanted.matches(values) for wanted in self.filters.values())
        }
        assert set(self.handed) == wanted & self.arrived


plans = st.sampled_from(PLANS)
some_filters = st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3, unique=True)


@given(st.randoms(use_true_random=False), plans, plans, some_filters)
def test_each_event_is_handed_on_once_and_no_more_is_counted_as_lost_than_was(
    dice: Random, old: IndexPlan, new: IndexPlan, filters: list[str]
) -> None:
    story = Story(dice, old, new, filters)
    for _ in range(STEPS):
        publisher, chance = dice.choice(story.publishers), dice.random()
        if chance < 0.45:
            story.publish(publisher)
        elif chance < 0.5:
            story.send(publisher, publisher.box.digests())
        elif chance < 0.55:
            story.phase = min(SWITCHED, story.phase + 1)
        elif chance < 0.65 and story.phase == SWITCHED:
            act = dice.choice(["over", "fence", "subscriber"])
            if act == "over":
                story.go_over(publisher)
            elif act == "fence":
                publisher.fenced = True
            else:
                story.subscriber_goes_over()
        elif story.under_way:
            story.deliver(0.2, 0.2, dice.randrange(len(story.under_way)))
    while story.under_way:
        story.deliver(0.2, 0.05, dice.randrange(len(story.under_way)))
    story.check()
    assert 0 <= story.inbox.stats.lost <= story.lost
    assert story.inbox.stats.malformed == story.inbox.stats.forged == 0


@given(st.randoms(use_true_random=False), plans, plans, some_filters)
def test_all_that_is_lost_shows_once_the_digests_are_there_if_the_subscriber_went_over_first(
    dice: Random, old: IndexPlan, new: IndexPlan, filters: list[str]
) -> None:
    """Before that, what comes is filtered and not counted; and so is what was under way over the controller."""
    story = Story(dice, old, new, filters)
    for publisher in story.publishers:
        story.publish(publisher, story.wanted_event())  # it comes, so the publisher is known
        story.deliver_all()
    story.phase = SWITCHED
    over = dice.randrange(40)
    for step in range(60):
        if step == over:
            story.subscriber_goes_over()
        elif step > over and dice.random() < 0.2:
            story.go_over(dice.choice(story.publishers))
            story.deliver_all()
        story.publish(dice.choice(story.publishers))
        story.deliver_all(0.3, 0.1)
    for publisher in story.publishers:
        story.go_over(publisher)
        story.send(publisher, publisher.box.digests())
        story.deliver_all()
    story.check()
    assert story.inbox.stats.lost == story.lost
