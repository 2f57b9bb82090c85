"""Events that came by an index which is not in use any more, to be sent again by the one of now. Frames in, frames out.

Switches hand them over at the ports of hosts (`flow/punt.py`), and take them in again there, through all their tables,
as if their hosts had sent them right: so what a host may publish, and how fast, is as guarded as ever.

The datagram stays what it is, but for one item that its MAC does not cover: the number of bits of its dz, which is 0.
So whoever gets it knows that its counts are of an index by which it was not sent: a subscriber that the old index had
it sent to, and the new one has not, has lost nothing. A digest has nothing but such counts; it is dropped.
"""

from __future__ import annotations

from dataclasses import replace

from flowsieve.content.event import check_event
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadMessage, BadValue
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build, parse
from flowsieve.header.host_groups import group_mac
from flowsieve.protocol import event_message
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.protocol.event_message import Message, MessageKind


class LateDigest(BadMessage):
    """What is handed over is a digest: it says what subscribers should have got by an index that nobody uses."""


class ForeignTag(BadMessage):
    """What is handed over was not sent by an index that is known to be late."""


def is_event(frame: bytes) -> bool:
    """Whether a frame has the UDP port of events, whatever else it is: others are not looked at here."""
    udp = {b"\x86\xdd": 54, b"\x08\x00": 34}.get(frame[12:14])
    return udp is not None and frame[udp + 2 : udp + 4] == EVENT_PORT.to_bytes(2)


def resent(data: bytes, late: tuple[ServedIndex, ...], now: ServedIndex) -> list[bytes]:
    """The frames that take the place of one that came too late: one for each dz that its event has now.

    Raises BadMessage where it is nothing that could be sent again.
    """
    frame = parse(data)
    if frame.destination_port != EVENT_PORT or not any(_within(each.tag.group, frame) for each in late):
        raise ForeignTag("a packet that was sent by no index that is late")
    message = event_message.decode(frame.payload)
    if message.kind is MessageKind.DIGEST:
        raise LateDigest("a digest of what was sent by an index that is late")
    try:
        values = check_event(now.plan.schema, message.values)
    except BadValue as error:
        raise BadMessage(f"an event that cannot be one: {error}") from None
    payload, encoding = marked(message), now.encoding
    return [build(_to(frame, encoding.destination(dz), payload)) for dz in now.plan.encode(values)]


def sent_again(payload: bytes) -> bytes:
    """An event's datagram as it is sent again."""
    return marked(event_message.decode(payload))


def marked(message: Message) -> bytes:
    """The bytes of a message without a dz: the MAC does not cover how many bits it has."""
    return event_message.encode(replace(message, bits=0))


def _to(frame: UdpFrame, destination: bytes, payload: bytes) -> UdpFrame:
    """The same datagram to another address, with all checksums finished."""
    mac = group_mac(destination)
    return replace(frame, destination=destination, destination_mac=mac, payload=payload, finished=True)


def _within(group: Prefix, frame: UdpFrame) -> bool:
    behind = group.width - group.length
    return group.family == frame.family and int.from_bytes(frame.destination) >> behind == group.bits
