"""A controller's end of one OpenFlow connection, without input and output.

Bytes that arrived go into `receive`, which gives what happened; bytes to be sent come out of `outgoing`. What a
peer may say in which state stands in one table; anything else is an error that ends the connection.

A batch of operations is one bundle. A switch commits a bundle even if it refused one of its messages, so we ask
for a barrier first, look for errors, and then commit or discard: the batch is done as a whole or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES
from flowsieve.flow.entry_steps import EntrySteps
from flowsieve.flow.punt import Punt
from flowsieve.southbound.openflow import wire
from flowsieve.southbound.openflow.detours import closing, detour_entries_request, groups_request
from flowsieve.southbound.openflow.entries import SwitchEntry, add, delete_strict
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    BatchRefused,
    ConnectionEvent,
    GroupsListed,
    Ready,
    RoleTold,
)
from flowsieve.southbound.openflow.guards import meter_counts_request
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.ports import Port, port_mod, ports_request
from flowsieve.southbound.openflow.punts import Meter, install, meter_mod, meters_request, service_request
from flowsieve.southbound.openflow.roles import MASTER, NO_CHANGE, SLAVE, RoleReply, RoleStatus, role_request
from flowsieve.southbound.openflow.transactions import (
    LISTS,
    BundleTransaction,
    Phase,
    PlainTransaction,
    RoleTransaction,
)
from flowsieve.southbound.openflow.wire import ProtocolError

CHUNK = 250  # operations packed at a time, so that a switch reads the first while we pack the next
MOST_QUEUED = 4096  # messages that may wait for a slow switch, before packets are dropped
_XIDS = 1 << 32
_ENDS = {Phase.COMMITTING: ofp.OFPBCT_COMMIT_REPLY, Phase.DISCARDING: ofp.OFPBCT_DISCARD_REPLY}


class TooFewTables(SwitchError):
    """A switch has fewer tables than entries are to be put into."""

    def __init__(self, there: int, needed: int) -> None:
        super().__init__(
            f"it has {there} tables, and {needed} are needed: labels take one for each port that leads to hosts, from "
            f"number {LABEL_TABLES.start} on; right is another switch, or packets that say what is in them"
        )


class ConnectionState(Enum):
    """Where a connection stands."""

    HELLO = "waiting for the peer's hello"
    FEATURES = "waiting for the switch's features"
    READY = "ready"


class OpenFlowConnection:
    """One connection, from its first byte on; one batch at a time may be under way, beside it any lists and changes."""

    def __init__(self, decrement: bool = True) -> None:
        self.state = ConnectionState.HELLO
        self.packer = Packer(decrement)
        self.tables = LABEL_TABLES.stop  # that the switch has; it tells when it connects
        self._frames = wire.Frames()
        self._out: deque[bytes | Iterator[bytes]] = deque()
        self._xid = 0
        self._batch: BundleTransaction | None = None
        self._changes: dict[int, PlainTransaction] = {}  # by the barrier after them
        self._listings: dict[int, tuple[wire.ListKind, list[Any]]] = {}  # by the request
        self._out.append(wire.hello(self._next()))

    # What we ask.

    def apply(self, ops: Sequence[FlowOp], also: Sequence[SwitchEntry] = ()) -> int:
        """Have a batch carried out, as a whole; the number of the request comes back in its event.

        The entries `also` are made with it. Raises TooFewTables where the switch has no table for some of it.
        """
        last = CONTENT_TABLE if isinstance(ops, EntrySteps) else max((op.flow.table for op in ops), default=0)
        if last >= self.tables:
            raise TooFewTables(self.tables, last + 1)

        def packed(first: int, bundle: int) -> Iterator[bytes]:
            for at in range(0, len(ops), CHUNK):
                yield self.packer.pack(first + at, ops[at : at + CHUNK], bundle)
            for xid, entry in enumerate(also, first + len(ops)):
                yield wire.bundle_add(xid, bundle, add(xid, entry))

        return self._begin(len(ops) + len(also), packed)

    def carry_out(self, messages: Sequence[Callable[[int], bytes]]) -> int:
        """Have messages, each made for its xid, carried out as a batch."""

        def packed(first: int, bundle: int) -> Iterator[bytes]:
            for xid, message in enumerate(messages, first):
                yield wire.bundle_add(xid, bundle, message(xid))

        return self._begin(len(messages), packed)

    def rearrange(self, made: Sequence[SwitchEntry], removed: Sequence[SwitchEntry]) -> int:
        """Have entries made as they are, and then others removed whatever they match, as a batch."""
        return self.carry_out(
            [
                *(partial(add, entry=entry) for entry in made),
                *(partial(delete_strict, entry=entry) for entry in removed),
            ]
        )

    def serve(self, punts: Sequence[tuple[Punt, int]], removed: Sequence[SwitchEntry]) -> int:
        """Have service entries made, each with the number of its meter, and others removed, as a batch."""
        return self.carry_out(
            [
                *(partial(delete_strict, entry=entry) for entry in removed),
                *(partial(install, punt=punt, meter=meter) for punt, meter in punts),
            ]
        )

    def list_entries(self) -> int:
        """Ask for all entries."""
        return self._list(wire.ListKind.ENTRIES, wire.entries_request)

    def list_service(self, cookie: int = wire.SERVICE_COOKIE) -> int:
        """Ask for the service entries with a cookie."""
        return self._list(wire.ListKind.ENTRIES, partial(service_request, cookie=cookie))

    def list_ports(self) -> int:
        """Ask for all ports."""
        return self._list(wire.ListKind.PORTS, ports_request)

    def list_meters(self) -> int:
        """Ask for all meters."""
        return self._list(wire.ListKind.METERS, meters_request)

    def count_meters(self) -> int:
        """Ask what all meters have counted."""
        return self._list(wire.ListKind.METER_COUNTS, meter_counts_request)

    def list_groups(self) -> int:
        """Ask for the groups of links."""
        return self._list(wire.ListKind.GROUPS, groups_request)

    def list_detour_entries(self) -> int:
        """Ask for the entries that lead around dead links."""
        return self._list(wire.ListKind.ENTRIES, detour_entries_request)

    def send_to_groups(self, ports: Collection[int]) -> None:
        """Have entries that are made from now on send to the groups of these ports."""
        if self.packer.grouped != ports:
            self.packer = Packer(self.packer.decrement, ports)

    def fence(self, port: Port, closed: bool, grouped: bool = False) -> int:
        """Have a port fenced, with whatever leads around it if it is sent to by a `grouped` way; or opened."""
        around = closing(port.number, grouped) if closed else []
        return self._make([*around, lambda xid: port_mod(xid, port, closed)])

    def change_meters(self, meters: Sequence[Meter], command: int) -> int:
        """Have meters made, changed or removed."""
        return self._make([partial(meter_mod, meter=meter, command=command) for meter in meters])

    def ask_role(self) -> int:
        """Ask what we are to the switch; that changes nothing."""
        return self._ask_for(NO_CHANGE)

    def claim(self, generation: int) -> int:
        """Ask to be the master, the only one who may change anything; the old one may not any more."""
        return self._ask_for(MASTER, generation)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._out.append(wire.echo_request(self._next()))

    def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port, unacknowledged; none while too much waits for a slow one."""
        if len(self._out) < MOST_QUEUED:
            self._out.append(wire.packet_out(self._next(), port, data))

    def inject_packet(self, port: int, data: bytes) -> None:
        """Have the switch take in a packet as if it had come in on a port, unacknowledged and as seldom as others."""
        if len(self._out) < MOST_QUEUED:
            self._out.append(wire.packet_in_again(self._next(), port, data))

    # Bytes.

    def outgoing(self) -> Iterator[bytes]:
        """What is to be sent by now, in pieces; large batches are packed only as they are taken.

        Whoever takes only some leaves the others to the next who asks.
        """
        while self._out:
            item = self._out[0]
            piece = item if isinstance(item, bytes) else next(item, None)
            if piece is None or piece is item:
                self._out.popleft()
            if piece is not None:
                yield piece

    def receive(self, data: bytes) -> Iterator[ConnectionEvent]:
        """What happens with bytes from the peer; raises ProtocolError on what no switch should send."""
        for frame in self._frames.feed(data):
            message = wire.decode(frame)
            react = REACTIONS.get((self.state, type(message)))
            if react is None:
                what = type(message).__name__
                raise ProtocolError(
                    f"the peer sent {what} (type {frame.type}) while we were {self.state.value}"
                )
            yield from react(self, frame.xid, message)

    # Reactions.

    def _on_hello(self, xid: int, message: wire.Hello) -> Iterable[ConnectionEvent]:
        if wire.VERSION not in message.versions:
            spoken = ", ".join(map(str, sorted(message.versions))) or "none"
            raise ProtocolError(
                f"the peer speaks the versions {spoken}; right is {wire.VERSION} (OpenFlow 1.4)"
            )
        self.state = ConnectionState.FEATURES
        self._out.append(wire.features_request(self._next()))
        return ()

    def _on_features(self, xid: int, message: wire.Features) -> Iterable[ConnectionEvent]:
        self.state, self.tables = ConnectionState.READY, message.tables
        self._out.append(wire.send_all(self._next()))
        self._out.append(wire.monitor_request(self._next()))
        return (Ready(message.datapath),)

    def _on_echo_request(self, xid: int, message: wire.EchoRequest) -> Iterable[ConnectionEvent]:
        self._out.append(wire.echo_reply(xid, message.data))
        return ()

    def _on_failure_early(self, xid: int, message: wire.Failed) -> Iterable[ConnectionEvent]:
        raise ProtocolError(f"the peer refused the connection: {message.reason}")

    def _on_failure(self, xid: int, message: wire.Failed) -> Iterable[ConnectionEvent]:
        if message.slave:  # told anew with every message, and some switches tell it no other way
            yield RoleStatus(SLAVE, None)
        yield from self._on_refusal(xid, message)

    def _on_refusal(self, xid: int, message: wire.Failed) -> Iterable[ConnectionEvent]:
        if xid in self._listings:
            kind, _ = self._listings[xid]
            if kind is wire.ListKind.GROUPS:  # a switch that knows no groups has none
                del self._listings[xid]
                return (GroupsListed(xid, ()),)
            raise ProtocolError(f"the switch does not list its {kind.name.lower()}: {message.reason}")
        for change in self._changes.values():
            if (xid - change.first) % _XIDS < change.count:
                change.failure = change.failure or message
                return ()
        batch = self._batch
        if batch is None:
            return ()  # about a message that nothing waits for, such as a packet to send
        index = (xid - batch.first) % _XIDS
        if batch.failure is None and (index < batch.count or xid in (batch.bundle, batch.awaited)):
            batch.failure = (index if index < batch.count else None), message
        if xid == batch.awaited:
            return self._end_batch(batch)
        return ()

    def _on_barrier(self, xid: int, message: wire.Barrier) -> Iterable[ConnectionEvent]:
        change, batch = self._changes.pop(xid, None), self._batch
        if change is not None:
            if change.failure is not None:
                return (BatchRefused(change.first, None, change.failure),)
            if isinstance(change, RoleTransaction):
                return (RoleTold(change.first, change.told),)
            return (BatchApplied(change.first),)
        if batch is None or batch.phase is not Phase.ADDING or xid != batch.awaited:
            raise ProtocolError(f"the peer answered a barrier that nobody asked for (xid {xid})")
        if batch.failure is None:
            batch.phase, what = Phase.COMMITTING, ofp.OFPBCT_COMMIT_REQUEST
        else:
            batch.phase, what = Phase.DISCARDING, ofp.OFPBCT_DISCARD_REQUEST
        batch.awaited = self._next()
        self._out.append(wire.bundle_control(batch.awaited, batch.bundle, what))
        return ()

    def _on_bundle_reply(self, xid: int, message: wire.BundleReply) -> Iterable[ConnectionEvent]:
        batch = self._batch
        if batch is not None and message == (batch.bundle, ofp.OFPBCT_OPEN_REPLY):
            return ()
        if batch is None or xid != batch.awaited or message != (batch.bundle, _ENDS.get(batch.phase)):
            raise ProtocolError(f"the peer answered for a bundle that is not under way (xid {xid})")
        return self._end_batch(batch)

    def _on_list(self, xid: int, message: wire.ListPart) -> Iterable[ConnectionEvent]:
        kind = message.kind
        asked, items = self._listings.get(xid, (None, []))
        if kind is not asked:
            raise ProtocolError(f"the peer listed {kind.name.lower()} that nobody asked for (xid {xid})")
        items.extend(LISTS[kind].read(message.body))
        if message.more:
            return ()
        del self._listings[xid]
        return (LISTS[kind].event(xid, tuple(items)),)

    def _on_role(self, xid: int, message: RoleReply) -> Iterable[ConnectionEvent]:
        for change in self._changes.values():
            if isinstance(change, RoleTransaction) and change.first == xid:
                change.told = message
                return ()
        raise ProtocolError(f"the peer told a role that nobody asked for (xid {xid})")

    def _on_notice(
        self, xid: int, message: wire.PacketIn | wire.PortStatus | RoleStatus
    ) -> Iterable[ConnectionEvent]:
        return (message,)

    def _on_monitor(self, xid: int, message: wire.Monitored) -> Iterable[ConnectionEvent]:
        return (message,) if message.owners else ()

    def _ignore(self, xid: int, message: wire.OpenFlowMessage) -> Iterable[ConnectionEvent]:
        return ()

    def _list(self, kind: wire.ListKind, request: Callable[[int], bytes]) -> int:
        assert self.state is ConnectionState.READY
        xid = self._next()
        self._listings[xid] = kind, []
        self._out.append(request(xid))
        return xid

    def _ask_for(self, role: int, generation: int = 0) -> int:
        return self._make([lambda xid: role_request(xid, role, generation)], RoleTransaction)

    def _make(
        self, messages: Sequence[Callable[[int], bytes]], kind: type[PlainTransaction] = PlainTransaction
    ) -> int:
        """Send messages and a barrier after them."""
        assert self.state is ConnectionState.READY and messages
        xids, last = [self._next() for _ in messages], self._next()
        self._changes[last] = kind(xids[0], len(messages))
        for xid, message in zip(xids, messages, strict=True):
            self._out.append(message(xid))
        self._out.append(wire.barrier(last))
        return xids[0]

    def _begin(self, count: int, packed: Callable[[int, int], Iterator[bytes]]) -> int:
        assert self.state is ConnectionState.READY and self._batch is None and count > 0
        if self._xid + count + 4 >= _XIDS:
            self._xid = 0
        bundle = self._next()  # the xid that opens it names it as well
        first = self._xid + 1
        self._xid += count
        self._batch = BundleTransaction(bundle, first, count, awaited=self._next())
        self._out.append(wire.bundle_control(bundle, bundle, ofp.OFPBCT_OPEN_REQUEST))
        self._out.append(packed(first, bundle))
        self._out.append(wire.barrier(self._batch.awaited))
        return bundle

    def _end_batch(self, batch: BundleTransaction) -> Iterable[ConnectionEvent]:
        self._batch = None
        if batch.failure is None:
            return (BatchApplied(batch.bundle),)
        return (BatchRefused(batch.bundle, *batch.failure),)

    def _next(self) -> int:
        self._xid = (self._xid + 1) % _XIDS
        return self._xid


