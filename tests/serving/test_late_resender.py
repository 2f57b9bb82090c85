"""What switches hand over late is sent again at the same port, counted, and never too much of it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest
from test_late_events import NEW, OLD, frame, index, publisher

from flowsieve.errors import SwitchError
from flowsieve.header.frame import parse
from flowsieve.serving import late_resender as module
from flowsieve.serving.late_resender import LateResender
from flowsieve.southbound.fabric import PuntedPacket


class Switches:
    def __init__(self) -> None:
        self.sent: list[tuple[str, int, bytes]] = []
        self.held = asyncio.Event()
        self.held.set()
        self.away = False

    async def inject(self, switch: str, port: int, data: bytes) -> None:
        await self.held.wait()
        if self.away:
            raise SwitchError(f"switch {switch} is not connected")
        self.sent.append((switch, port, data))


async def settled(late: LateResender) -> None:
    async with asyncio.timeout(20):
        while late._sending:
            await asyncio.sleep(0)


def counts(late: LateResender) -> dict[str, int]:
    return {name: count for name, count in asdict(late.counters).items() if count}


def test_all_that_is_handed_over_is_counted_by_what_became_of_it() -> None:
    async def story() -> None:
        box, switches, told = publisher(), Switches(), []
        late = LateResender(
            lambda: index(1, NEW),
            lambda: (index(0, OLD),),
            switches.inject,
            lambda *place: told.append(place),
        )
        (event,) = box.event({"a": 1, "b": 1})
        assert late.heard(PuntedPacket("s1", 7, frame(event)))
        assert late.heard(PuntedPacket("s2", 8, frame(box.digests()[0])))
        assert late.heard(PuntedPacket("s3", 9, frame(event, payload=b"nonsense")))
        assert not late.heard(PuntedPacket("s3", 9, frame(event, destination_port=7421)))
        (foreign,) = box.under(NEW, index(1, NEW).encoding).event({"a": 1, "b": 1})
        assert late.heard(PuntedPacket("s3", 9, frame(foreign)))
        await settled(late)
        assert counts(late) == {"received": 4, "again": 1, "digests": 1, "malformed": 1, "foreign": 1}
        ((switch, port, data),) = switches.sent
        assert (switch, port) == ("s1", 7)
        assert parse(data).destination[:2] == bytes.fromhex("ff15")
        assert told == [("s1", 7), ("s2", 8)]
        switches.away = True
        late.heard(PuntedPacket("s1", 7, frame(event)))
        await settled(late)
        assert late.counters.unsent == 1
        await late.close()
        assert late.heard(PuntedPacket("s1", 7, frame(event)))  # nobody else's either
        assert late.counters.received == 5

    asyncio.run(story())


def test_where_switches_are_slow_no_more_than_so_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SENDING", 10)

    async def story() -> None:
        (event,) = publisher().event({"a": 1, "b": 1})
        switches = Switches()
        switches.held.clear()
        late = LateResender(lambda: index(1, NEW), lambda: (index(0, OLD),), switches.inject)
        for _ in range(25):
            late.heard(PuntedPacket("s1", 7, frame(event)))
        assert counts(late) == {"received": 25, "unsent": 15}
        switches.held.set()
        await settled(late)
        assert (late.counters.again, len(switches.sent)) == (10, 10)

    asyncio.run(story())
