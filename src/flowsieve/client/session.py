"""An application's session: advertise, publish, subscribe, over the host's network and one control connection.

async with connect("http://127.0.0.1:7420", "h1", "token of h1") as client:
    async with await client.subscribe("price < 50") as cheap:
        async for event in cheap:
            print(event.values)
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from flowsieve.client.control_session import MARGIN_SECONDS, ControlConnection, transport_to
from flowsieve.client.digest_timer import DigestTimer
from flowsieve.client.event_sockets import EventSockets
from flowsieve.client.inbox import Inbox, MatchedEvent
from flowsieve.client.index_use import IndexUse
from flowsieve.client.interests import Advertisement, Subscription
from flowsieve.client.label_sender import LabelSender
from flowsieve.client.matcher_link import MatcherLink
from flowsieve.client.outbox import Outbox
from flowsieve.client.sender import DirectSender, Sender
from flowsieve.client.stats import Stats
from flowsieve.client.telemetry import Reporter, Telemetry, counts_of
from flowsieve.client.wire import Inside, OpenWire
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadMessage, FlowsieveError, HostError
from flowsieve.protocol.call import HELLO
from flowsieve.protocol.event_keys import UNSIGNED, EventKeys
from flowsieve.protocol.event_mac import MacChecker, Signer
from flowsieve.protocol.limits import MAX_NUMBER, PUBLISHER_BYTES
from flowsieve.protocol.notice import decode
from flowsieve.protocol.welcome import Welcome

log = logging.getLogger(__name__)

# What the environment says where nobody else does.
CONTROL, HOST, TOKEN = "FLOWSIEVE_CONTROL", "FLOWSIEVE_HOST", "FLOWSIEVE_TOKEN"
QUEUE = 1 << 16  # events that may wait in a subscription
SETTLE_SECONDS = 0.1  # for what was under way when a subscription was acknowledged
HELLO_SECONDS = 5.0  # for a controller to say hello
SHORTEST_HELLO = 0.01  # seconds, however little time somebody has
NOTICE_SECONDS = 0.25  # between two notices that are listened to
CATCH_UP = 64  # rounds of reading what has come meanwhile


@asynccontextmanager
async def connect(
    control: str | None = None,
    host: str | None = None,
    token: str | None = None,
    *,
    within: float | None = None,
    inside: Inside = nullcontext,
    wire: OpenWire = EventSockets,
) -> AsyncIterator[Client]:
    """A session of an application on a host; it ends all that the application asked for when it ends.

    `control` is the way to the controller: http://HOST:PORT, unix:PATH, or inband, through the network itself; several
    with commas between, where controllers stand in for each other. `host`
    is the name of the host that we are on, and `token` what its operator gave it. By default FLOWSIEVE_CONTROL,
    FLOWSIEVE_HOST and FLOWSIEVE_TOKEN in the environment say so. A controller that does not answer `within` so many
    seconds (7 at most, and by default) is given up. Sockets are made `inside` a context, so that one
    process can be on several hosts: `inside=lambda: lab.inside("h1")`. What opens the `wire` that carries events is
    given the host's own group and the interface; by default it makes UDP sockets.
    """
    control, host = _told(control, CONTROL, "the controller"), _told(host, HOST, "this host's name")
    token = token if token is not None else os.environ.get(TOKEN, "")
    connection = ControlConnection(transport_to(control, inside), host, token)
    try:
        welcome = Welcome.parse(await _greeted(connection, within))
        link = MatcherLink(control, host, token, inside, welcome.network)
        client = Client(connection, welcome, inside, wire, link)
        try:
            connection.keep(welcome.lease)
            yield client
        finally:
            await client._leave()
    finally:
        await connection.close()


async def _greeted(connection: ControlConnection, within: float | None) -> Mapping[str, Any]:
    """What the controller says to a hello; raises why it says nothing."""
    longest = HELLO_SECONDS + MARGIN_SECONDS
    patience = longest if within is None else min(max(within, SHORTEST_HELLO), longest)
    deadline = min(HELLO_SECONDS, patience)
    return await connection.ask(HELLO, deadline, margin=patience - deadline)


class Client:
    """One application: what it publishes has an id of its own, and it gets nothing that it published itself."""

    def __init__(
        self,
        connection: ControlConnection,
        welcome: Welcome,
        inside: Inside,
        wire: OpenWire,
        matcher: MatcherLink,
    ) -> None:
        self.host = welcome.host
        self.publisher = welcome.publisher or os.urandom(PUBLISHER_BYTES)
        self._welcome = welcome
        self._connection = connection
        self._stats = Stats()
        self._inbox = Inbox(
            welcome.schema, welcome.encoding, self.publisher, self._stats, receiver=welcome.receiver
        )
        self._subscriptions: dict[str, Subscription] = {}  # by a name of our own: the controller's comes late
        self._names = count(1)
        self._overflow = 0
        self._listens = False
        self._inside = inside
        with inside():
            self._wire = wire(welcome.address, welcome.interface)
        self._sender = self._made_sender(matcher)
        self._quiet = DigestTimer(self._send_digests)
        self._first_events, self._first_event_us = 0, 0  # of subscriptions, and how long they took in all
        self._telemetry = Telemetry(welcome.schema, self.publisher)
        self._reporter = Reporter(
            self._telemetry, connection, lambda: counts_of(self._stats), self._tell_of_events
        )
        connection.stage = UNSIGNED
        if welcome.keys is not None:
            self._take_keys(welcome.keys)
        connection.report, connection.rekey = self._report, self._rekey
        self._index = IndexUse(welcome)
        connection.index, connection.reindex = self._index.version, self._reindex
        self._noticed_at = -NOTICE_SECONDS
        self._hear_notices()
        connection.asked = self._reporter.hear
        self._reporter.adopt(welcome.telemetry)
        connection.lost.add_done_callback(lambda lost: self._end(lost.result()))

    @property
    def schema(self) -> Schema:
        """What events are made of here."""
        return self._welcome.schema

    @property
    def stats(self) -> Stats:
        """What was sent, received, dropped and lost so far."""
        sender = self._sender
        return replace(
            self._stats,
            overflow=self._overflow + self._wire.dropped,
            late=sender.late,
            unsent=sender.unsent,
            unreported=self._telemetry.dropped,
        )

    # Publishing.

    def _made_sender(self, matcher: MatcherLink) -> Sender:
        welcome = self._welcome
        if welcome.labelled:
            return LabelSender(welcome.schema, welcome.tag, self.publisher, self._wire, matcher)
        return DirectSender(Outbox(welcome.plan, welcome.encoding, self.publisher), self._wire)

    async def advertise(self, filter: str = "True") -> Advertisement:
        """Promise to publish nothing but what a filter matches; returns when the network is ready for it."""
        promise = Filter.parse(filter, self.schema)
        await self._sender.ready()
        answer = await self._connection.ask("adv", filter=filter)
        id = _field(answer, "id")
        self._connection.held += 1
        self._sender.advertised[id] = promise
        return Advertisement(id, promise, partial(self._unadvertise, id))

    async def publish(
        self, event: Mapping[str, object] | None = None, /, *, data: bytes = b"", **values: object
    ) -> int:
        """`publish_nowait`, and wait until the event has left; others have their turn meanwhile."""
        seq = self.publish_nowait({**(event or {}), **values}, data)
        await asyncio.sleep(0)
        await self._sender.left(seq)
        return seq

    def publish_nowait(self, event: Mapping[str, object], data: bytes = b"") -> int:
        """Send an event, if its types, its ranges and the advertisements allow it; returns its sequence number."""
        if self._connection.lost.done():
            raise self._connection.lost.result()
        seq = self._sender.put(event, data)
        self._stats.sent += 1
        if self._telemetry.terms.share:
            self._telemetry.published(seq, event)
        self._quiet.disturb()
        return seq

    def _send_digests(self, last: bool = False) -> None:
        self._sender.digests(last)

    # Subscribing.

    async def subscribe(self, filter: str, *, queue: int = QUEUE) -> Subscription:
        """Get what a filter matches from now on; returns when the network has promised it.

        At most `queue` events wait to be taken; what comes while it is full is dropped and counted as overflow.
        Losses are counted from a moment later on, when nothing older is under way any more.
        """
        if queue < 1:
            raise BadInput(f"a queue of {queue} events holds nothing; right is 1 or more")
        wanted, name = Filter.parse(filter, self.schema), f"subscription {next(self._names)}"
        await self._need_to_check()
        self._listen()
        subscription = Subscription(name, wanted, queue, partial(self._unsubscribe, name))
        self._subscriptions[name] = subscription
        self._inbox.open(name, wanted)
        try:
            answer = await self._connection.ask("sub", filter=filter)
            subscription.id = _field(answer, "id")
            self._index.subscribed(subscription.id, answer)
            subscription.forbidden = tuple(answer.get("forbidden", ()))
        except BaseException:
            self._close(name)
            raise
        if subscription.forbidden:
            log.warning(
                "%s: %s may not send to this host, by the operator's policy",
                filter,
                ", ".join(subscription.forbidden),
            )
        self._connection.held += 1
        asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._confirm, name)
        return subscription

    def _confirm(self, name: str) -> None:
        """Count what is missing from now on: all that comes from now on was sent after the network's promise."""
        subscription = self._subscriptions.get(name)
        dz = None if subscription is None else self._index.owed(subscription.id)
        if subscription is None or dz is None:
            return
        for _ in range(CATCH_UP):
            if not self._take():
                break
        self._inbox.confirm(name, dz)
        subscription.checked = True

    def _listen(self) -> None:
        if not self._listens:
            with self._inside():
                self._wire.listen(self._take)
            self._listens = True

    def _take(self) -> int:
        """Hand on what has come; how many datagrams that was."""
        taken = 0
        try:
            for datagram in self._wire.waiting():
                taken += 1
                self._hand_on(self._inbox.take(datagram))
        except HostError as error:
            self._end(error)
        return taken

    def _report(self) -> dict[str, int]:
        """What the controller is told now and then: counts, and the times to first events.

        Where events are not signed, anybody on the network can have us count more than a call can say.
        """
        first = {"first_events": self._first_events, "first_event_us": self._first_event_us}
        counts = self.stats.to_json() | first
        return {name: max(0, min(count, MAX_NUMBER)) for name, count in counts.items()}

    def _hand_on(self, matched: MatchedEvent | None) -> None:
        if matched is not None:
            for name in matched.subscriptions:
                subscription = self._subscriptions[name]
                if subscription.asked_at is not None:
                    self._first_events += 1
                    self._first_event_us += int(1e6 * (time.monotonic() - subscription.asked_at))
                    subscription.asked_at = None
                if not subscription.put(matched.event):
                    self._overflow += 1
                    self._stats.delivered -= 1

    def _tell_of_events(self, on: bool) -> None:
        self._inbox.came = self._telemetry.came if on else None

    # Keys.

    async def _need_to_check(self) -> None:
        """Have the keys to check events with, before the first of them can come."""
        if self._sender.signer is None or self._inbox.checker is not None:
            return
        self._connection.checks, self._connection.stage = True, None
        await self._connection.ask("renew")
        if self._inbox.checker is None:
            raise BadMessage("the controller's answer has no keys to check events with")

    def _rekey(self, told: Mapping[str, Any], before: int | None) -> None:
        """Go over to the keys of an answer, unless it is older than those that we have."""
        keys, stage = EventKeys.parse(told), self._connection.stage
        newer = stage is None or stage == before or keys.stage > stage
        if newer and (keys.check or not self._connection.checks):
            self._take_keys(keys)

    def _take_keys(self, keys: EventKeys) -> None:
        self._sender.signer = Signer(*keys.sign)
        if keys.check:
            self._inbox.checker = MacChecker(keys.check)
        self._connection.stage = keys.stage

    # The index.

    def _reindex(self, told: object, said: int) -> None:
        """Go over to the index of an answer, and say so; the application notices nothing."""
        index = self._index.take(told, said)
        if index is None:
            return
        self._connection.index = index.version
        self._sender.go_over(index.plan, index.encoding)
        owed = {
            name: dz
            for name, subscription in self._subscriptions.items()
            if subscription.checked and (dz := self._index.owed(subscription.id)) is not None
        }
        self._inbox.go_over(index.encoding, owed)
        self._connection.hasten()

    def _hear_notices(self) -> None:
        """Hear of another index at once, and not with the next renewal, where this host can."""
        try:
            with self._inside():
                self._wire.hear_notices(self._noticed)
        except HostError as error:
            log.info("no notices are heard: %s", error)

    def _noticed(self, datagram: bytes) -> None:
        """Somebody says that there is another index: ask the controller, and not too often."""
        with suppress(BadMessage):
            now = time.monotonic()
            if decode(datagram).version > self._index.version and now >= self._noticed_at + NOTICE_SECONDS:
                self._noticed_at = now
                self._connection.hasten()

    # Endings.

    async def _unadvertise(self, id: str) -> None:
        del self._sender.advertised[id]
        await self._sender.flush()
        self._send_digests(last=True)
        self._connection.held -= 1
        await self._connection.ask("unadv", id=id)

    async def _unsubscribe(self, name: str) -> None:
        if name in self._subscriptions:
            subscription = self._close(name)
            self._index.ended(subscription.id)
            self._connection.held -= 1
            await self._connection.ask("unsub", id=subscription.id)

    def _close(self, name: str) -> Subscription:
        self._inbox.close(name)
        subscription = self._subscriptions.pop(name)
        subscription.end()
        return subscription

    def _end(self, reason: FlowsieveError) -> None:
        for subscription in self._subscriptions.values():
            subscription.end(reason)

    async def _leave(self) -> None:
        """Send and receive no more."""
        await self._sender.close()
        self._quiet.close()
        self._wire.close()
        await self._reporter.close()
        for subscription in self._subscriptions.values():
            subscription.end()
        self._subscriptions.clear()


def _field(answer: Mapping[str, Any], name: str) -> Any:
    if name not in answer:
        raise BadMessage(
            f"the controller's answer has no {name!r}: it is no controller of ours, or of another version"
        )
    return answer[name]


def _told(given: str | None, variable: str, what: str) -> str:
    found = given or os.environ.get(variable)
    if not found:
        raise BadInput(f"{what} is not known: give it, or set {variable}")
    return found
