"""A hostile host on a real network: it knows who publishes and sends what it likes, and harms nobody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import pytest
from place import BITS, SCHEMA, Place, play, take, until

from flowsieve.client.event_sockets import interface_index, leave_by
from flowsieve.client.interests import Subscription
from flowsieve.client.loss import ladder
from flowsieve.client.session import Client
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.protocol.event_message import Message, MessageKind, encode

pytestmark = pytest.mark.real

EVENTS = 1_000
LEASE = 1.5  # seconds: the next report to the controller is not far
VALUES = {"price": 7, "side": "buy"}
STAMPS = 2 * len(ladder(BITS))


class HostileHost:
    """On dee, at the switch of the publisher: whatever it sends to the groups of events is forwarded."""

    def __init__(self, there: Place, publisher: Client) -> None:
        self.publisher, self._metrics = publisher.publisher, there.metrics
        (dz,) = RegularPlan.make(SCHEMA, bits=BITS).encode(VALUES)
        self.destination, self.bits = encoding_of("ipv6").destination(dz), dz.length
        with there.lab.inside("dee"):
            self._socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            leave_by(self._socket, interface_index(HOST_INTERFACE), hops=HOP_LIMIT, loop=False)

    def forged(self, kind: MessageKind, seq: int, count: int, destination: bytes | None = None) -> bytes:
        """What looks like a datagram of the publisher."""
        values: Mapping[str, int | str] = VALUES if kind is MessageKind.EVENT else {}
        to = self.destination if destination is None else destination
        stamps, mac = (
            (count, 1) * (STAMPS // 2),
            os.urandom(8) if seq % 2 else b"",
        )  # that of a guess, or none
        return encode(Message(kind, self.publisher, seq, to, self.bits, stamps, values, epoch=1, mac=mac))

    async def send(self, datagrams: Iterable[bytes]) -> None:
        to = (socket.inet_ntop(socket.AF_INET6, self.destination), EVENT_PORT)
        for number, datagram in enumerate(datagrams):
            self._socket.sendto(datagram, to)
            if not number % 20:
                await asyncio.sleep(0.002)  # the switch and the subscriber have their turns

    def reported(self) -> float | None:
        """How many of them the controller has heard of."""
        return self._metrics.registry.get_sample_value("flowsieve_client_forged_total")

    def close(self) -> None:
        self._socket.close()


def attacked(
    path: Path, story: Callable[[HostileHost, Client, Client, Subscription], Awaitable[None]]
) -> None:
    """A story of the hostile host, a publisher on cy and a subscriber on bob."""

    async def whole(there: Place) -> None:
        cy, bob = await there.client("cy"), await there.client("bob")
        subscription = await bob.subscribe("price < 512")
        await cy.advertise()
        await until(lambda: subscription.checked)
        await cy.publish(VALUES)
        await take(subscription, 1)
        with contextlib.closing(HostileHost(there, cy)) as host:
            await story(host, cy, bob, subscription)

    play(path, whole, lease=LEASE)


def heard(client: Client) -> int:
    """How many datagrams a client has looked at."""
    return client.stats.received + client.stats.forged


def test_a_forged_digest_of_absurd_counts_ends_no_session_and_claims_no_loss(tmp_path: Path) -> None:
    async def story(host: HostileHost, cy: Client, bob: Client, subscription: Subscription) -> None:
        await host.send([host.forged(MessageKind.DIGEST, 1, 2**60)] * 3)
        await until(lambda: host.reported() == 3)
        await cy.publish(VALUES)
        assert len(await take(subscription, 1)) == 1
        assert bob.stats.lost == 0

    attacked(tmp_path, story)


def test_forged_numbers_suppress_no_events(tmp_path: Path) -> None:
    async def story(host: HostileHost, cy: Client, bob: Client, subscription: Subscription) -> None:
        before = heard(bob)
        await host.send(host.forged(MessageKind.EVENT, seq, seq) for seq in range(2, EVENTS + 2))
        await until(lambda: heard(bob) >= before + EVENTS)
        got: list[int] = []
        for _ in range(EVENTS):
            await cy.publish(VALUES, data=b"true")
            await asyncio.sleep(0.0005)
        async with asyncio.timeout(20):
            while len(got) < EVENTS:
                event = await anext(subscription)
                assert event.data == b"true"
                got.append(event.seq)
        assert got == list(range(2, EVENTS + 2))
        assert (bob.stats.lost, bob.stats.duplicates) == (0, 0)

    attacked(tmp_path, story)


def test_ever_new_destinations_of_one_number_take_no_room(tmp_path: Path) -> None:
    async def story(host: HostileHost, cy: Client, bob: Client, subscription: Subscription) -> None:
        before = heard(bob)
        new = (host.forged(MessageKind.EVENT, 1, 1, os.urandom(16)) for _ in range(EVENTS))
        await host.send(new)
        await until(lambda: heard(bob) >= before + EVENTS)
        assert bob.stats.forged == EVENTS
        assert len(bob._inbox._copies) == 1
        await cy.publish(VALUES)
        assert len(await take(subscription, 1)) == 1

    attacked(tmp_path, story)
