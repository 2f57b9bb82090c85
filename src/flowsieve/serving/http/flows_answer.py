"""The answer to those who ask for tables: made once for all who ask at a time, and handed out at a measured pace."""

from __future__ import annotations

import asyncio
import json
from functools import partial

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.scenario.plain import need_masks, plain_flow, rows_of
from flowsieve.southbound.leisure import Leisure
from flowsieve.southbound.shared_question import SharedQuestion

BYTES_PER_SECOND = 50e6  # of all answers together, after the first
PAUSE = 1.0  # times as long as an answer took to make, before the next is begun


class FlowsAnswer:
    """What switches really hold, as JSON: read after whoever gets it has asked.

    However many ask, and however often: tables are read for all of them together, with a pause in between, and the
    controller's time goes to repair first.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._leisure = Leisure(lambda: not (dispatcher.mended and dispatcher.at_rest))
        self._questions: dict[str | None, SharedQuestion[bytes]] = {}
        self._begin_at = self._send_at = 0.0  # when the next answer may be made, and one may leave

    async def of(self, switch: str | None = None) -> bytes:
        """The answer about one switch, or all."""
        if switch is not None:
            self._dispatcher.state.topology.linked(switch)
        if switch not in self._questions:
            self._questions[switch] = SharedQuestion(partial(self._make, switch))
        body = await self._questions[switch].answered()
        at = self._send_at = max(self._send_at, _now())
        self._send_at += len(body) / BYTES_PER_SECOND
        await asyncio.sleep(at - _now())
        return body

    async def _make(self, switch: str | None) -> bytes:
        await asyncio.sleep(self._begin_at - _now())
        begin = _now()
        tables = await self._dispatcher.tables(None if switch is None else [switch])
        topology, rows = self._dispatcher.state.topology, rows_of(tables)
        masked = need_masks(rows)
        entries = await self._leisure.each(lambda row: _text(plain_flow(topology, *row, masked)), rows)
        self._begin_at = _now() + PAUSE * (_now() - begin)
        return f"[{','.join(entries)}]".encode()


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
