"""A controller's end of one OpenFlow connection, without input and output.

Bytes that arrived go into `receive`, which gives what happened; bytes to be sent come out of `outgoing`. What a
peer may say in which state stands in one table; all else is an error, after which the connection is of no use.

A batch of operations is one bundle. A switch commits a bundle even if it refused one of its messages, so we ask
for a barrier first, look for errors, and then commit or discard: the batch is done as a whole or not at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.diff import FlowOp
from flowsieve.southbound.openflow import wire
from flowsieve.southbound.openflow.entries import Entry, delete_strict, entries_in
from flowsieve.southbound.openflow.events import Applied, Event, Listed, PortsListed, Ready, Refused
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.ports import Port, port_mod, ports_in, ports_request
from flowsieve.southbound.openflow.wire import ProtocolError

CHUNK = 250  # operations packed at a time, so that a switch reads the first while we pack the next
_XIDS = 1 << 32


class State(Enum):
    """Where a connection stands."""

    HELLO = "waiting for the peer's hello"
    FEATURES = "waiting for the switch's features"
    READY = "ready"


class _Phase(Enum):
    ADDING = "adding"
    COMMITTING = "committing"
    DISCARDING = "discarding"


@dataclass(slots=True)
class _Batch:
    """A bundle under way; operation i has the xid `first` + i, the last step of each phase the xid `awaited`."""

    bundle: int
    first: int
    count: int
    awaited: int
    phase: _Phase = _Phase.ADDING
    failure: tuple[int | None, wire.Failed] | None = None


@dataclass(slots=True)
class _PortChange:
    """A port that is being fenced or opened; the barrier has the xid `awaited`."""

    request: int
    awaited: int
    failure: wire.Failed | None = None


class Connection:
    """One connection, from its first byte on; of each kind of request one may be under way at a time."""

    def __init__(self, decrement: bool = True) -> None:
        self.state = State.HELLO
        self._packer = Packer(decrement)
        self._frames = wire.Frames()
        self._out: deque[bytes | Iterator[bytes]] = deque()
        self._xid = 0
        self._batch: _Batch | None = None
        self._port_change: _PortChange | None = None
        self._listing: tuple[int, list[Entry]] | None = None
        self._port_listing: tuple[int, list[Port]] | None = None
        self._out.append(wire.hello(self._next()))

    # What we ask.

    def apply(self, ops: Sequence[FlowOp]) -> int:
        """Have a batch carried out, as a whole; the number of the request comes back in its event."""

        def packed(first: int, bundle: int) -> Iterator[bytes]:
            for at in range(0, len(ops), CHUNK):
                yield self._packer.pack(first + at, ops[at : at + CHUNK], bundle)

        return self._begin(len(ops), packed)

    def remove(self, entries: Sequence[Entry]) -> int:
        """Have entries removed whatever they match, as a batch."""

        def packed(first: int, bundle: int) -> Iterator[bytes]:
            for xid, entry in enumerate(entries, first):
                yield wire.bundle_add(xid, bundle, delete_strict(xid, entry))

        return self._begin(len(entries), packed)

    def list_entries(self) -> int:
        """Ask for all entries."""
        assert self.state is State.READY and self._listing is None
        xid = self._next()
        self._listing = xid, []
        self._out.append(wire.entries_request(xid))
        return xid

    def list_ports(self) -> int:
        """Ask for all ports."""
        assert self.state is State.READY and self._port_listing is None
        xid = self._next()
        self._port_listing = xid, []
        self._out.append(ports_request(xid))
        return xid

    def fence(self, port: Port, closed: bool) -> int:
        """Have a port fenced or opened."""
        assert self.state is State.READY and self._port_change is None
        self._port_change = _PortChange(request=self._next(), awaited=self._next())
        self._out.append(port_mod(self._port_change.request, port, closed))
        self._out.append(wire.barrier(self._port_change.awaited))
        return self._port_change.request

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._out.append(wire.echo_request(self._next()))

    def send_packet(self, port: int, data: bytes) -> None:
        """Have the switch send a packet out of a port; nobody says whether it did."""
        self._out.append(wire.packet_out(self._next(), port, data))

    # Bytes.

    def outgoing(self) -> Iterator[bytes]:
        """What is to be sent by now, in pieces; large batches are packed only as they are taken."""
        while self._out:
            item = self._out.popleft()
            if isinstance(item, bytes):
                yield item
            else:
                yield from item

    def receive(self, data: bytes) -> Iterator[Event]:
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

    def _on_hello(self, xid: int, message: wire.Hello) -> Iterable[Event]:
        if wire.VERSION not in message.versions:
            spoken = ", ".join(map(str, sorted(message.versions))) or "none"
            raise ProtocolError(
                f"the peer speaks the versions {spoken}; right is {wire.VERSION} (OpenFlow 1.4)"
            )
        self.state = State.FEATURES
        self._out.append(wire.features_request(self._next()))
        return ()

    def _on_features(self, xid: int, message: wire.Features) -> Iterable[Event]:
        self.state = State.READY
        self._out.append(wire.send_all(self._next()))
        self._out.append(wire.monitor_request(self._next()))
        return (Ready(message.datapath),)

    def _on_echo_request(self, xid: int, message: wire.EchoRequest) -> Iterable[Event]:
        self._out.append(wire.echo_reply(xid, message.data))
        return ()

    def _on_failure_early(self, xid: int, message: wire.Failed) -> Iterable[Event]:
        raise ProtocolError(f"the peer refused the connection: {message.reason}")

    def _on_failure(self, xid: int, message: wire.Failed) -> Iterable[Event]:
        if self._listing is not None and xid == self._listing[0]:
            raise ProtocolError(f"the switch does not list its entries: {message.reason}")
        if self._port_listing is not None and xid == self._port_listing[0]:
            raise ProtocolError(f"the switch does not list its ports: {message.reason}")
        if self._port_change is not None and xid == self._port_change.request:
            self._port_change.failure = message
            return ()
        batch = self._batch
        if batch is None:
            return ()  # of something that nobody waits for, a packet to be sent, say
        index = (xid - batch.first) % _XIDS
        if batch.failure is None and (index < batch.count or xid in (batch.bundle, batch.awaited)):
            batch.failure = (index if index < batch.count else None), message
        if xid == batch.awaited:
            return self._end_batch(batch)
        return ()

    def _on_barrier(self, xid: int, message: wire.Barrier) -> Iterable[Event]:
        change, batch = self._port_change, self._batch
        if change is not None and xid == change.awaited:
            self._port_change = None
            done = Applied(change.request)
            return (done if change.failure is None else Refused(change.request, None, change.failure),)
        if batch is None or batch.phase is not _Phase.ADDING or xid != batch.awaited:
            raise ProtocolError(f"the peer answered a barrier that nobody asked for (xid {xid})")
        if batch.failure is None:
            batch.phase, what = _Phase.COMMITTING, ofp.OFPBCT_COMMIT_REQUEST
        else:
            batch.phase, what = _Phase.DISCARDING, ofp.OFPBCT_DISCARD_REQUEST
        batch.awaited = self._next()
        self._out.append(wire.bundle_control(batch.awaited, batch.bundle, what))
        return ()

    def _on_bundle_reply(self, xid: int, message: wire.BundleReply) -> Iterable[Event]:
        batch = self._batch
        if batch is not None and message == (batch.bundle, ofp.OFPBCT_OPEN_REPLY):
            return ()
        ends = {
            _Phase.COMMITTING: ofp.OFPBCT_COMMIT_REPLY,
            _Phase.DISCARDING: ofp.OFPBCT_DISCARD_REPLY,
        }
        if batch is None or xid != batch.awaited or message != (batch.bundle, ends.get(batch.phase)):
            raise ProtocolError(f"the peer answered for a bundle that is not under way (xid {xid})")
        return self._end_batch(batch)

    def _on_stats(self, xid: int, message: wire.StatsPart) -> Iterable[Event]:
        if self._listing is None or xid != self._listing[0]:
            raise ProtocolError(f"the peer listed entries that nobody asked for (xid {xid})")
        request, entries = self._listing
        entries.extend(entries_in(message.body))
        if message.more:
            return ()
        self._listing = None
        return (Listed(request, tuple(entries)),)

    def _on_ports(self, xid: int, message: wire.PortsPart) -> Iterable[Event]:
        if self._port_listing is None or xid != self._port_listing[0]:
            raise ProtocolError(f"the peer listed ports that nobody asked for (xid {xid})")
        request, ports = self._port_listing
        ports.extend(ports_in(message.body))
        if message.more:
            return ()
        self._port_listing = None
        return (PortsListed(request, tuple(ports)),)

    def _on_notice(self, xid: int, message: wire.PacketIn | wire.PortStatus) -> Iterable[Event]:
        return (message,)

    def _on_monitor(self, xid: int, message: wire.Monitored) -> Iterable[Event]:
        return (message,) if message.foreign else ()

    def _ignore(self, xid: int, message: wire.Message) -> Iterable[Event]:
        return ()

    def _begin(self, count: int, packed: Callable[[int, int], Iterator[bytes]]) -> int:
        assert self.state is State.READY and self._batch is None and count > 0
        if self._xid + count + 4 >= _XIDS:
            self._xid = 0
        bundle = self._next()  # the xid that opens it names it as well
        first = self._xid + 1
        self._xid += count
        self._batch = _Batch(bundle, first, count, awaited=self._next())
        self._out.append(wire.bundle_control(bundle, bundle, ofp.OFPBCT_OPEN_REQUEST))
        self._out.append(packed(first, bundle))
        self._out.append(wire.barrier(self._batch.awaited))
        return bundle

    def _end_batch(self, batch: _Batch) -> Iterable[Event]:
        self._batch = None
        if batch.failure is None:
            return (Applied(batch.bundle),)
        return (Refused(batch.bundle, *batch.failure),)

    def _next(self) -> int:
        self._xid = (self._xid + 1) % _XIDS
        return self._xid


# What a peer may say in which state; what is absent is an error.
REACTIONS: dict[tuple[State, type], Callable[..., Iterable[Event]]] = {
    (State.HELLO, wire.Hello): Connection._on_hello,
    (State.HELLO, wire.Failed): Connection._on_failure_early,
    (State.FEATURES, wire.Features): Connection._on_features,
    (State.FEATURES, wire.Failed): Connection._on_failure_early,
    (State.FEATURES, wire.EchoRequest): Connection._on_echo_request,
    (State.FEATURES, wire.PortStatus): Connection._ignore,
    (State.FEATURES, wire.Other): Connection._ignore,
    (State.READY, wire.EchoRequest): Connection._on_echo_request,
    (State.READY, wire.EchoReply): Connection._ignore,
    (State.READY, wire.Failed): Connection._on_failure,
    (State.READY, wire.Barrier): Connection._on_barrier,
    (State.READY, wire.BundleReply): Connection._on_bundle_reply,
    (State.READY, wire.StatsPart): Connection._on_stats,
    (State.READY, wire.PortsPart): Connection._on_ports,
    (State.READY, wire.Monitored): Connection._on_monitor,
    (State.READY, wire.PacketIn): Connection._on_notice,
    (State.READY, wire.PortStatus): Connection._on_notice,
    (State.READY, wire.Other): Connection._ignore,
}
