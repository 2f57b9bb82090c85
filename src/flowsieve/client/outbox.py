"""What a publisher does before anything is sent: an event is checked, encoded, counted and packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from flowsieve.client.loss import Stamper
from flowsieve.content.event import check_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import shown
from flowsieve.errors import BadInput, BadValue
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
from flowsieve.index.plan import IndexPlan
from flowsieve.protocol.event_message import DIGEST_START, EVENT_START, LONG_START, pack_content, pack_head


class EventDatagram(NamedTuple):
    """Bytes for an address, which is 4 or 16 bytes itself."""

    destination: bytes
    payload: bytes


class Outbox:
    """What one application publishes under one id; `advertised` are its promises, by id."""

    def __init__(self, plan: IndexPlan, encoding: Encoding, publisher: bytes) -> None:
        self.advertised: dict[str, Filter] = {}
        self.seq = 0
        self._plan = plan
        self._publisher = publisher
        self._stamper = Stamper(plan.bits)
        self._destination = encoding.destination

    def event(self, values: Mapping[str, object], data: bytes = b"") -> list[EventDatagram]:
        """An event's datagrams, one for each of its dz; a bad event raises and counts for nothing."""
        checked = check_event(self._plan.schema, values)
        if not any(promise.matches(checked) for promise in self.advertised.values()):
            raise self._not_advertised(checked)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise BadInput(f"the data of an event is bytes, not {shown(data)}")
        cells = self._plan.encode(checked)
        content = pack_content(checked, bytes(data))
        start = LONG_START if data else EVENT_START
        self.seq += 1
        return [self._datagram(start, dz, self._stamper.stamp(dz, self.seq), content) for dz in cells]

    def digests(self) -> list[EventDatagram]:
        """What tells subscribers how much was sent, to the addresses that were sent to last."""
        return [self._datagram(DIGEST_START, dz, stamps) for dz, stamps in self._stamper.digests()]

    def last_digests(self) -> list[EventDatagram]:
        """The same for the last time: a promise ends, and the network takes in no more where none is left."""
        told = self.digests()
        self._stamper.rest()
        return told

    def _datagram(self, start: bytes, dz: Dz, stamps: list[int], content: bytes = b"") -> EventDatagram:
        to = self._destination(dz)
        return EventDatagram(
            to, start + pack_head(self._publisher, self.seq, to, dz.length, stamps) + content
        )

    def _not_advertised(self, checked: Mapping[str, object]) -> BadValue:
        if not self.advertised:
            return BadValue(
                f"nothing is advertised, so {shown(dict(checked))} cannot be published; advertise first"
            )
        promised = " or ".join(str(promise) for promise in self.advertised.values())
        return BadValue(f"{shown(dict(checked))} lies outside what is advertised: {shown(promised)}")
