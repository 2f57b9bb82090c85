"""A network in this process under a controller that takes requests, and wires that send and receive over it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from flowsieve.client.outbox import EventDatagram
from flowsieve.client.session import Client, connect
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher, filter_lease_of
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_labelled import BloomSettings
from flowsieve.header.address import address_text
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.encoding import encoding_of
from flowsieve.header.tag import LABEL_HEADERS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import KeyRotation
from flowsieve.serving.http.app import HttpServer, taking_calls
from flowsieve.serving.metrics.metrics import Metrics
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse(
    {"price": {"type": "int", "min": 0, "max": 1023}, "side": {"type": "enum", "values": ["buy", "sell"]}}
)
NETWORK = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1", "bob": "s2", "cy": "s3"})
SECRET = EventSecret(b"a secret that outlives controllers")
GROUPS = {host: f"ff02::f10e:0:{n}" for n, host in enumerate(NETWORK.hosts, 1)}


class Fabric:
    """Embedded switches; `loses` says of a datagram on its way to a host whether it is lost."""

    def __init__(
        self,
        control: str,
        plan: IndexPlan | None = None,
        *,
        header: str = "ipv6",
        filters: int = 16,
        label_hosts: HostPatterns | None = None,
    ) -> None:
        self.control = control
        self.encoding = encoding_of(header)
        alone = header in LABEL_HEADERS
        plan = plan or RegularPlan.make(SCHEMA, bits=0 if alone else 7)
        bloom = BloomSettings(BloomLabels.tuned(16), Shares(filters)) if header == "bloom" else None
        labelled = alone or label_hosts is not None
        chosen = Settings(labelled=labelled, label_hosts=label_hosts, bloom=bloom)
        self.state = ControlState(NETWORK, plan, settings=chosen)
        self.network = EmbeddedNetwork(NETWORK)
        self.loses: Callable[[str, bytes], bool] = lambda host, payload: False
        self.copies = 1
        self.signed, self.rotation = True, 1e6  # whether events are, and how many seconds with the same keys
        self.ledger = Ledger()
        self.metrics = Metrics()
        self.dispatcher: Dispatcher
        self.switches: EmbeddedFabric
        self.keys: KeyRotation
        self._ears: dict[str, list[socket.socket]] = {host: [] for host in GROUPS}
        self._sockets: list[socket.socket] = []
        self.notices: dict[str, list[Callable[[bytes], None]]] = {host: [] for host in GROUPS}

    @asynccontextmanager
    async def server(self, lease: float = 30.0, interface: str | None = None) -> AsyncIterator[HttpServer]:
        """A controller that takes calls; it remembers as long as this object."""
        self.switches = switches = EmbeddedFabric(self.network, lambda event: dispatcher.heard(event))
        self.dispatcher = dispatcher = Dispatcher(
            self.state,
            switches,
            self.encoding,
            drain=0,
            ledger=self.ledger,
            filter_lease=filter_lease_of(lease),
        )
        async with dispatcher:
            for switch in NETWORK.switches:
                switches.connect(switch)
            await dispatcher.settled()
            self.ledger.promise(lease)
            self.keys = keys = KeyRotation(SECRET, self.ledger, dispatcher.scribe, self.rotation)
            handler = CallHandler(
                dispatcher,
                GROUPS,
                interface,
                keys=keys if self.signed else None,
                lease=lease,
                observer=self.metrics,
            )
            async with taking_calls(handler, dispatcher, [self.control]) as server:
                yield server

    async def subscribed(self) -> None:
        """Wait until somebody has subscribed, and the switches have followed."""
        await until(lambda: bool(self.state.subscriptions))
        await self.dispatcher.settled()

    def connect(self, host: str) -> AbstractAsyncContextManager[Client]:
        """A client on a host of this network."""
        return connect(self.control, host, wire=self.wire)

    def wire(self, own: str, interface: str | None) -> FabricWire:
        return FabricWire(self, _host(own))

    def ear(self, host: str) -> socket.socket:
        """Where an application of a host hears what comes there."""
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        near.setblocking(False)
        self._sockets += near, far
        self._ears[host].append(far)
        return near

    def carry(self, host: str, datagram: EventDatagram) -> None:
        seen = len(self.network.deliveries)
        if datagram.destination:
            to = address_text(6, int.from_bytes(datagram.destination))
            self.network.send(host, to, source=int.from_bytes(datagram.source))
        self.network.settle()
        for delivery in self.network.deliveries[seen:]:
            if not self.loses(delivery.host, datagram.payload):
                for _ in range(self.copies):
                    self.say(delivery.host, datagram.payload)
        if datagram.near:
            self.say(host, datagram.payload)

    def say(self, host: str, payload: bytes) -> None:
        """Have all applications of a host hear something."""
        for ear in self._ears[host]:
            with contextlib.suppress(OSError):  # of an application that has left
                ear.send(payload)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


class FabricWire:
    """What carries a client's events over the network of this process."""

    dropped = 0

    def __init__(self, fabric: Fabric, host: str) -> None:
        self._fabric, self._host = fabric, host
        self._ear: socket.socket | None = None

    def send(self, datagrams: Iterable[EventDatagram]) -> None:
        for datagram in datagrams:
            self._fabric.carry(self._host, datagram)

    def listen(self, ready: Callable[[], object]) -> None:
        self._ear = self._fabric.ear(self._host)
        asyncio.get_running_loop().add_reader(self._ear, ready)

    def waiting(self) -> Iterator[bytes]:
        assert self._ear is not None
        for _ in range(64):
            try:
                yield self._ear.recv(0xFFFF)
            except BlockingIOError:
                return

    def hear_notices(self, hear: Callable[[bytes], None]) -> None:
        self._fabric.notices[self._host].append(hear)

    def close(self) -> None:
        if self._ear is not None:
            asyncio.get_running_loop().remove_reader(self._ear)
            self._ear.close()


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something that is going to happen."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def _host(group: str) -> str:
    return next(host for host, own in GROUPS.items() if own == group)
