"""Until packets meet a table that was acknowledged: a switch's datapath follows its tables a little later.

Open vSwitch goes over its datapath soon after a change, at most once in 5 ms, and otherwise twice a second. Its
`revalidator/wait` answers when it has done so the next time. Asked after an acknowledgement, it may just have
done so, and the answer takes half a second; so we ask before the change and, while changes are under way, again
after each answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flowsieve.southbound.openflow.address import Address

_WAIT = json.dumps({"id": 0, "method": "revalidator/wait", "params": []}).encode()
LONGEST = 1.0  # seconds; it is over by then, whatever is answered


class Datapath:
    """The datapath behind some switches; without a control socket it gets a fixed time to follow."""

    def __init__(self, control: Address | None, seconds: float) -> None:
        self._control = control
        self._seconds = seconds
        self._watchers = 0
        self._asking: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Around a change and `follow`: have the datapath asked from before the change on."""
        self._watchers += 1
        if self._control is not None and self._asking is None:
            self._asking = asyncio.create_task(self._ask_on(self._control))
        try:
            yield
        finally:
            self._watchers -= 1

    async def follow(self) -> None:
        """Wait until the datapath was gone over once more, or for the fixed time where nobody says so."""
        if self._asking is None:
            await asyncio.sleep(self._seconds)
            return
        try:
            async with asyncio.timeout(LONGEST):
                await self._answered.wait()
        except TimeoutError:
            pass

    async def _ask_on(self, control: Address) -> None:
        try:
            while self._watchers:
                if not await _has_followed(control):
                    await asyncio.sleep(self._seconds)
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
