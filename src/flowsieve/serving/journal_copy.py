"""What one controller remembers, for another to go on with: from a folder to an etcd, or back, or elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.serving.memory import Memory, Remembered

WAIT_SECONDS = 5.0  # until nobody else uses a memory


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: whether there was a snapshot, and how many entries came after it."""

    snapshot: bool
    entries: int


async def copy_journal(source: Memory, target: Memory, base: str, schema: Schema) -> Copied:
    """Copy all that a controller remembers to where nothing is remembered yet; neither may be in use.

    Hosts' tokens and the claim to the switches go with it. Where it is interrupted, the target does not hold it.
    """
    async with _held(source) as _, _held(target) as _:
        known = await target.look(base, schema)
        if known.snapshot is not None or known.entries:
            raise BadInput(
                "where it is to be copied to, something is remembered already; nothing was changed"
            )
        await target.become(await source.identity())
        async with _opened(source, base) as old, _opened(target, base) as new:
            past = await old.journal.load(schema)
            if past.snapshot is not None:
                await new.journal.compact(past.snapshot, new.journal.number)
            await new.journal.append(past.entries)
            return Copied(past.snapshot is not None, len(past.entries))


@asynccontextmanager
async def _held(memory: Memory) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await memory.win()
    except TimeoutError:
        await memory.leave()
        raise BadInput("a controller leads there; stop all that share it first") from None
    try:
        yield
    finally:
        await memory.leave()


@asynccontextmanager
async def _opened(memory: Memory, base: str) -> AsyncIterator[Remembered]:
    remembered = await memory.open(base, lambda entries, seconds: None, False)
    try:
        yield remembered
    finally:
        await remembered.journal.close()
