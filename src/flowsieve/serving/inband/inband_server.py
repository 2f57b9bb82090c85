"""Calls that come through the network itself: a switch hands them over, and the answer goes back out of the same port.

Which host calls is told by the port that the call came in on, not by what it says. Whatever comes, nothing here
raises, waits, or grows without bound. What is dropped is counted by its reason, and told (`drop_log`).

A checksum that the host left to its card is taken from a host's own port, where there is no way on which the packet
could have been damaged; from elsewhere it is not, unless it comes with the token of a host that has moved there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from flowsieve.content.schema import shown
from flowsieve.control.discovery.findings import SwitchPort as Port
from flowsieve.errors import BadChecksum, BadMessage, Denied, FlowsieveError, OtherVersion, SwitchError
from flowsieve.flow.punt import LLDP
from flowsieve.header.frame import UdpFrame, build, parse
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.protocol.answer import BUSY, FAILED, Answer, answer_of, refusal
from flowsieve.protocol.call import CallKey
from flowsieve.protocol.call_datagram import (
    CallDatagram,
    Gone,
    More,
    Part,
    Unreadable,
    cut,
    decode,
    digest_of,
    encode,
    pack_answer,
)
from flowsieve.protocol.version import VERSION
from flowsieve.serving.fair_shares import FairShares
from flowsieve.serving.inband.answer_cache import AnswerCache, SwitchPort
from flowsieve.serving.inband.drop_log import DropLog, DropReason
from flowsieve.southbound.fabric import PuntedPacket
from flowsieve.tasks import noted

MOST_CALLS = 1024  # under way at a time
MOST_OF_A_HOST = 256  # of these
MOST_SENDING = 1024  # packets on their way to switches
MAC = bytes.fromhex("02f1055e0002")  # whose answers are; no interface has it
LINK_LOCAL = bytes.fromhex("fe80" + "00" * 8 + "f10e00c00001")  # likewise
ADDRESSES = frozenset(prefix.first.to_bytes(prefix.width // 8) for prefix in CONTROL_ADDRESSES.values())

Handle = Callable[[Mapping[str, Any], str | None], Awaitable[Answer]]
Send = Callable[[str, int, bytes], Awaitable[None]]
log = logging.getLogger(__name__)


class Arrivals(Protocol):
    """What takes in hosts that call from ports at which nobody is known."""

    def refuses(self, host: object, token: object, place: Port) -> str | None:
        """Why a call at a port does not come from a host that has moved there; None if it does."""
        ...

    async def take_in(self, host: str, place: Port) -> None:
        """Have the network know a host at another port."""
        ...


class NoArrivals:
    """For a network in which every host stays where it is."""

    def refuses(self, host: object, token: object, place: Port) -> str | None:
        return "no host is known at that port"

    async def take_in(self, host: str, place: Port) -> None:
        raise Denied("hosts stay where they are")


@dataclass(frozen=True, slots=True)
class InbandCounters:
    """What has come, and what became of it."""

    received: int = 0  # packets
    malformed: int = 0  # … that say nothing
    bad_checksum: int = 0  # … that were damaged on the way
    unfinished: int = (
        0  # … whose sender left the checksum to a card, dropped since they came from no host's port
    )
    completed: int = 0  # the same from a host's own port: these are taken
    other_version: int = 0  # … of another version of the protocol
    foreign: int = 0  # … from a port that is no host's
    forged: int = 0  # calls in the name of another host than the port's
    repeated: int = 0  # calls that came again while they were worked on
    busy: int = 0  # calls that found too many others
    answered: int = 0  # calls that got an answer, also one that says no
    unsent: int = 0  # answers and parts that could not be sent


class InbandServer:
    """Has calls that switches hand over answered, and sends the answers back.

    `call` answers a call of a host, and knows one that comes again. `send` has a switch send a packet out of a port;
    `host_at` says which host is at a port, if one is, and `arrivals` what becomes of calls where nobody is.
    """

    def __init__(
        self,
        call: Handle,
        send: Send,
        host_at: Callable[[str, int], str | None],
        arrivals: Arrivals | None = None,
        *,
        most_calls: int = MOST_CALLS,
        most_of_a_host: int = MOST_OF_A_HOST,
    ) -> None:
        self.counters = InbandCounters()
        self._call = call
        self._send_packet = send
        self._host_at = host_at
        self._arrivals = arrivals or NoArrivals()
        self._arriving: set[str] = set()
        self._slots = FairShares(most_calls)  # by host
        self._most_of_a_host = most_of_a_host
        self._under_way: set[tuple[SwitchPort, bytes, int, bytes]] = set()
        self._sending = 0
        self._kept = AnswerCache()
        self._drops = DropLog()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def heard(self, packet: PuntedPacket) -> None:
        """A switch has handed over a packet; those by which switches find each other are not for us."""
        if self._closed or packet.data[12:14] == LLDP.to_bytes(2):
            return
        self._count("received")
        try:
            self._take(packet)
        except BadChecksum as error:
            self._drop((packet.switch, packet.port), DropReason.BAD_CHECKSUM, str(error))
        except BadMessage as error:
            self._drop((packet.switch, packet.port), DropReason.MALFORMED, str(error))
        except Exception:  # our own mistake: go on with the next packet
            log.exception("a packet from port %d of switch %s was not understood", packet.port, packet.switch)

    async def close(self) -> None:
        """Answer nobody any more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, packet: PuntedPacket) -> None:
        frame = parse(packet.data)
        if frame.destination not in ADDRESSES or frame.destination_port != CONTROL_PORT:
            raise BadMessage("a packet to somebody else")
        place = packet.switch, packet.port
        host = self._host_at(*place)
        if host is None:
            self._take_strange(place, frame)
            return
        if not frame.finished:
            self._count("completed")
        datagram = decode(frame.payload)
        if isinstance(datagram, CallDatagram):
            self._take_call(place, host, frame, datagram)
        elif isinstance(datagram, Unreadable):
            wrong = OtherVersion(client=datagram.version, controller=VERSION)
            self._drop(place, DropReason.OTHER_VERSION, str(wrong))
            if datagram.key is not None:
                self._answer(place, frame, datagram.key, answer_of(wrong))
        elif isinstance(datagram, More):
            self._send_all(place, frame, self._more(place, datagram))
        else:
            raise BadMessage("a client that gives answers")

    def _take_strange(self, place: SwitchPort, frame: UdpFrame) -> None:
        """A packet from a port at which no host is known: of one that has moved there, or of nobody."""
        why = "no host is known at that port"
        try:
            call = decode(frame.payload)
        except BadMessage:
            if frame.finished:
                raise
            call = None
        if isinstance(call, CallDatagram):
            host = call.message.get("host")
            refused = self._arrivals.refuses(host, call.message.get("token"), Port(*place))
            if refused is None and isinstance(host, str):
                self._arrive(place, host, frame, call)
                return
            why = refused or why
        if frame.finished:
            self._drop(place, DropReason.FOREIGN, why)
        else:
            self._drop(place, DropReason.UNFINISHED, f"its checksum is unfinished, and {why}")

    def _arrive(self, place: SwitchPort, host: str, frame: UdpFrame, call: CallDatagram) -> None:
        """Have a host known where it is now, then take its call; it repeats those that come meanwhile."""
        if host in self._arriving:
            self._count("repeated")
            return
        self._arriving.add(host)

        async def work() -> None:
            try:
                await self._arrivals.take_in(host, Port(*place))
            except FlowsieveError as error:
                self._drop(place, DropReason.FOREIGN, f"{host} cannot be taken in there: {error}")
            else:
                self._take_call(place, host, frame, call)
            finally:
                self._arriving.discard(host)

        self._own(work())

    def _take_call(self, place: SwitchPort, host: str, frame: UdpFrame, call: CallDatagram) -> None:
        name = place, frame.source, frame.source_port, frame.payload
        said = call.message.get("host")
        if said != host:
            wrong = Denied(f"this is no port of host {shown(said)}; right is the name of the host itself")
            self._drop(place, DropReason.FORGED, str(wrong))
            self._answer(place, frame, call.key, answer_of(wrong))
        elif name in self._under_way:
            self._count("repeated")
        elif self._slots.of(host) >= self._most_of_a_host or not self._slots.take(host):
            self._count("busy")
            text = f"{len(self._under_way)} calls are under way, {self._slots.of(host)} of this host's; try again later"
            self._answer(place, frame, call.key, refusal(BUSY, text))
        else:
            self._under_way.add(name)

            async def work() -> None:
                try:
                    answer = await self._work(call, host)
                finally:
                    self._under_way.discard(name)
                    self._slots.give_back(host)
                self._answer(place, frame, call.key, answer)

            self._own(work())

    async def _work(self, call: CallDatagram, host: str) -> Answer:
        try:
            return await self._call(call.message, host)
        except FlowsieveError as reason:
            return refusal(FAILED, str(reason))
        except Exception:  # our own mistake: the client gets an answer all the same
            log.exception("call %r of host %s failed", call.message.get("op"), host)
            return refusal(FAILED, "the controller has made a mistake; its log says which")

    def _answer(self, place: SwitchPort, frame: UdpFrame, key: CallKey, answer: Answer) -> None:
        try:
            packed = pack_answer(answer)
        except BadMessage as reason:
            packed = pack_answer(refusal(FAILED, str(reason)))
        (first,) = cut(key, packed, digest_of(packed), [0])
        if first.count > 1:
            self._kept.keep(place, key, packed, asyncio.get_running_loop().time())
        self._count("answered")
        self._send_all(place, frame, [first])

    def _more(self, place: SwitchPort, more: More) -> Iterable[Part | Gone]:
        packed = self._kept.find(place, more.key, more.digest, asyncio.get_running_loop().time())
        if packed is None:
            return [Gone(more.key, more.digest)]
        return cut(more.key, packed, more.digest, more.indices)

    def _send_all(self, place: SwitchPort, frame: UdpFrame, datagrams: Iterable[Part | Gone]) -> None:
        for datagram in datagrams:
            if self._sending >= MOST_SENDING:
                self._count("unsent")
                continue
            self._sending += 1
            self._own(self._send(place, build(reply(frame, encode(datagram)))))

    async def _send(self, place: SwitchPort, packet: bytes) -> None:
        try:
            await self._send_packet(*place, packet)
        except SwitchError:
            self._count("unsent")  # the client asks again
        finally:
            self._sending -= 1

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(noted)

    def _drop(self, place: SwitchPort, reason: DropReason, why: str) -> None:
        self._count(reason.counter)
        self._drops.note(place, reason, why, asyncio.get_running_loop().time())

    def _count(self, what: str) -> None:
        self.counters = replace(self.counters, **{what: getattr(self.counters, what) + 1})


def reply(call: UdpFrame, payload: bytes) -> UdpFrame:
    """The datagram that goes back to where one came from."""
    return UdpFrame(
        source_mac=MAC,
        destination_mac=call.source_mac,
        source=LINK_LOCAL if call.family == 6 else beside(call.source),
        destination=call.source,
        source_port=CONTROL_PORT,
        destination_port=call.source_port,
        payload=payload,
    )


def beside(address: bytes) -> bytes:
    """An IPv4 address in the same network as a host's.

    A host drops what comes from a group, or from an address that it has no route to. It has one to its own network;
    whether anybody there has this address does not matter, since nothing is sent to it.

    >>> beside(bytes([10, 0, 0, 1])).hex(), beside(bytes([10, 0, 0, 6])).hex()
    ('0a000003', '0a000007')
    """
    near = address[-1] ^ 1
    if near in (0, 255):  # the network itself, or all of its hosts
        near = address[-1] ^ 2
    return address[:-1] + bytes([near])
