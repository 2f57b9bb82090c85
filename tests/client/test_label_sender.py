"""Events leave in their order, for those whom the matcher names, and only while what they were matched with holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import pytest

from flowsieve.client.label_sender import LabelSender
from flowsieve.client.matcher_socket import LabelAnswer, LabelMatch
from flowsieve.client.outbox import EventDatagram
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadValue, Busy, ControlLost, FlowsieveError, HostError
from flowsieve.header.tag import POOLS
from flowsieve.protocol.event_message import MessageKind, decode

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 99}})
LONG = 1000.0


class Link:
    """A matcher that names receiver x for an event of value x; `until` says how long that holds."""

    def __init__(self) -> None:
        self.until: Callable[[], float] = lambda: time.monotonic() + LONG
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self.fails: FlowsieveError | None = None

    async def open(self) -> None:
        pass

    async def ask(self, events: Sequence[Mapping[str, Any]]) -> LabelAnswer:
        self.asked += 1
        await self.answers.wait()
        if self.fails is not None:
            raise self.fails
        return LabelAnswer(7, self.until(), 4, tuple(LabelMatch(1 << each["x"]) for each in events))

    def close(self) -> None:
        pass


class Wire:
    """Keeps what is sent, and may take its time."""

    dropped = 0

    def __init__(self) -> None:
        self.sent: list[EventDatagram] = []
        self.takes = 0.0
        self.fails: HostError | None = None

    def send(self, datagrams: Iterable[EventDatagram]) -> None:
        if self.fails is not None:
            raise self.fails
        self.sent += datagrams
        if self.takes:
            time.sleep(self.takes)  # as a process that is stopped does

    def events(self) -> list[Any]:
        return [decode(each.payload) for each in self.sent if decode(each.payload).kind is MessageKind.EVENT]


def play(story: Callable[[LabelSender, Link, Wire], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        link, wire = Link(), Wire()
        sender = LabelSender(SCHEMA, POOLS["receivers"][0], b"p" * 8, wire, link)  # type: ignore[arg-type]
        sender.advertised["a"] = Filter.parse("x < 90", SCHEMA)
        async with asyncio.timeout(60):
            await sender.ready()
            await story(sender, link, wire)
        await sender.close()

    asyncio.run(whole())


def test_events_leave_in_order_to_the_addresses_of_their_receivers() -> None:
    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        for x in (3, 80, 3):
            sender.put({"x": x}, b"")
        await sender.left(3)
        assert [(each.values["x"], each.seq, each.stamps, each.bits) for each in wire.events()] == [
            (3, 1, (7,), 0),
            (80, 2, (7,), 0),
            (3, 3, (7,), 0),
        ]
        assert wire.sent[0].destination.hex() == "ff1e" + "00" * 13 + "08"
        assert link.asked == 1  # for all of them
        told = [decode(each.payload) for each in wire.sent if not each.near]
        assert [(each.kind, each.stamps) for each in told] == [(MessageKind.DIGEST, (1,))] * 2  # to new ones
        sender.digests(last=False)
        assert [decode(each.payload).stamps for each in wire.sent[-2:]] == [(2,), (1,)]

    play(story)


def test_nothing_leaves_past_the_lease_until_it_is_matched_again() -> None:
    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        link.until = lambda: 0.0
        sender.put({"x": 3}, b"")
        while link.asked < 3:
            await asyncio.sleep(0.001)
        assert wire.sent == []
        link.until = lambda: time.monotonic() + LONG
        await sender.left(1)
        assert len(wire.events()) == 1

    play(story)


def test_what_leaves_late_since_the_process_was_stopped_is_counted() -> None:
    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        wire.takes, link.until = 0.2, lambda: time.monotonic() + 0.1
        sender.put({"x": 3}, b"")
        await sender.left(1)
        assert sender.late == 1
        assert wire.events()[0].stamps == (7,)  # the version that it was matched with

    play(story)


def test_an_event_that_nobody_waits_for_any_more_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.client.label_sender.LEAVE_SECONDS", 0.05)

    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        link.answers.clear()
        sender.put({"x": 3}, b"")
        with pytest.raises(ControlLost, match="does not know who wants it"):
            await sender.left(1)
        link.answers.set()
        sender.put({"x": 4}, b"")
        await sender.left(2)
        assert [each.values["x"] for each in wire.events()] == [4]

    play(story)


def test_a_bad_event_counts_for_nothing_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.client.label_sender.MOST_WAITING", 2)

    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        link.answers.clear()
        with pytest.raises(BadValue, match="outside what is advertised"):
            sender.put({"x": 95}, b"")
        assert [sender.put({"x": 1}, b""), sender.put({"x": 2}, b"")] == [1, 2]
        with pytest.raises(Busy, match="publish more slowly"):
            sender.put({"x": 3}, b"")
        link.answers.set()
        await sender.flush()
        assert len(wire.events()) == 2

    play(story)


def test_events_wait_while_no_matcher_comes_up_and_it_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.client.label_sender.LEAVE_SECONDS", 0.1)
    monkeypatch.setattr("flowsieve.client.label_sender.NEXT_SECONDS", 0.01)

    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        link.fails = HostError("no matcher comes up")
        sender.put({"x": 3}, b"")
        with pytest.raises(ControlLost, match="no matcher comes up"):
            await sender.left(1)
        sender.put({"x": 4}, b"")
        link.fails = None
        await sender.flush()
        assert [each.values["x"] for each in wire.events()] == [4]

    play(story)


def test_an_event_that_the_host_cannot_send_is_told_and_keeps_no_other_from_leaving() -> None:
    async def story(sender: LabelSender, link: Link, wire: Wire) -> None:
        wire.fails = HostError("this host cannot send")
        sender.put({"x": 3}, b"")
        sender.put({"x": 5}, b"")  # and nobody waits for this one
        with pytest.raises(HostError, match="cannot send"):
            await sender.left(1)
        while sender.unsent != 2:
            await asyncio.sleep(0)
        wire.fails = None
        sender.put({"x": 4}, b"")
        await sender.left(3)
        assert [each.values["x"] for each in wire.events()] == [4]
        link.answers.clear()
        sender.put({"x": 4}, b"")
        waiting = asyncio.create_task(sender.left(4))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (sender.sent, sender.unsent) == (4, 3)

    play(story)
