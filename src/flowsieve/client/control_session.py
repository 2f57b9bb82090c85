"""A client's session with the controller, over whatever carries its calls.

A call has a number and is made again until it is answered: the controller carries it out once. The session is
renewed now and then, so that what was asked for stays in force; neither lost packets nor a restart of the controller
end it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import count
from typing import Any, Protocol

import msgpack

from flowsieve.client.http_transport import HttpTransport
from flowsieve.client.several_ways import SeveralWays
from flowsieve.client.wire import Inside
from flowsieve.errors import BadInput, Busy, ControlLost, FlowsieveError
from flowsieve.protocol.answer import Answer, outcome
from flowsieve.protocol.call import DEADLINE_SECONDS, REPORT, Call
from flowsieve.protocol.limits import MAX_NUMBER

MARGIN_SECONDS = 2.0  # beyond the deadline, for the answer's way
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # before a call is made again; the last one stays
RENEWALS = 3  # within a lease
BYE_SECONDS = 3.0
SPARE_BYTES = 96  # of a call, for what is said of keys and the like


class Transport(Protocol):
    """What carries calls: HTTP, or the network itself."""

    @property
    def room(self) -> int:
        """How many bytes a report's call may have, as MessagePack."""
        ...

    async def call(self, message: Mapping[str, Any]) -> Answer:
        """The answer to a call, given as its JSON object; raises ControlLost where none came."""
        ...

    async def close(self) -> None: ...


def transport_to(address: str, inside: Inside = nullcontext) -> Transport:
    """The way to a controller: `http://HOST:PORT`, `unix:PATH`, or `inband`, perhaps by an interface: `inband:eth0`.

    Several of them, with commas between, lead to controllers that share a network, of which one leads.
    """
    if "," in address:
        return SeveralWays([transport_to(each.strip(), inside) for each in address.split(",")])
    if address.startswith(("http://", "https://", "unix:")):
        return HttpTransport(address)
    kind, _, interface = address.partition(":")
    if kind == "inband":
        from flowsieve.client.inband_transport import InbandTransport

        return InbandTransport.open(interface or None, inside=inside)
    raise BadInput(
        f"{address!r} is no address of a controller; right is http://HOST:PORT, unix:PATH or inband"
    )


