"""The same interests under other settings: made anew in a thread, while requests go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import MakeState, recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.flow.interest import Interest

TRIES = 3  # before it is done while everybody waits


async def remade(current: Callable[[], ControlState], ledger: Ledger, make: MakeState) -> ControlState:
    """A state with all that the current one has at the moment when this returns, as another `make` would have it.

    What was asked for while the thread was at work is caught up with. Where the network itself has changed meanwhile,
    it is done once more.
    """
    for attempt in range(TRIES + 1):
        state = current()
        network, past = network_of(state), Past(snapshot(state, ledger))
        if attempt == TRIES:
            new, _ = recover(past, make)
            return new
        new, _ = await asyncio.to_thread(recover, past, make)
        if current() is state and network_of(state) == network:
            catch_up(new, state)
            return new
    raise AssertionError("the last attempt returns")


def catch_up(new: ControlState, state: ControlState) -> None:
    """Ask a state for what another has been asked for and it has not; where there is no room, it goes without."""
    ends: list[Request] = []
    adds: list[Request] = []
    for add in (Op.ADVERTISE, Op.SUBSCRIBE):
        side, end = add.side, add.reverse
        there, wanted = new.interests(side), state.interests(side)
        ends += [
            Request(end, each.id, each.endpoint)
            for each in there.values()
            if not _same(each, wanted.get(each.id))
        ]
        adds += [
            Request(add, each.id, each.endpoint, each.filter, None if each.filter else each.dz)
            for each in wanted.values()
            if not _same(each, there.get(each.id))
        ]
    if ends or adds:
        new.step(ends + adds)


def _same(one: Interest, other: Interest | None) -> bool:
    return other is not None and (one.endpoint, one.told) == (other.endpoint, other.told)


def network_of(state: ControlState) -> tuple[object, ...]:
    """All that a state is about beside interests."""
    return state.topology, state.trees, state.down, state.fenced, dict(state.bounds)
