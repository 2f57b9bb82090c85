"""What a subscriber does with a datagram: false positives, second copies and nonsense stop here, and are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flowsieve.client.copies import REMEMBERED, Copies, Copy
from flowsieve.client.index_meters import IndexMeters
from flowsieve.client.receiver_counts import ReceiverMeter, names_receivers
from flowsieve.client.stats import Stats
from flowsieve.content.event import check_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage, BadValue
from flowsieve.header.encoding import Encoding
from flowsieve.index.dzset import DzSet
from flowsieve.protocol.event_mac import MacChecker
from flowsieve.protocol.event_message import Message, MessageKind, decode


@dataclass(frozen=True, slots=True)
class Event:
    """An event as an application gets it, with the publisher's id, its sequence number, and the data added to it."""

    values: Mapping[str, object]
    publisher: bytes
    seq: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class MatchedEvent:
    """An event, and the ids of the subscriptions that it matches."""

    subscriptions: tuple[str, ...]
    event: Event


class Inbox:
    """The subscriptions of one application. `own` is the id that it publishes under: its own events are dropped.

    With a `checker`, which may be exchanged for another, nothing is believed that is not signed by its publisher. Of
    packets that name hosts, what an application did not ask for is for another one. Digests that other hosts get, too,
    name the one that they are for, by its number as a `receiver`.
    """

    def __init__(
        self,
        schema: Schema,
        encoding: Encoding,
        own: bytes,
        stats: Stats,
        remembered: int = REMEMBERED,
        *,
        receiver: int | None = None,
    ) -> None:
        self.stats = stats
        self.checker: MacChecker | None = None
        # Hears of each event, once: its publisher, its number, and whether somebody here wants it.
        self.came: Callable[[bytes, int, bool], None] | None = None
        self._schema = schema
        self._own = own
        self._filters: dict[str, Filter] = {}
        self._cells = IndexMeters(encoding)
        self._labels = ReceiverMeter()
        self._named = () if receiver is None else (receiver,)
        self._copies = Copies(remembered)

    def open(self, id: str, wanted: Filter) -> None:
        """Let through what a filter matches, for a subscription that is asked for."""
        self._filters[id] = wanted

    def confirm(self, id: str, dz: DzSet) -> None:
        """The network has promised a subscription's dz: what is missing from now on is lost."""
        self._cells.confirm(id, dz)

    def go_over(self, encoding: Encoding, dz: Mapping[str, DzSet]) -> None:
        """Events are addressed by another index from now on: what the network owes each confirmed subscription."""
        self._cells.go_over(encoding, dz)

    def close(self, id: str) -> None:
        """A subscription is no more."""
        self._filters.pop(id, None)
        self._cells.close(id)

    def take(self, datagram: bytes) -> MatchedEvent | None:
        """What a datagram brings, and to whom; None if it brings nothing."""
        signed = self.checker is None or self.checker.holds(datagram)
        try:
            message = decode(datagram)
            values = check_event(self._schema, message.values) if message.kind is MessageKind.EVENT else {}
        except (BadMessage, BadValue):
            self.stats.malformed += 1
            return None
        if not signed:
            self.stats.forged += 1
            return None
        if message.publisher == self._own:
            return None
        if message.kind is MessageKind.DIGEST:
            self._weigh(message)
            return None
        self.stats.received += 1
        # A MAC tells datagrams of one event apart: what changes with the address are the stamps, which it covers.
        copy = self._copies.judge(message.publisher, message.seq, message.mac or message.destination)
        if copy is not Copy.FIRST:
            self._came_again(message, copy)
            return None
        wanted, labelled = self._weigh(message), names_receivers(message.destination)
        found = tuple(id for id, filter in self._filters.items() if filter.matches(values))
        if found and not wanted and not labelled:  # matched, and not promised yet
            self._cells.unknown()
            self.stats.unchecked += 1
        if self.came is not None:
            self.came(message.publisher, message.seq, bool(found))
        if not found:
            ours = wanted and not labelled
            self.stats.false_positives += ours
            self.stats.passed_over += not ours
            return None
        self.stats.delivered += len(found)
        return MatchedEvent(found, Event(values, message.publisher, message.seq, message.data))

    def _came_again(self, message: Message, copy: Copy) -> None:
        if copy is Copy.OTHER:
            self._weigh(message)  # it has counts of its own
            self.stats.repeats += 1
        else:
            self.stats.duplicates += 1

    def _weigh(self, message: Message) -> bool:
        """Count what is missing; whether the message lies in our dz."""
        labelled = names_receivers(message.destination)
        wanted = self._compare(message) if labelled else self._cells.weigh(message)
        self.stats.lost = self._cells.lost + self._labels.lost
        self.stats.unchecked = self._cells.unchecked + self._labels.unchecked
        return wanted

    def _compare(self, message: Message) -> bool:
        """Count what is missing of what was sent to us by name; whether the network has promised us something."""
        if message.kind is MessageKind.EVENT:
            self._labels.event(message.publisher, message.seq)
        elif self._cells.promised and message.stamps[1:] == self._named and message.stamps:
            self._labels.digest(message.publisher, message.seq, message.stamps[0])
        return self._cells.promised
