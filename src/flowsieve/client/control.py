"""The connection to the controller: a request a line, an answer a line, both JSON; answers come in any order."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from flowsieve.errors import BadInput, BadMessage, ControlLost, FlowsieveError, Refused, SwitchError
from flowsieve.southbound.openflow.address import Address

DIAL_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # a controller waits for its switches, too
LONGEST_ANSWER = 1 << 24  # bytes; a schema or a DZ may be long
BYE_SECONDS = 5.0

# What the kinds of errors of a controller are here.
ERRORS: dict[str, type[FlowsieveError]] = {"bad": BadInput, "refused": Refused, "failed": SwitchError}


class ControlConnection:
    """A connection that is up until `lost` says why it is not."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self.lost: asyncio.Future[ControlLost] = asyncio.get_running_loop().create_future()
        self._writer = writer
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._listening = asyncio.create_task(self._listen(reader))

    @classmethod
    async def dial(cls, text: str) -> ControlConnection:
        """Connect to the controller at `unix:PATH` or `tcp:HOST:PORT`."""
        address = Address.parse(text)
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                if address.path is not None:
                    streams = await asyncio.open_unix_connection(address.path, limit=LONGEST_ANSWER)
                else:
                    streams = await asyncio.open_connection(address.host, address.port, limit=LONGEST_ANSWER)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or "it does not answer"
            raise ControlLost(
                f"no controller at {address}: {why}; start one with `flowsieve controller`"
            ) from None
        return cls(address, *streams)

    async def ask(self, op: str, **fields: object) -> Mapping[str, Any]:
        """Make a request; returns its answer, or raises what the controller says is wrong."""
        if self.lost.done():
            raise self.lost.result()
        number = next(self._numbers)
        answer: asyncio.Future[Mapping[str, Any]]
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps({"n": number, "op": op, **fields}).encode() + b"\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            raise ControlLost(
                f"the controller at {self.address} did not answer within {ANSWER_SECONDS:.0f} s"
            ) from None
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Leave in good order: the controller ends what we asked for, if it still can."""
        with contextlib.suppress(FlowsieveError, TimeoutError):
            async with asyncio.timeout(BYE_SECONDS):
                await self.ask("bye")
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        self._end("it was closed")
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        reason = "it was closed at the other end"
        try:
            while line := await reader.readline():
                self._hear(line)
        except OSError as error:
            reason = error.strerror or str(error)
        except (ValueError, BadMessage) as error:  # a line that is too long is a ValueError
            reason = str(error)
        self._end(reason)

    def _hear(self, line: bytes) -> None:
        try:
            answer = json.loads(line)
            number, outcome = int(answer["n"]), answer.get("ok")
            error = None if outcome is not None else (answer["error"]["kind"], answer["error"]["text"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadMessage(f"it answered what is no answer: {line[:60]!r}") from None
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return
        if error is None:
            waiting.set_result(outcome)
        else:
            waiting.set_exception(ERRORS.get(error[0], FlowsieveError)(error[1]))

    def _end(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(
                ControlLost(f"the connection to the controller at {self.address} ended: {reason}")
            )
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self.lost.result())
