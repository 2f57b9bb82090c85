"""A network at one moment, as a value that executors get: its tables, who may publish what, and who wants what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import packets_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.errors import SwitchError
from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import columns_of, flatten
from flowsieve.flow.view import NetworkView
from flowsieve.flow.wiring import HOP_LIMIT, Wiring
from flowsieve.header.encoding import Encoding
from flowsieve.index.plan import IndexPlan
from flowsieve.pipeline.evaluation import coverage_kernel
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.matching.matcher import matcher_of
from flowsieve.pipeline.replay import replay_kernel
from flowsieve.southbound.embedded.batch import JoinedTables

CHUNK = 1 << 14  # events that are under way at once


@dataclass(frozen=True, eq=False)
class ReplayTraffic:
    """What was counted: packets per slot of the wiring, copies per switch that an entry matched, and figures per host.

    `hosts` has a column for each name in `replay_kernel.COLUMNS`; `sent` has, per host, the events it published, the
    packets that these made, and its events that no advertisement of it holds.
    """

    slots: NDArray[np.int64]
    matched: NDArray[np.int64]
    hosts: NDArray[np.int64]
    sent: NDArray[np.int64]
    expired: NDArray[np.int64]

    @classmethod
    def none(cls, wiring: Wiring) -> ReplayTraffic:
        hosts = len(wiring.hosts)
        shapes = (wiring.slots, len(wiring.switches), (hosts, len(replay_kernel.COLUMNS)), (hosts, 3), 1)
        return cls(*(np.zeros(shape, np.int64) for shape in shapes))


@dataclass(frozen=True, eq=False)
class NetworkSnapshot:
    """Tables as they stand, and the interests they are judged by; `home[s]` is the host of subscription s."""

    plan: IndexPlan
    encoding: Encoding
    tables: JoinedTables
    advertised: Mapping[int, tuple[Filter, ...]]
    boxes: BoxTable
    home: NDArray[np.int64]

    @classmethod
    def of(cls, view: NetworkView) -> NetworkSnapshot:
        """A snapshot of a network."""
        wiring, plan, encoding = Wiring.of(view.topology), view.plan, view.encoding
        number = {host: i for i, host in enumerate(wiring.hosts)}
        offers: dict[int, tuple[Filter, ...]] = {}
        for interest in view.advertisements:
            at = number[interest.endpoint]
            offers[at] = (*offers.get(at, ()), *interest.filters)
        wanted = [(each.endpoint, filter) for each in view.subscriptions for filter in each.filters]
        return cls(
            plan,
            encoding,
            _joined(wiring, view.tables, encoding.family),
            offers,
            BoxTable.of(plan.schema, [filter for _, filter in wanted]),
            np.array([number[endpoint] for endpoint, _ in wanted], np.int64),
        )

    @property
    def wiring(self) -> Wiring:
        return self.tables.wiring

    def send(self, events: EventBatch, source: NDArray[np.int64], traffic: ReplayTraffic) -> None:
        """Send events from hosts, by their numbers, and count what becomes of them.

        Packets that multiply on a loop of the tables raise SwitchError.
        """
        for start in range(0, len(events), CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(events)))
            self._send(events.take(rows), source[rows], traffic)

    def _send(self, events: EventBatch, source: NDArray[np.int64], traffic: ReplayTraffic) -> None:
        hosts = len(self.wiring.hosts)
        promised = self._promised(events, source)
        traffic.sent[:, 2] += np.bincount(source[~promised], minlength=hosts)
        events, source = events.take(promised), source[promised]
        packets = packets_of(events, self.plan, self.encoding)
        traffic.sent[:, 0] += np.bincount(source, minlength=hosts)
        traffic.sent[:, 1] += np.bincount(source[packets.rows], minlength=hosts)
        start = self.wiring.home[source[packets.rows]]
        hi, lo = (np.require(half, np.uint64, ["C", "W"]) for half in (packets.hi, packets.lo))
        batch, matched = self.tables.walk(start, hi, lo, HOP_LIMIT, traffic.slots)
        before = np.concatenate([[0], np.cumsum(matched)])
        traffic.matched[:] += np.diff(before[self.tables.rows])
        traffic.expired[0] += batch.expired
        matcher = matcher_of(self.boxes)
        begin, room = np.empty(len(events) + 1, np.int64), np.empty(16 * len(events) + 64, np.int64)
        rows = matcher.rows(self.boxes.points(events))
        who = coverage_kernel.list_matches(matcher.boxes.bits, rows, matcher.owner, begin, room)
        packets_begin = np.searchsorted(packets.rows, np.arange(len(events) + 1))
        replay_kernel.count(
            source, packets_begin, batch.rows, batch.host, begin, who, self.home, traffic.hosts
        )

    def _promised(self, events: EventBatch, source: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which events some advertisement of their publisher holds."""
        promised = np.zeros(len(events), np.bool_)
        order = np.argsort(source, kind="stable")
        ends = np.searchsorted(source[order], np.arange(len(self.wiring.hosts) + 1))
        for host, offers in self.advertised.items():
            rows = order[ends[host] : ends[host + 1]]
            if len(rows):
                own = events.take(rows)
                for offer in offers:
                    promised[rows[offer.matches_batch(own)]] = True
        return promised


def _joined(wiring: Wiring, tables: Mapping[str, Iterable[Flow]], family: int) -> JoinedTables:
    held = {switch: list(tables.get(switch, ())) for switch in wiring.switches}
    columns = columns_of(wiring, held)
    for number, (switch, flows) in enumerate(held.items()):
        for row in columns[number].astray.tolist():
            raise SwitchError(
                f"switch {switch} is to send {flows[row].match} out of ports {flows[row].ports}; right are some of "
                f"1 to {wiring.ports(number)}, each once"
            )
    flats = [flatten(part, family) for part in columns]
    joined = JoinedTables.of(wiring, flats, [len(flows) for flows in held.values()])
    return replace(joined, tables=())  # joined, they are all that a walk needs
