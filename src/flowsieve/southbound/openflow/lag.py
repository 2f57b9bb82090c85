"""Until packets meet a table that was acknowledged: a switch's datapath follows its tables a little later.

Open vSwitch's main thread notes a change in one pass of its loop, and in the next one marks all that the datapath
has cached as out of date. Other threads then go over the cache, at most once in 5 ms. `revalidator/wait` answers
when a round of theirs has ended, but that round may have begun before the mark. So, after an acknowledgement:

1. We ask anything and, when that is answered, connect anew: a new connection is served in a later pass, so all
   that we ask on it comes after the mark.
2. We ask for the end of a round; the next one begins after it, hence after the mark.
3. We ask for the end of that round: with it the datapath has followed.

Where entries were removed, all that is cached is thrown away first. A decision that was cached for a narrow prefix
because of an entry that is gone is else kept beside one for a wider prefix, and when both have to change, Open
vSwitch (3.1 at least) changes the wider one twice: packets then meet the narrow one as it was, for good.

Rounds begin by themselves only twice a second. To have one at once we add an address to a bridge's table of learnt
addresses and take it out again, which nothing of ours looks at. Questions are shared by all who wait.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from flowsieve.errors import SwitchError
from flowsieve.southbound.openflow.address import Address

LONGEST = 5.0  # seconds to wait for an answer
WAKE_UP = 0.002  # seconds of silence before Open vSwitch is woken up
NOBODY = "02:f1:05:5e:00:01"  # an address that no interface has
Request = tuple[str, Sequence[str]]


class Behind(SwitchError):
    """The datapath is there and does not say that it has followed; packets may still meet older tables."""


class Unreachable(Exception):
    """There is nobody to ask whether the datapath has followed."""


class Datapath:
    """The datapath behind some switches; where nobody can be asked, it gets a fixed time to follow."""

    def __init__(self, control: Address | None, seconds: float) -> None:
        self._control = control
        self._seconds = seconds
        self._bridge = ""
        self._passes = Turns(self._ask_for_a_pass)
        self._rounds = Turns(self._ask_for_a_round)
        self._purges = Turns(self._ask_to_purge)

    async def follow(self, removed: bool = False) -> None:
        """Return when packets meet the tables as they were acknowledged up to now; were entries removed?"""
        try:
            await self._passes.wait(1)
            if removed:
                await self._purges.wait(1)
            await self._rounds.wait(2)
        except Unreachable:
            await asyncio.sleep(self._seconds)

    def close(self) -> None:
        """Ask nothing any more."""
        for turns in (self._passes, self._rounds, self._purges):
            turns.close()

    async def _ask_for_a_pass(self) -> None:
        self._bridge = (await self._ask(("ofproto/list", ()))).partition("\n")[0]

    async def _ask_to_purge(self) -> None:
        await self._ask(("revalidator/purge", ()))

    async def _ask_for_a_round(self) -> None:
        await self._ask(
            ("fdb/add", (self._bridge, self._bridge, "0", NOBODY)),
            ("fdb/del", (self._bridge, "0", NOBODY)),
            ("revalidator/wait", ()),
        )

    async def _ask(self, *requests: Request) -> str:
        """Ask all at once, on a new connection; the last answer counts."""
        if self._control is None:
            raise Unreachable
        try:
            async with asyncio.timeout(LONGEST):
                return await _answer(self._control, requests)
        except TimeoutError:
            raise Behind(f"no word from the datapath at {self._control} within {LONGEST:g} s") from None
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            raise Unreachable from None


class Turns:
    """The same question, again and again while somebody waits; an answer is for all who came before it was asked."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._current: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def wait(self, turns: int) -> None:
        """Wait for the answers to so many questions, each asked after the one before was answered."""
        for _ in range(turns):
            if self._next is None:
                self._next = asyncio.create_task(self._begin(self._current))
            turn = self._next
            try:
                await asyncio.shield(turn)
            except asyncio.CancelledError:
                if turn.cancelled():
                    raise Behind("the connections were closed before the datapath has followed") from None
                raise

    def close(self) -> None:
        for turn in (self._current, self._next):
            if turn is not None:
                turn.cancel()

    async def _begin(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        self._current, self._next = self._next, None
        await self._ask()


async def _answer(control: Address, requests: Sequence[Request]) -> str:
    """The last of the answers, to requests that are sent at once on a new connection.

    Open vSwitch may note the end of a round and fall asleep before it says so; being dialled wakes it up.
    """
    reader, writer = await control.dial()
    try:
        messages = [
            json.dumps({"id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(requests)
        ]
        writer.write("".join(messages).encode())
        text = ""
        while (answer := _last(text, len(requests))) is None:
            try:
                async with asyncio.timeout(WAKE_UP):
                    part = await reader.read(1 << 16)
            except TimeoutError:
                _, bell = await control.dial()
                bell.transport.abort()
                continue
            if not part:
                raise EOFError
            text += part.decode()
    finally:
        writer.transport.abort()
    if answer["error"] is not None:
        raise ValueError(answer["error"])
    return str(answer["result"])


def _last(text: str, count: int) -> Any:
    """The last of so many JSON values that stand one after the other, or None if they are not all there yet."""
    decoder, value = json.JSONDecoder(), None
    for _ in range(count):
        try:
            value, end = decoder.raw_decode(text)
        except ValueError:
            return None
        text = text[end:].lstrip()
    return value
