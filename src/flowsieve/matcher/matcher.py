"""The matcher of a host: it tells the host's publishers for whom their events are.

One process serves all applications of a host, so that these need neither filters nor what matches them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time

from flowsieve.client.matcher_socket import LARGEST, LabelAnswer, pack_answer, read_question, trusted
from flowsieve.content.event import check_event
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage, BadValue
from flowsieve.matcher.filter_learner import FilterLearner
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # at whether anybody is there


class HostMatcher:
    """`run` learns and answers, until nobody has been there for `idle` seconds, or there is nothing to learn."""

    def __init__(self, learner: FilterLearner, schema: Schema, door: socket.socket) -> None:
        self._learner, self._schema, self._door = learner, schema, door
        self._guests = 0
        self._left_at = time.monotonic()

    async def run(self, idle: float | None = None) -> None:
        async with Tasks() as tasks:
            learning = tasks.start(self._learner.learn())
            tasks.start(self._let_in(tasks))
            while idle is None or self._guests or time.monotonic() < self._left_at + idle:
                await asyncio.wait([learning], timeout=LOOK_SECONDS)
                if learning.done():
                    return

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
                await self._learner.valid()
                store = self._learner.store
                assert store.version is not None, "what is valid has a version"
                matched = tuple(map(store.match, events))
                told = LabelAnswer(store.version, self._learner.until, store.set_bits, matched)
                await loop.sock_sendall(guest, pack_answer(told))
        except (BadMessage, BadValue) as error:
            log.warning("an application of this host: %s", error)
        except OSError:
            pass  # it is gone
        finally:
            guest.close()
            self._guests -= 1
            self._left_at = time.monotonic()
