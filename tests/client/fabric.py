"""A network in this process under a controller that takes requests, and wires that send and receive over it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from ipaddress import IPv6Address

from flowsieve.client.outbox import EventDatagram
from flowsieve.client.session import Client, connect
from flowsieve.content.schema import Schema
from flowsieve.control.core import LATE_EVENTS
from flowsieve.control.dispatcher import filter_lease_of
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Settings
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.punt import Punt, host_ports, with_ports
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_labelled import BloomSettings
from flowsieve.header.address import address_text
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.encoding import encoding_of
from flowsieve.header.frame import UdpFrame, build, parse
from flowsieve.header.host_groups import group_mac
from flowsieve.header.match import PrefixMatch
from flowsieve.header.tag import LABEL_HEADERS, Tag
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.key_rotation import KeyRotation
from flowsieve.serving.http.app import HttpServer, taking_calls
from flowsieve.serving.late_publishers import LatePublishers
from flowsieve.serving.metrics.metrics import Metrics
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import PuntedPacket, SwitchEvent
from flowsieve.testing.embedded_fabric import EmbeddedFabric
from flowsieve.testing.indexed_dispatcher import IndexedDispatcher

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
        self.deaf = False  # whether notices are lost
        self.signed, self.rotation = True, 1e6  # whether events are, and how many seconds with the same keys
        self.ledger = Ledger()
        self.metrics = Metrics()
        self.reports: ReportIntake | None = None  # without it, clients report nothing
        self.dispatcher: IndexedDispatcher
        self.behind: LatePublishers
        self.switches: EmbeddedFabric
        self.keys: KeyRotation
        self._ears: dict[str, list[socket.socket]] = {host: [] for host in GROUPS}
        self._sockets: list[socket.socket] = []
        self.notices: dict[str, list[Callable[[bytes], None]]] = {host: [] for host in GROUPS}

    @asynccontextmanager
    async def server(self, lease: float = 30.0, interface: str | None = None) -> AsyncIterator[HttpServer]:
        """A controller that takes calls; it remembers as long as this object."""
        self.switches = switches = EmbeddedFabric(self.network, self._heard, self._deliver)
        self.dispatcher = dispatcher = IndexedDispatcher(
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
                reports=self.reports,
            )
            self.behind = LatePublishers.of(
                dispatcher,
                lambda: GROUPS,
                lambda topology: {},
                switches.send_packet,
                switches.inject_packet,
            )
            telling = asyncio.create_task(self.behind.notices.run())
            try:
                async with taking_calls(handler, dispatcher, [self.control]) as server:
                    yield server
            finally:
                telling.cancel()
                await asyncio.gather(telling, self.behind.late.close(), return_exceptions=True)

    def _heard(self, event: SwitchEvent) -> None:
        if not (isinstance(event, PuntedPacket) and self.behind.late.heard(event)):
            self.dispatcher.heard(event)

    def _deliver(self, host: str, packet: bytes) -> None:
        """A packet that the controller has sent comes to a host: a notice, or an event that it sends again."""
        frame = parse(packet)
        if frame.destination_port == EVENT_PORT:
            self.say(host, frame.payload)
        elif not self.deaf:
            for hear in self.notices[host]:
                hear(frame.payload)

    def go_over(self, tag: Tag, plan: IndexPlan) -> None:
        """Have another index: under its tag all that anybody publishes goes to everybody."""
        for switch in NETWORK.switches:
            ports = range(1, len(NETWORK.neighbours(switch)) + 1)
            flow = Flow(PrefixMatch(tag.group), 1000, tuple(Output(port) for port in ports))
            if flow not in self.network.read(switch):
                self.network.apply(switch, [FlowOp(OpKind.INSTALL, flow)])
        self.network.settle()
        self.dispatcher.served = ServedIndex(self.dispatcher.index.version + 1, tag, plan)

    async def fence(self) -> None:
        """Have events under the first tag handed to the controller."""
        self.dispatcher.fenced = (ServedIndex(0, self.encoding.tag, self.state.plan),)
        late = Punt.within(self.encoding.tag.group, EVENT_PORT, rate=LATE_EVENTS)
        for switch in NETWORK.switches:
            await self.switches.punt(switch, with_ports([late], host_ports(NETWORK, switch)))

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
        if datagram.destination and not self._hand_over(host, datagram):
            to = address_text(6, int.from_bytes(datagram.destination))
            self.network.send(host, to, source=int.from_bytes(datagram.source))
        self.network.settle()
        for delivery in self.network.deliveries[seen:]:
            if not self.loses(delivery.host, datagram.payload):
                for _ in range(self.copies):
                    self.say(delivery.host, datagram.payload)
        if datagram.near:
            self.say(host, datagram.payload)

    def _hand_over(self, host: str, datagram: EventDatagram) -> bool:
        """Whether the first switch hands a packet to the controller."""
        end = NETWORK.endpoint(host)
        source = IPv6Address(end.address).packed
        ends = b"\2" + bytes(5), group_mac(datagram.destination), source, datagram.destination
        packet = build(UdpFrame(*ends, 999, EVENT_PORT, datagram.payload))
        late = any(punt.takes(packet, end.port) for punt in self.switches.hand_overs[end.switch].punts)
        if late:
            self.switches.receive(host, packet)
        return late

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
