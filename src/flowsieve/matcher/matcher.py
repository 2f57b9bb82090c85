"""The matcher of a host: it holds others' filters under a lease, and tells the host's publishers for whom events are.

One process serves all applications of a host, so that these need neither filters nor what matches them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from flowsieve.client.control_session import ControlConnection
from flowsieve.client.matcher_socket import LARGEST, LabelAnswer, pack_answer, read_question, trusted
from flowsieve.content.event import check_event
from flowsieve.errors import BadMessage, BadValue, Busy, ControlLost, FlowsieveError
from flowsieve.matcher.filter_store import FilterStore
from flowsieve.protocol.call import FILTERS, HELLO
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.filter_page import FilterPage
from flowsieve.protocol.welcome import Welcome
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

ASK_SECONDS = 10.0  # that the controller may wait for something new
PAUSE_SECONDS = 0.2  # before it is asked again after it did not answer


class HostMatcher:
    """`run` learns and answers until it is cancelled, or nobody has been there for `idle` seconds."""

    def __init__(self, connection: ControlConnection, welcome: Welcome, door: socket.socket) -> None:
        self.store = FilterStore(welcome.schema)
        self.until = 0.0  # when what is held may not be used any more
        self._connection, self._schema, self._door = connection, welcome.schema, door
        self._renewed = asyncio.Event()
        self._guests = 0
        self._left_at = time.monotonic()
        connection.stage = welcome.keys.stage if welcome.keys is not None else 0
        connection.rekey = self._rekeyed

    async def run(self, idle: float | None = None) -> None:
        async with Tasks() as tasks:
            learning = tasks.start(self.learn())
            tasks.start(self._let_in(tasks))
            while idle is None or self._guests or time.monotonic() < self._left_at + idle:
                await asyncio.wait([learning], timeout=1.0 if idle is None else min(1.0, idle / 4))
                if learning.done():
                    return

    async def learn(self) -> None:
        """Ask for what is new, again and again; returns when the controller has none for this matcher any more."""
        trouble = ""
        while True:
            asked_at = time.monotonic()
            try:
                told = await self._connection.ask(FILTERS, ASK_SECONDS, held=self.store.held)
                page = FilterPage.parse(told)
                self.store.take(page)
            except BadMessage as error:  # begin anew
                log.warning("%s", error)
                self.store.held = None
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except (ControlLost, Busy) as error:
                if str(error) != trouble:
                    trouble = str(error)
                    log.warning("no filters from the controller: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except FlowsieveError as error:
                log.error("no filters from the controller any more: %s", error)
                return
            if trouble:
                log.info("the controller tells filters again")
                trouble = ""
            if page.lease:
                self.until = asked_at + page.lease
                self._renewed.set()

    def _rekeyed(self, told: Mapping[str, Any], before: int | None) -> None:
        """Events are signed by their publishers; the controller wants to hear that we know of their keys."""
        self._connection.stage = EventKeys.parse(told).stage

    # Applications.

    async def _let_in(self, tasks: Tasks) -> None:
        loop = asyncio.get_running_loop()
        while True:
            guest, _ = await loop.sock_accept(self._door)
            if trusted(guest):
                tasks.start(self._serve(guest))
            else:
                guest.close()

    async def _serve(self, guest: socket.socket) -> None:
        """Answer one application until it leaves, or says what nobody understands."""
        loop = asyncio.get_running_loop()
        self._guests += 1
        try:
            while packet := await loop.sock_recv(guest, LARGEST):
                events = [check_event(self._schema, each) for each in read_question(packet)]
                await loop.sock_sendall(guest, pack_answer(await self._matched(events)))
        except (BadMessage, BadValue) as error:
            log.warning("an application of this host: %s", error)
        except OSError:
            pass  # it is gone
        finally:
            guest.close()
            self._guests -= 1
            self._left_at = time.monotonic()

    async def _matched(self, events: Sequence[Mapping[str, object]]) -> LabelAnswer:
        while time.monotonic() >= self.until:
            self._renewed.clear()
            await self._renewed.wait()
        store = self.store
        assert store.version is not None, "a lease comes with filters"
        return LabelAnswer(store.version, self.until, store.set_bits, tuple(map(store.match, events)))


async def greeted(connection: ControlConnection) -> Welcome:
    """What the controller says to a matcher."""
    return Welcome.parse(await connection.ask(HELLO))
