"""A scenario whose packets are labelled with Bloom filters of what they match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import Packets
from flowsieve.client.bloom_packets import BloomPackets, bloom_packets
from flowsieve.client.label_packets import holders, offers_of
from flowsieve.content.canonical import canonical
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.request import Op, Request
from flowsieve.control.state import Outcome
from flowsieve.errors import BadInput
from flowsieve.flow.deceived import deceived
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.view import NetworkView
from flowsieve.index.dzset import EMPTY
from flowsieve.scenario.index_section import BloomSection
from flowsieve.scenario.price import Quote, traffic
from flowsieve.scenario.read import Scenario
from flowsieve.southbound.fabric import Switches


class BloomPlane:
    """The plane of Bloom filters: a `BloomController`, and publishers that match events themselves."""

    columns = ("src", "dst")

    def __init__(self, scenario: Scenario, index: BloomSection, switches: Switches) -> None:
        self._scenario = scenario
        labelling = BloomLabelling.make(scenario.topology, index.labels)
        self.controller = BloomController(
            labelling, index.copies, scenario.schema, switches, scenario.capacity, index.sample
        )
        self.controller.repair()
        self._predicted = 0.0
        self._filters = self._packets = self._events = 0

    @property
    def operations(self) -> int:
        return self.controller.operations

    def submit(self, requests: Sequence[Request]) -> Outcome:
        return self.controller.submit(requests)

    def interests(self, side: Side) -> Mapping[str, Interest]:
        return self.controller.interests(side)

    def packets(self, events: EventBatch) -> Packets:
        sent = self._sent(events)
        self._predicted += float(self._deceived(events, sent).sum())
        self._filters += sum(map(len, sent.filters))
        self._packets += len(sent.filters)
        self._events += len(np.unique(sent.rows))
        return sent.packets()

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return self.controller.tables()

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        return self.controller.verify(tables)

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        return self.controller.explain(host, values)

    def quote(self, host: str, wanted: Filter) -> Quote:
        """Price a subscription by making it; the plane is given up for it."""
        controller = self.controller
        offers = offers_of(controller.advertisements.values())
        told = tuple(publisher for publisher in holders(wanted, offers) if publisher != host)
        before = {where: set(some) for where, some in controller.ports.entries.items()}
        name = next(name for name in map(str, count()) if name not in controller.subscriptions)
        outcome = self.submit([Request(Op.SUBSCRIBE, name, host, wanted)])
        entries, operations = Counter[str](), Counter[str]()
        for where, some in controller.ports.entries.items():
            if some != before[where]:
                entries[where.switch] += len(some) - len(before[where])
                operations[where.switch] += len(some ^ before[where])
        reason = str(outcome.refused[0][1]) if outcome.refused else None
        return Quote(entries, operations, EMPTY, self._unwanted_share(host, wanted), reason, told)

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        raise BadInput(
            "labels are Bloom filters of what events match, and there are no dz to be followed; right is a scenario "
            "with header 'ipv6' or 'ipv4', or `flowsieve run`, which sends the events"
        )

    def figures(self) -> dict[str, Any]:
        labels, held = self.controller.labelling.labels, self.controller.held
        return {
            "bits": labels.m,
            "coarsened": {},
            "bits_per_filter": labels.k,
            "filters": len(held),
            "merged_entries": self.controller.ports.merged,
            "filters_per_packet": self._filters / self._packets if self._packets else 0.0,
            "packets_per_event": self._packets / self._events if self._events else 0.0,
            "predicted_false_positives": self._predicted,
        }

    def _sent(self, events: EventBatch) -> BloomPackets:
        controller = self.controller
        return bloom_packets(events, controller.held, controller.labelling.labels, controller.copies)

    def _deceived(self, events: EventBatch, sent: BloomPackets) -> NDArray[np.float64]:
        controller = self.controller
        entries = controller.ports.entries
        return deceived(sent.sent(events), len(events), controller.labelling, controller.held, entries)

    def _unwanted_share(self, host: str, wanted: Filter) -> float:
        """The share of what a filter's bits bring to its host that the filter does not match.

        A filter that was refused, or that others of the host cover, brings nothing.
        """
        text = canonical(wanted)
        if text not in self.controller.held.wanted.get(host, ()):
            return 0.0
        events = traffic(self._scenario, self.controller.advertisements.values())
        events = events.take(events.hosts != host)
        sent, pattern = self._sent(events), self.controller.labelling.labels.pattern(text)
        brought = [
            row for row, bits in zip(sent.rows.tolist(), sent.bits, strict=True) if not pattern & ~bits
        ]
        if not brought:
            return 0.0
        return float(1 - wanted.matches_batch(events.take(np.unique(brought))).mean())
