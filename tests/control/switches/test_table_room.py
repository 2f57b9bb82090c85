"""Switches that turn out to have less room than their tables need, and more again later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from livenet import SCHEMA, Net, running

from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import Bounded, Entry, NoJournal
from flowsieve.control.request import Op, Request
from flowsieve.control.switches import room_schedule
from flowsieve.control.switches.table_room import less_room
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.fabric import TableChanged

ROOM, TAKEN = 200, 160


def test_what_fitted_when_an_entry_was_refused_is_the_room() -> None:
    assert less_room(None, held=10, full_at=80) == 80
    assert less_room(100, held=10, full_at=80) == 80
    assert less_room(100, held=10, full_at=0) == 0


@pytest.mark.parametrize("held", [0, 17, 5000])
def test_a_switch_that_refuses_whatever_it_is_known_to_have_room_for_is_soon_done_with(held: int) -> None:
    known, steps = 4096, 0
    while known > max(1, min(held, 17)):
        smaller = less_room(known, held, full_at=known)
        assert smaller < known
        known, steps = smaller, steps + 1
    assert steps <= 13


class Kept(NoJournal):
    """Remembers what was written."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    async def append(self, entries: Sequence[Entry]) -> int:
        self.entries += entries
        return 0

    @property
    def bounds(self) -> list[int | None]:
        return [entry.capacity for entry in self.entries if isinstance(entry, Bounded)]


def strangers(net: Net, kind: OpKind, count: int, owner: int | None) -> None:
    """Somebody else makes or removes entries outside our groups at s0; his cookies may be like ours."""
    flows = [Flow(PrefixMatch(Prefix(4, 10 << 16 | n, 24)), 5, (Output(1),), owner) for n in range(count)]
    net.network.apply("s0", [FlowOp(kind, flow) for flow in flows])
    net.network.settle()
    net.dispatcher.heard(TableChanged("s0", frozenset({owner})))


async def subscribe(net: Net, count: int) -> None:
    for n in range(count):
        await net.ask(Op.SUBSCRIBE, "h1", f"{37 * n % 200} <= a < {37 * n % 200 + 13} and b < {90 + 17 * n}")


async def until_exact(net: Net) -> None:
    async with asyncio.timeout(60):
        while net.dispatcher.state.bounds or net.dispatcher.state.waste():
            await asyncio.sleep(0.005)
    await net.dispatcher.settled()


@pytest.mark.parametrize("owner", [None, 0], ids=["a stranger's cookie", "one like ours"])
def test_room_that_others_take_is_not_ours_and_is_found_again_when_they_go(
    monkeypatch: pytest.MonkeyPatch, owner: int | None
) -> None:
    monkeypatch.setattr(room_schedule, "SOON_SECONDS", 0.01)
    journal = Kept()

    async def story() -> None:
        async with running(Net("line:2", capacity=ROOM, journal=journal)) as net:
            await net.dispatcher.settled()
            strangers(net, OpKind.INSTALL, TAKEN, owner)
            await net.ask(Op.ADVERTISE, "h0", "True")
            await subscribe(net, 5)
            await net.dispatcher.settled()
            assert net.dispatcher.state.capacity("s0") == ROOM - TAKEN
            assert net.dispatcher.state.waste()
            assert 1 <= len(journal.bounds) <= 3  # not one step for each of their entries
            strangers(net, OpKind.REMOVE, TAKEN, owner)
            await until_exact(net)
            assert journal.bounds[-1] is None
            assert (await net.dispatcher.verify()).holds

    asyncio.run(story())


def test_room_is_found_again_though_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_schedule, "FIRST_SECONDS", 0.02)
    journal = Kept()

    async def story() -> None:
        async with running(Net("line:2", capacity=ROOM, journal=journal)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            strangers(net, OpKind.INSTALL, TAKEN, None)
            await subscribe(net, 5)
            async with asyncio.timeout(60):
                while journal.bounds.count(None) < 2:  # tried in vain
                    await asyncio.sleep(0.005)
            await net.dispatcher.settled()
            assert (await net.dispatcher.verify()).holds
            net.network.apply(
                "s0", [FlowOp(OpKind.REMOVE, flow) for flow in net.network.read("s0") if flow.owner is None]
            )
            net.network.settle()
            await until_exact(net)

    asyncio.run(story())


def test_a_switch_that_began_anew_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_schedule, "SOON_SECONDS", 0.01)

    async def story() -> None:
        async with running(Net("line:2", capacity=ROOM)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            strangers(net, OpKind.INSTALL, TAKEN, None)
            await subscribe(net, 5)
            await net.dispatcher.settled()
            assert net.dispatcher.state.bounds
            net.fabric.restart("s0")  # and the others' entries are gone
            await until_exact(net)
            await net.holds()

    asyncio.run(story())


def test_where_there_is_no_room_at_all_a_request_is_refused_at_once_and_served_when_there_is() -> None:
    async def story() -> None:
        async with running(Net("line:2", capacity=ROOM, patience=60)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            strangers(net, OpKind.INSTALL, ROOM, 0)
            wanted = Request(Op.SUBSCRIBE, "w", "h1", Filter.parse("a < 16", SCHEMA))
            async with asyncio.timeout(10):
                outcome = await net.dispatcher.submit(wanted)
            assert "room for 0" in str(outcome.refused[0][1])
            strangers(net, OpKind.REMOVE, ROOM, 0)
            assert not (await net.dispatcher.submit(wanted)).refused
            await net.holds()

    asyncio.run(story())