# What a peer may say in which state; what is absent is an error.
REACTIONS: dict[tuple[ConnectionState, type], Callable[..., Iterable[ConnectionEvent]]] = {
    (ConnectionState.HELLO, wire.Hello): OpenFlowConnection._on_hello,
    (ConnectionState.HELLO, wire.Failed): OpenFlowConnection._on_failure_early,
    (ConnectionState.FEATURES, wire.Features): OpenFlowConnection._on_features,
    (ConnectionState.FEATURES, wire.Failed): OpenFlowConnection._on_failure_early,
    (ConnectionState.FEATURES, wire.EchoRequest): OpenFlowConnection._on_echo_request,
    (ConnectionState.FEATURES, wire.PortStatus): OpenFlowConnection._ignore,
    (ConnectionState.FEATURES, wire.Other): OpenFlowConnection._ignore,
    (ConnectionState.READY, wire.EchoRequest): OpenFlowConnection._on_echo_request,
    (ConnectionState.READY, wire.EchoReply): OpenFlowConnection._ignore,
    (ConnectionState.READY, wire.Failed): OpenFlowConnection._on_failure,
    (ConnectionState.READY, wire.Barrier): OpenFlowConnection._on_barrier,
    (ConnectionState.READY, wire.BundleReply): OpenFlowConnection._on_bundle_reply,
    (ConnectionState.READY, wire.ListPart): OpenFlowConnection._on_list,
    (ConnectionState.READY, wire.Monitored): OpenFlowConnection._on_monitor,
    (ConnectionState.READY, wire.PacketIn): OpenFlowConnection._on_notice,
    (ConnectionState.READY, wire.PortStatus): OpenFlowConnection._on_notice,
    (ConnectionState.READY, RoleReply): OpenFlowConnection._on_role,
    (ConnectionState.READY, RoleStatus): OpenFlowConnection._on_notice,
    (ConnectionState.READY, wire.Other): OpenFlowConnection._ignore,
}