class ControlConnection:
    """A session; the future `lost` gets the reason when it ends."""

    def __init__(self, transport: Transport, host: str, token: str = "") -> None:
        self.lost: asyncio.Future[FlowsieveError] = asyncio.get_running_loop().create_future()
        self.report: Callable[[], Mapping[str, int]] = dict  # what the controller is told with each renewal
        self.held = 0  # interests that the controller is to hold for us
        self.stage: int | None = None  # of the keys for events that we have; None: we need some
        self.checks = False  # whether we need keys to check events with
        # Hears of keys that an answer brings, and of the stage that we were at when we asked.
        self.rekey: Callable[[Mapping[str, Any], int | None], None] = lambda keys, before: None
        self.index: int | None = (
            None  # the version of the index that we address events by; None before we know
        )
        # Hears of another index that an answer brings, and of the one that the call said.
        self.reindex: Callable[[Any, int], None] = lambda told, said: None
        self._hurry = asyncio.Event()  # set where the session is to be renewed at once
        self.asked: Callable[[object], None] = lambda terms: None  # hears what is to be reported, at renewals
        self._transport = transport
        self._session, self._host, self._token = os.urandom(16).hex(), host, token
        self._numbers = count(1)
        self._waiting: set[int] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._met = False  # whether the controller has answered anything

    async def ask(
        self, op: str, deadline: float = DEADLINE_SECONDS, *, margin: float = MARGIN_SECONDS, **fields: Any
    ) -> Mapping[str, Any]:
        """Make a call until it is answered; returns what it comes to, or raises what the controller says is wrong.

        Where no answer came for so long, and for a margin more, it raises what stood in the way last.
        """
        if self.lost.done():
            raise self.lost.result()
        number = next(self._numbers)
        self._waiting.add(number)
        call = Call(self._session, number, self._host, self._token, op, deadline=deadline, **fields)
        message, before = call.to_json(), self.stage
        loop = asyncio.get_running_loop()
        end, pauses = loop.time() + deadline + margin, iter(PAUSES)
        trouble: FlowsieveError = ControlLost("the controller does not answer")
        try:
            while True:
                said = self.index
                message |= {"answered": min(self._waiting), **self._keys_wanted(), **_index_said(said)}
                try:
                    async with asyncio.timeout_at(end):
                        answer = await self._transport.call(message)
                    self._met = True
                    told = outcome(answer)
                    if told.get("keys") is not None:
                        self.rekey(told["keys"], before)
                    if told.get("index") is not None and said is not None:
                        self.reindex(told["index"], said)
                    return told
                except (ControlLost, Busy) as error:
                    trouble = error
                except TimeoutError:
                    raise trouble from None
                pause = next(pauses, PAUSES[-1])
                if loop.time() + pause > end:
                    raise trouble
                await asyncio.sleep(pause)
        finally:
            self._waiting.discard(number)

    @property
    def report_room(self) -> int:
        """How many bytes a report may have: a call has to fit whatever carries it, with all that it says besides."""
        bare = Call(self._session, MAX_NUMBER, self._host, self._token, REPORT, deadline=1.0, report={})
        return self._transport.room - len(msgpack.packb(bare.to_json())) - SPARE_BYTES

    def _keys_wanted(self) -> dict[str, int | bool]:
        """What a call says of keys: those that we have, or that we need some."""
        stage = {} if self.stage is None else {"stage": self.stage}
        return stage | {"checks": True} if self.checks else stage

    def keep(self, lease: float) -> None:
        """Renew the session from now on, so that what is asked for stays in force for longer than a lease."""
        self._renewing = asyncio.create_task(self._renew(lease))
        self._renewing.add_done_callback(self._renewed)

    def hasten(self) -> None:
        """Renew the session at once: there is something to say, or to hear."""
        self._hurry.set()

    async def _pause(self, seconds: float) -> None:
        """Wait until the session is to be renewed: for so long, unless it has to be at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        self._hurry.clear()

    async def close(self) -> None:
        """Leave in good order: the controller ends what we asked for, if it still can."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        if self._met:
            with contextlib.suppress(FlowsieveError, TimeoutError):
                async with asyncio.timeout(BYE_SECONDS):
                    await self.ask("bye", BYE_SECONDS, stats=dict(self.report()))
        self._end(ControlLost("the session was closed"))
        await self._transport.close()

    async def _renew(self, lease: float) -> None:
        pause = lease / RENEWALS
        while True:
            await self._pause(pause)
            held, deadline = self.held, min(lease, DEADLINE_SECONDS)
            try:
                answer = await self.ask("renew", deadline, stats=dict(self.report()))
            except (ControlLost, Busy):
                pause = min(pause, deadline)  # switches go on without their controller, and so does the lease
                continue
            except FlowsieveError as error:
                self._end(error)
                return
            lease = float(answer.get("lease", lease))  # its operator may have changed it
            pause = lease / RENEWALS
            self.asked(answer.get("telemetry"))
            if answer.get("holds", held) < min(held, self.held):
                gone = "the controller has ended what we asked for: it had not heard of us for too long, or forgot"
                self._end(ControlLost(gone))
                return

    def _renewed(self, task: asyncio.Task[None]) -> None:
        """Nothing renews the session any more: where that is a mistake of ours, the application hears of it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            lost = ControlLost(f"the session is renewed no more: {type(error).__name__}: {error}")
            lost.__cause__ = error
            self._end(lost)

    def _end(self, reason: FlowsieveError) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)


def _index_said(version: int | None) -> dict[str, int]:
    return {} if version is None else {"index": version}
