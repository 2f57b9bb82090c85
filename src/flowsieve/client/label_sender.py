"""How events leave where packets say for whom they are: the host's matcher tells that of each, and until when.

Events wait in a row, are asked for some at a time, and leave in their order. An event leaves only while what it was
matched with holds: that is looked at right before it is sent, and once more after it, since a process can be stopped
in between. Such an event carries the version that it was matched with, and is counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from flowsieve.client.label_addresses import NOWHERE, PacketAddress, addresser_of
from flowsieve.client.matcher_link import MatcherLink
from flowsieve.client.matcher_socket import MOST_EVENTS, LabelAnswer, LabelMatch
from flowsieve.client.outbox import EventDatagram, checked_event
from flowsieve.client.receiver_counts import NOBODY, ReceiverCounts
from flowsieve.client.wire import EventWire
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import Busy, ControlLost, FlowsieveError, HostError
from flowsieve.header.encoding import Encoding
from flowsieve.header.tag import Tag
from flowsieve.index.plan import IndexPlan
from flowsieve.protocol.event_mac import Signer
from flowsieve.protocol.event_message import (
    DIGEST_ITEMS,
    EVENT_ITEMS,
    LONG_ITEMS,
    MessageKind,
    pack,
    pack_content,
    pack_covered,
    start_covered,
)

log = logging.getLogger(__name__)

MOST_WAITING = 1 << 14  # events
LEAVE_SECONDS = 30.0  # that an event waits to be matched
AGAIN_SECONDS = 0.01  # before what was matched too long ago is matched again
NEXT_SECONDS = 1.0  # before a matcher is looked for again
FLUSH_SECONDS = 5.0  # that all of them have when an application leaves


@dataclass(slots=True, eq=False)
class _Waiting:
    """An event that is to leave: its values, what it adds to a datagram, and who waits for it."""

    seq: int
    values: Mapping[str, object]
    content: bytes
    items: int
    left: asyncio.Future[None] | None = None


class LabelSender:
    """A Sender that asks the host's matcher, and goes on when there is one again."""

    def __init__(
        self,
        schema: Schema,
        tag: Tag,
        publisher: bytes,
        wire: EventWire,
        link: MatcherLink,
    ) -> None:
        self.advertised: dict[str, Filter] = {}
        self.signer: Signer | None = None
        self.sent = self.late = self.unsent = 0
        self._schema, self._wire, self._link = schema, wire, link
        self._event_start = start_covered(MessageKind.EVENT, publisher)
        self._digest_start = start_covered(MessageKind.DIGEST, publisher)
        self._counts = ReceiverCounts()
        self._last_sent = 0
        self._addresser = addresser_of(tag)
        self._row: deque[_Waiting] = deque()
        self._stirred = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._trouble = ""  # why there is no matcher

    async def ready(self) -> None:
        await self._link.open()
        if self._running is None:
            self._running = asyncio.create_task(self._run())

    def put(self, values: Mapping[str, object], data: bytes) -> int:
        checked, given = checked_event(self._schema, values, data, self.advertised)
        content = pack_content(checked, given)
        if len(self._row) >= MOST_WAITING:
            raise Busy(
                f"{MOST_WAITING:,} events wait to be matched; publish more slowly, or await each with publish"
            )
        self.sent += 1
        items = LONG_ITEMS if given else EVENT_ITEMS
        self._row.append(_Waiting(self.sent, checked, content, items))
        self._stirred.set()
        return self.sent

    async def left(self, seq: int) -> None:
        waiting = next((each for each in reversed(self._row) if each.seq == seq), None)
        if waiting is None:
            return  # it has
        try:
            await self._out(waiting, LEAVE_SECONDS)
        finally:
            if waiting in self._row:
                self._row.remove(waiting)
                self.unsent += 1

    async def _out(self, waiting: _Waiting, within: float) -> None:
        """Wait until an event has left, for so many seconds."""
        if waiting.left is None:
            waiting.left = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within):
                await asyncio.shield(waiting.left)
        except TimeoutError:
            why = self._trouble or "since the controller has not told it of late"
            raise ControlLost(
                f"an event did not leave within {within:g} s: this host does not know who wants it, {why}"
            ) from None

    async def flush(self) -> None:
        if self._row and self._running is not None and not self._running.done():
            with suppress(FlowsieveError):
                await self._out(self._row[-1], FLUSH_SECONDS)

    def digests(self, last: bool) -> None:
        with suppress(HostError):  # the next event that is published raises it
            for receivers, count in self._counts.digests():
                self._tell(receivers, count)

    def go_over(self, plan: IndexPlan, encoding: Encoding) -> None:
        pass  # what says for whom it is does not say what is in it

    async def close(self) -> None:
        await self.flush()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if self._row:
            log.warning("%d events never left: nobody could say who wants them", len(self._row))
            self.unsent += len(self._row)
            self._row.clear()
        self._link.close()

    async def _run(self) -> None:
        while True:
            while not self._row:
                self._stirred.clear()
                await self._stirred.wait()
            some = [self._row[at] for at in range(min(len(self._row), MOST_EVENTS))]
            matched = await self._matched(some)
            for each, wanted in zip(some, matched.matched, strict=False):
                if each not in self._row:
                    continue  # nobody waits for it any more
                if time.monotonic() >= matched.until:
                    await asyncio.sleep(AGAIN_SECONDS)
                    break  # the rest is matched again
                self._row.popleft()
                self._leave(each, wanted, matched)

    async def _matched(self, some: Sequence[_Waiting]) -> LabelAnswer:
        """For whom the first of some events are; they wait while there is no matcher."""
        while True:
            try:
                matched = await self._link.ask([each.values for each in some])
            except FlowsieveError as error:
                if str(error) != self._trouble:
                    self._trouble = str(error)
                    log.warning("events wait: %s", error)
                self._link.close()
                await asyncio.sleep(NEXT_SECONDS)
            else:
                self._trouble = ""
                return matched

    def _leave(self, event: _Waiting, wanted: LabelMatch, matched: LabelAnswer) -> None:
        """Send an event; where this host cannot, who waits for it hears so, and the next one is tried."""
        waits = event.left if event.left is not None and not event.left.done() else None
        try:
            self._send(event, wanted, matched)
        except HostError as error:
            self.unsent += 1
            if waits is None:
                log.warning("event %d never left: %s", event.seq, error)
            else:
                waits.set_exception(error)
        else:
            if waits is not None:
                waits.set_result(None)

    def _send(self, event: _Waiting, wanted: LabelMatch, matched: LabelAnswer) -> None:
        self._wire.send(
            EventDatagram(
                to.destination, self._packed(event, (matched.version, *told), to), not at, to.source
            )
            for at, (to, told) in enumerate(self._addresser.of_event(wanted, matched.set_bits) or [NOWHERE])
        )
        if time.monotonic() >= matched.until:
            self.late += 1
        self._last_sent = event.seq
        if wanted.receivers:
            new = self._counts.sent(wanted.receivers)
            if new:
                self._tell(new, 1)

    def _packed(self, event: _Waiting, stamps: Sequence[int], to: PacketAddress) -> bytes:
        covered = pack_covered(self._event_start, event.seq, stamps) + event.content
        return self._signed(event.items, to, covered)

    def _tell(self, receivers: int, count: int) -> None:
        """Tell receivers how many events they were sent."""
        for to, named in self._addresser.of_digest(receivers):
            covered = pack_covered(self._digest_start, self._last_sent, (count, *named))
            payload = self._signed(DIGEST_ITEMS, to, covered)
            self._wire.send([EventDatagram(to.destination, payload, near=False, source=to.source)])

    def _signed(self, items: int, to: PacketAddress, covered: bytes) -> bytes:
        shown, signer = to.destination or NOBODY, self.signer
        if signer is None:
            return pack(items, shown, 0, 0, b"", covered)
        return pack(items, shown, 0, signer.epoch, signer.mac(covered), covered)
