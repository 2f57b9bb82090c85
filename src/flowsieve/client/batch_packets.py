"""The publisher's side: an event is checked, then sent as one packet for each dz that the plan gives it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.flow.interest import Interest
from flowsieve.header.address import address_text
from flowsieve.header.tag import Tag
from flowsieve.index.plan import IndexPlan

SHOWN = 5  # reasons kept of the events rejected


@dataclass(frozen=True, slots=True)
class Screened:
    """Which events may be sent, and the first few of those that may not, with the reason."""

    good: NDArray[np.bool_]
    reasons: tuple[str, ...]

    @property
    def rejected(self) -> int:
        return int((~self.good).sum())


def screen(events: EventBatch, advertisements: Iterable[Interest]) -> Screened:
    """Keep the events that lie in the schema's ranges and in an advertisement of their publisher."""
    faulty, reason = events.faults()
    promised = np.zeros(len(events), np.bool_)
    by_host: dict[str, list[Interest]] = {}
    for interest in advertisements:
        by_host.setdefault(interest.endpoint, []).append(interest)
    for host, interests in by_host.items():
        rows = np.flatnonzero((events.hosts == host) & ~faulty)
        own = events.take(rows)
        for interest in interests:
            for filter in interest.filters:
                promised[rows[filter.matches_batch(own)]] = True
    good = ~faulty & promised
    reasons = []
    for row in np.flatnonzero(~good)[:SHOWN].tolist():
        host = events.hosts[row]
        if faulty[row]:
            why = reason(row)
        elif host in by_host:
            why = f"outside the advertisements of {host}"
        else:
            why = f"{host} has advertised nothing"
        reasons.append(f"{events.ids[row]}: {why}")
    return Screened(good, tuple(reasons))


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Packets of many events: the event's row, and the address in two words, left-aligned."""

    tag: Tag
    rows: NDArray[np.int64]
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]

    def addresses(self) -> NDArray[np.object_]:
        """Each packet's address as text."""
        family = self.tag.group.family
        keys = np.stack((self.hi, self.lo), axis=1)
        unique, where = np.unique(keys, axis=0, return_inverse=True)
        shift = 128 - self.tag.group.width
        texts = [address_text(family, (hi << 64 | lo) >> shift) for hi, lo in unique.tolist()]
        return np.array(texts, dtype=object)[where.ravel()]


def packets_of(events: EventBatch, plan: IndexPlan, tag: Tag) -> Packets:
    """What is sent for the events: the dz stand behind the tag's group prefix."""
    encoded = plan.encode_batch(events)
    ahead = tag.group.length  # 16 for IPv6, 9 for IPv4
    shift, rest = np.uint64(ahead), np.uint64(64 - ahead)
    group = np.uint64(tag.group.bits << (64 - ahead))
    hi = encoded.hi >> shift | group
    lo = encoded.lo >> shift | encoded.hi << rest
    if tag.group.family == 4:
        lo = np.zeros_like(lo)
    return Packets(tag, encoded.rows, hi, lo)
