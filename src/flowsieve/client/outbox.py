"""What a publisher does before anything is sent: an event is checked, encoded, counted and packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flowsieve.client.loss import Stamper
from flowsieve.content.event import check_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema, shown
from flowsieve.errors import BadInput, BadValue
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
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


class EventDatagram(NamedTuple):
    """Bytes for an address, which is 4 or 16 bytes itself; none for what the network is not to carry.

    What is `near` is for the other applications of this host as well. It is sent from the host's own address, or from a
    `source` that says something of what is in it.
    """

    destination: bytes
    payload: bytes
    near: bool = True
    source: bytes = b""


class Outbox:
    """What one application publishes under one id; `advertised` are its promises, by id.

    With a `signer`, which may be exchanged for another, datagrams are signed.
    """

    def __init__(
        self, plan: IndexPlan, encoding: Encoding, publisher: bytes, signer: Signer | None = None
    ) -> None:
        self.advertised: dict[str, Filter] = {}
        self.seq = 0
        self.signer = signer
        self._plan = plan
        self._publisher = publisher
        self._event_start = start_covered(MessageKind.EVENT, publisher)
        self._digest_start = start_covered(MessageKind.DIGEST, publisher)
        self._stamper = Stamper(plan.bits)
        self._destination = encoding.destination

    def under(self, plan: IndexPlan, encoding: Encoding) -> Outbox:
        """What goes on where this one stops, under another index: numbers and promises stay, counts begin anew."""
        made = Outbox(plan, encoding, self._publisher, self.signer)
        made.advertised, made.seq = self.advertised, self.seq
        return made

    def event(self, values: Mapping[str, object], data: bytes = b"") -> list[EventDatagram]:
        """An event's datagrams, one for each of its dz; a bad event raises and counts for nothing."""
        checked, data = checked_event(self._plan.schema, values, data, self.advertised)
        cells = self._plan.encode(checked)
        content = pack_content(checked, data)
        items = LONG_ITEMS if data else EVENT_ITEMS
        self.seq += 1
        sent = []
        for dz in cells:
            counted = pack_covered(self._event_start, self.seq, self._stamper.stamp(dz, self.seq))
            sent.append(self._datagram(items, dz, counted + content))
        return sent

    def digests(self) -> list[EventDatagram]:
        """What tells subscribers how much was sent, to the addresses that were sent to last."""
        return [
            self._datagram(DIGEST_ITEMS, dz, pack_covered(self._digest_start, self.seq, stamps))
            for dz, stamps in self._stamper.digests()
        ]

    def last_digests(self) -> list[EventDatagram]:
        """The same for the last time: a promise ends, and the network takes in no more where none is left."""
        told = self.digests()
        self._stamper.rest()
        return told

    def _datagram(self, items: int, dz: Dz, covered: bytes) -> EventDatagram:
        to, signer = self._destination(dz), self.signer
        if signer is None:
            return EventDatagram(to, pack(items, to, dz.length, 0, b"", covered))
        return EventDatagram(to, pack(items, to, dz.length, signer.epoch, signer.mac(covered), covered))


def checked_event(
    schema: Schema, values: Mapping[str, object], data: bytes, advertised: Mapping[str, Filter]
) -> tuple[Mapping[str, object], bytes]:
    """An event that may be published, and the bytes that it brings; raises what is wrong with it."""
    checked = check_event(schema, values)
    if not any(promise.matches(checked) for promise in advertised.values()):
        raise _not_advertised(checked, advertised)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise BadInput(f"the data of an event is bytes, not {shown(data)}")
    return checked, bytes(data)


def _not_advertised(checked: Mapping[str, object], advertised: Mapping[str, Filter]) -> BadValue:
    if not advertised:
        return BadValue(
            f"nothing is advertised, so {shown(dict(checked))} cannot be published; advertise first"
        )
    promised = " or ".join(str(promise) for promise in advertised.values())
    return BadValue(f"{shown(dict(checked))} lies outside what is advertised: {shown(promised)}")
