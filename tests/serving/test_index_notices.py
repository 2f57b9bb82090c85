"""Notices go to the hosts of those who are behind, a few times, and wait for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Origin
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import SwitchError
from flowsieve.header.address import Prefix
from flowsieve.header.frame import parse
from flowsieve.header.host_groups import host_addresses
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.protocol.addresses import NOTICE_PORT
from flowsieve.protocol.notice import decode
from flowsieve.serving import index_notices as module
from flowsieve.serving.index_notices import IndexNotices, notice_frame

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
ALL, PLAN = Filter.parse("True", SCHEMA), RegularPlan.make(SCHEMA, bits=5)
NETWORK = Topology.make([("s1", "s2")], {"ann": "s1", "bob": "s2", "cy": "s2"})
GROUPS = {host: each.events_ipv6 for host, each in host_addresses(NETWORK).items()}
SESSIONS = {host: f"{n:032x}" for n, host in enumerate(NETWORK.hosts)}


class Place:
    def __init__(self) -> None:
        self.ledger, self.now, self.version = Ledger(), 0.0, 0
        for n, (host, session) in enumerate(SESSIONS.items(), 1):
            op = Op.SUBSCRIBE if host == "bob" else Op.ADVERTISE
            self.ledger.asked(Request(op, f"{n}", host, ALL), Origin(session, n))
        self.holders = IndexHolders(self.ledger)
        self.told: list[tuple[str, int]] = []
        self.away: set[str] = set()
        self.notices = IndexNotices(
            lambda: ServedIndex(self.version, POOLS["ipv6"][0], PLAN),
            self.holders,
            lambda: NETWORK,
            lambda: GROUPS,
            lambda topology: {},
            self.send,
            lambda: self.now,
        )

    async def send(self, switch: str, port: int, packet: bytes) -> None:
        if switch in self.away:
            raise SwitchError(f"switch {switch} is not connected")
        frame, host = parse(packet), NETWORK.neighbour(switch, port)
        assert frame.destination_port == NOTICE_PORT
        assert frame.destination == int(Prefix.parse(GROUPS[host]).first).to_bytes(16)
        self.told.append((host, decode(frame.payload).version))


def play(story: Callable[[Place], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20):
            await story(Place())

    asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_those_who_are_behind_are_told_again_and_the_others_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0, 0.0))

    async def story(place: Place) -> None:
        place.version = 1
        place.holders.said(SESSIONS["cy"], 1)
        await place.notices.announce()
        assert place.told == [("ann", 1), ("bob", 1)] * 3
        place.told.clear()
        place.away = {"s1"}
        place.holders.said(SESSIONS["bob"], 1)
        await place.notices.announce()
        assert place.told == []
        assert place.notices.sent == 6

    play(story)


def test_they_are_told_whenever_there_is_another_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSES", (0.0, 1000.0))

    async def story(place: Place) -> None:
        running = asyncio.create_task(place.notices.run())
        for version in (1, 2):
            place.version = version
            everybody = [(host, version) for host in NETWORK.hosts]
            await until(lambda everybody=everybody: place.told[-3:] == everybody)  # type: ignore[misc]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert len(place.told) == 6

    play(story)


def test_a_host_that_publishes_late_is_told_once_a_second() -> None:
    async def story(place: Place) -> None:
        place.version = 4
        for _ in range(100):
            place.notices.nudge("cy")
        await until(lambda: place.told == [("cy", 4)])
        place.now += 1.5
        for _ in range(100):
            place.notices.nudge("cy")
            place.notices.nudge("nobody")
        await until(lambda: place.told == [("cy", 4)] * 2)

    play(story)


def test_a_notice_comes_from_where_a_host_takes_it() -> None:
    own = Prefix.parse("192.168.7.9/32")
    frame = parse(notice_frame("224.128.0.1", own, b"x"))
    assert frame.source == bytes([192, 168, 7, 8]) and frame.destination_mac == bytes.fromhex("01005e000001")
    assert parse(notice_frame("224.128.0.1", None, b"x")).source[0] == 10
    assert parse(notice_frame("ff02::f10e:0:1", None, b"x")).source[:2] == bytes.fromhex("fe80")
