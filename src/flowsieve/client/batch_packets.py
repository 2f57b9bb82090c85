"""The publisher's side: an event is checked, then sent as one packet for each dz that the plan gives it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.flow.flat import address_of
from flowsieve.flow.interest import Interest
from flowsieve.header.address import address_text
from flowsieve.header.encoding import Encoding
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
    """Packets of many events: the event's row, and its destination as a key.

    `sources` are the addresses that they are sent from, where these say something.
    """

    family: int
    rows: NDArray[np.int64]
    hi: NDArray[np.uint64]
    lo: NDArray[np.uint64]
    sources: tuple[int, ...] | None = None

    def addresses(self) -> NDArray[np.object_]:
        """Each packet's address as text."""
        family = self.family
        keys = np.stack((self.hi, self.lo), axis=1)
        unique, where = np.unique(keys, axis=0, return_inverse=True)
        texts = [address_text(family, address_of(family, hi, lo)) for hi, lo in unique.tolist()]
        return np.array(texts, dtype=object)[where.ravel()]

    def source_addresses(self) -> NDArray[np.object_]:
        """Each packet's source as text; None where sources say nothing."""
        if self.sources is None:
            return np.full(len(self.rows), None, dtype=object)
        texts = {source: address_text(self.family, source) for source in set(self.sources)}
        return np.array([texts[source] for source in self.sources], dtype=object)


def packets_of(events: EventBatch, plan: IndexPlan, encoding: Encoding) -> Packets:
    """What is sent for the events."""
    encoded = plan.encode_batch(events)
    return Packets(encoding.family, encoded.rows, *encoding.keys_of(encoded.hi, encoded.lo))
