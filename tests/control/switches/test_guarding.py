"""Guards follow what hosts have advertised: before it is acknowledged, until after it has ended, across faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from livenet import ENCODING, SCHEMA, Net, running

from flowsieve.content.filter import Filter
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import SwitchError
from flowsieve.flow.guard import Guard, GuardSettings
from flowsieve.header.address import Prefix
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.southbound.fabric import TableChanged

LOWER, UPPER = Prefix.parse("ff0e::/17"), Prefix.parse("ff0e:8000::/17")
OPEN = Guard(Prefix.parse("ff0e::/16"))


class GuardedNet(Net):
    """A line of two switches with a host each, guarded."""

    def __init__(self, settings: GuardSettings | None = None) -> None:
        super().__init__("line:2")
        self.settings = settings or GuardSettings()
        self.dispatcher = self.controller()

    def controller(self, state: ControlState | None = None) -> Dispatcher:
        made = state or ControlState(self.topology, RegularPlan.make(SCHEMA))
        options = {"patience": 0.2, "drain": 0.0}
        return Dispatcher(made, self.fabric, ENCODING, guarding=lambda topology: self.settings, **options)

    def admitted(self, host: str) -> tuple[Prefix, ...] | None:
        """What a host may send; None where its switch takes in everything."""
        switch = self.topology.attached[host]
        guard, port = self.fabric.guards[switch, 0], self.topology.port(switch, host)
        return next((gate.admitted for gate in guard.gates if gate.port == port), None)


@asynccontextmanager
async def settled(net: GuardedNet) -> AsyncIterator[GuardedNet]:
    async with running(net):
        await net.dispatcher.settled()
        yield net


def play(story: Callable[[GuardedNet], Awaitable[None]], settings: GuardSettings | None = None) -> None:
    async def whole() -> None:
        async with settled(GuardedNet(settings)) as net:
            await story(net)

    asyncio.run(whole())


def test_what_is_advertised_is_taken_in_when_it_is_acknowledged_and_no_more_once_it_ended() -> None:
    async def story(net: GuardedNet) -> None:
        assert net.admitted("h0") == net.admitted("h1") == ()
        first = await net.ask(Op.ADVERTISE, "h0", "a < 128")  # nobody wants it: no table changes
        assert net.admitted("h0") == (LOWER,) and net.admitted("h1") == ()
        second = await net.ask(Op.ADVERTISE, "h0", "True")
        assert net.admitted("h0") == (OPEN.group,)
        for name in (second, first):
            await net.dispatcher.submit(Request(Op.UNADVERTISE, name, "h0"))
        await net.dispatcher.settled()
        assert net.admitted("h0") == ()

    play(story)


def test_an_advertisement_that_cannot_be_taken_in_is_taken_back() -> None:
    async def story(net: GuardedNet) -> None:
        net.fabric.disconnect("s0")
        with pytest.raises(SwitchError, match="not acknowledged"):
            await net.ask(Op.ADVERTISE, "h0", "a < 128")
        net.fabric.connect("s0")
        await net.dispatcher.settled()
        assert net.admitted("h0") == () and not net.dispatcher.state.advertisements

    play(story)


def test_hosts_that_are_not_guarded_wait_for_no_switch() -> None:
    async def story(net: GuardedNet) -> None:
        net.settings = None  # type: ignore[assignment]
        net.fabric.disconnect("s0")
        await net.ask(Op.ADVERTISE, "h0", "a < 128")

    play(story)


def test_a_switch_that_was_emptied_or_changed_is_guarded_anew() -> None:
    async def story(net: GuardedNet) -> None:
        await net.ask(Op.ADVERTISE, "h0", "a < 128")
        net.fabric.restart("s0")
        await net.dispatcher.settled()
        assert net.admitted("h0") == (LOWER,)
        net.fabric.guards["s0", 0] = OPEN
        net.dispatcher.heard(TableChanged("s0"))
        await net.dispatcher.settled()
        assert net.admitted("h0") == (LOWER,)

    play(story)


def test_another_state_of_the_same_interests_has_its_own_guards() -> None:
    async def story(net: GuardedNet) -> None:
        await net.ask(Op.ADVERTISE, "h0", "a < 128 and b < 128")
        exact = net.admitted("h0")
        coarse = ControlState(net.topology, RegularPlan.make(SCHEMA), settings=Settings(budget=1))
        offers = net.dispatcher.state.advertisements
        coarse.restore(
            [Request(Op.ADVERTISE, each.id, each.endpoint, each.filter) for each in offers.values()]
        )
        other = Filter.parse("b >= 128 and a < 128 or a >= 192", SCHEMA)
        coarse.step([Request(Op.ADVERTISE, "more", "h0", other)])
        net.dispatcher.replace(coarse)
        await net.dispatcher.settled()
        now = net.admitted("h0")
        assert now is not None and exact is not None and now != exact
        assert all(any(wide.covers(each) for wide in now) for each in exact)

    play(story)


def test_a_switch_without_room_for_its_guard_takes_in_everything_and_that_is_told() -> None:
    async def story(net: GuardedNet) -> None:
        net.fabric.guard_room = 2
        await net.ask(Op.ADVERTISE, "h0", "a < 128")
        await net.dispatcher.settled()
        assert net.fabric.guards["s0", 0] == OPEN and net.dispatcher.unguarded == {"s0"}
        assert net.admitted("h1") == ()
        net.fabric.guard_room = 100
        net.fabric.restart("s0")
        await net.dispatcher.settled()
        assert net.admitted("h0") == (LOWER,) and not net.dispatcher.unguarded

    play(story)


def test_few_prefixes_hold_all_that_many_advertisements_do() -> None:
    async def story(net: GuardedNet) -> None:
        for n in range(0, 128, 32):
            await net.ask(Op.ADVERTISE, "h0", f"{n} <= a < {n + 5} and b < 128")
        admitted = net.admitted("h0")
        assert admitted is not None and 1 <= len(admitted) <= 2
        assert all(LOWER.covers(each) for each in admitted)

    play(story, GuardSettings(prefixes=2))
