"""Several ways to one control plane: controllers of which one leads, and another does when that one dies.

A call is the same wherever it is made, and is carried out once. So where one controller is silent, the next is asked
the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowsieve.errors import ControlLost
from flowsieve.protocol.answer import BUSY, Answer, kind_in

SILENCE_SECONDS = 1.5  # of one controller, until the next is asked as well


class CallWay(Protocol):
    """What carries calls to one controller."""

    @property
    def room(self) -> int: ...

    async def call(self, message: Mapping[str, Any]) -> Answer: ...

    async def close(self) -> None: ...


class SeveralWays:
    """The way that had an answer last is the first that is tried."""

    def __init__(self, ways: Sequence[CallWay]) -> None:
        self._ways = list(ways)

    @property
    def room(self) -> int:
        """What fits each of them."""
        return min(way.room for way in self._ways)

    async def call(self, message: Mapping[str, Any]) -> Answer:
        """The first answer that is not that a controller is busy; raises ControlLost where none came."""
        left = list(self._ways)
        asked: dict[asyncio.Task[Answer], CallWay] = {}
        busy: Answer | None = None
        trouble = ControlLost("no controller answers")
        try:
            while left or asked:
                if left:
                    way = left.pop(0)
                    asked[asyncio.create_task(way.call(message))] = way
                wait = SILENCE_SECONDS if left else None
                done, _ = await asyncio.wait(asked, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    way = asked.pop(task)
                    try:
                        answer = task.result()
                    except ControlLost as error:
                        trouble = error
                        continue
                    if kind_in(answer) == BUSY:
                        busy = answer
                        continue
                    self._ways.remove(way)
                    self._ways.insert(0, way)
                    return answer
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        if busy is not None:
            return busy
        raise trouble

    async def close(self) -> None:
        for way in self._ways:
            await way.close()
