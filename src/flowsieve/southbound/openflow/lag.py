"""Until packets meet a table that was acknowledged: a switch's datapath follows its tables a little later.

Open vSwitch goes over its datapath after a change, at most once in 5 ms, and otherwise twice a second. Its
`revalidator/wait` answers when it has done so the next time. Asked after an acknowledgement, it may just have
done so, and the answer takes half a second. So we ask before the change and, while changes are under way, again
after each answer. The first answer after the acknowledgement may be that of a round which began before the change;
then that of the next round comes within milliseconds, or else not for long. So we wait a moment for another one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flowsieve.southbound.openflow.address import Address

_WAIT = json.dumps({"id": 0, "method": "revalidator/wait", "params": []}).encode()
LONGEST = 1.0  # seconds to wait for the first answer since a change began
ANOTHER = 0.02  # seconds to wait for another one
RETRY = 0.01  # seconds until Open vSwitch is asked again if it gave no answer


class Datapath:
    """The datapath behind some switches; without a control socket it gets a fixed time to follow."""

    def __init__(self, control: Address | None, seconds: float) -> None:
        self._control = control
        self._seconds = seconds
        self._watchers = 0
        self._asking: asyncio.Task[None] | None = None
        self._answers = 0
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Around a change: left when the datapath has followed it."""
        self._watchers += 1
        before = self._answers
        if self._control is not None and self._asking is None:
            self._asking = asyncio.create_task(self._ask_on(self._control))
        try:
            yield
            if self._control is None:
                await asyncio.sleep(self._seconds)
            else:
                await self._next_answer(LONGEST if self._answers == before else ANOTHER)
                await self._next_answer(ANOTHER)
        finally:
            self._watchers -= 1

    async def _next_answer(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._answered.wait()
        except TimeoutError:
            pass

    async def _ask_on(self, control: Address) -> None:
        try:
            while self._watchers:
                if not await _has_followed(control):
                    await asyncio.sleep(max(self._seconds, RETRY))  # the fixed time, then
                self._answers += 1
                self._answered.set()
                self._answered = asyncio.Event()
        finally:
            self._asking = None


async def _has_followed(control: Address) -> bool:
    """Wait for Open vSwitch to say that it has gone over its datapath; False if it cannot be asked."""
    try:
        async with asyncio.timeout(LONGEST):
            reader, writer = await control.dial()
            try:
                writer.write(_WAIT)
                answer = await reader.readuntil(b"}")
            finally:
                writer.transport.abort()
        return json.loads(answer)["error"] is None
    except (OSError, EOFError, ValueError, KeyError, TypeError, asyncio.LimitOverrunError):
        return False
