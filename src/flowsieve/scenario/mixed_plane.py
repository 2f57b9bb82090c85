"""A scenario in which packets of some hosts are addressed by their receivers, and those of others by their dz."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowsieve.client.batch_packets import Packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.request import Request
from flowsieve.control.state import Outcome
from flowsieve.errors import BadInput
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.mixed_view import MixedView
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.proving import explained, proved
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.view import NetworkView
from flowsieve.scenario.index_section import IndexSection
from flowsieve.scenario.label_plane import LabelPlane
from flowsieve.scenario.prefix_plane import PrefixPlane
from flowsieve.scenario.price import Quote, brought_by_dz, traffic
from flowsieve.scenario.read import Scenario
from flowsieve.southbound.fabric import Switches


class MixedPlane:
    """Two planes over the same switches, told apart by the tag: subscriptions are in both, advertisements in one.

    Entries for labels are there from the beginning, and dz make do with the room that they leave.
    """

    columns = LabelPlane.columns

    def __init__(self, scenario: Scenario, index: IndexSection, switches: Switches) -> None:
        assert index.label_hosts is not None and index.labels is not None
        self._scenario, self._labelled = scenario, index.label_hosts
        self._labels = LabelPlane(scenario, index.labels, switches)
        self._dz = PrefixPlane(scenario, index, switches)
        if scenario.capacity is not None:
            for switch, table in self._labels.tables().items():
                self._dz.state.bound(switch, max(0, scenario.capacity - len(table)))

    @property
    def operations(self) -> int:
        return self._dz.operations + self._labels.operations

    def submit(self, requests: Sequence[Request]) -> Outcome:
        outcome = self._dz.submit([each for each in requests if self._in_dz(each)])
        self._labels.submit(list(self._for_labels(requests, outcome)))
        return outcome

    def _in_dz(self, request: Request) -> bool:
        return request.op.side is Side.SUBSCRIBER or not self._labelled.hold(request.endpoint)

    def _for_labels(self, requests: Sequence[Request], outcome: Outcome) -> Iterator[Request]:
        """What is not refused, nor ends what was."""
        refused, gone = {id(request) for request, _ in outcome.refused}, set[str]()
        for request in requests:
            if request.op.side is Side.PUBLISHER:
                if self._labelled.hold(request.endpoint):
                    yield request
            elif id(request) in refused:
                gone.add(request.id)
            elif request.op.adding or request.id not in gone:
                yield request
            else:
                gone.remove(request.id)

    def interests(self, side: Side) -> Mapping[str, Interest]:
        if side is Side.SUBSCRIBER:
            return self._dz.interests(side)
        return {**self._dz.interests(side), **self._labels.interests(side)}

    def packets(self, events: EventBatch) -> Packets:
        labelled = np.array([self._labelled.hold(host) for host in events.hosts.tolist()], np.bool_)
        rows = np.flatnonzero(~labelled), np.flatnonzero(labelled)
        dz, labels = self._dz.packets(events.take(rows[0])), self._labels.packets(events.take(rows[1]))
        joined = np.concatenate((rows[0][dz.rows], rows[1][labels.rows]))
        order = np.argsort(joined, kind="stable")
        hi, lo = np.concatenate((dz.hi, labels.hi)), np.concatenate((dz.lo, labels.lo))
        return Packets(dz.family, joined[order], hi[order], lo[order])

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return self._dz.tables()

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        return proved(self._mixed_view(tables))

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        return explained(self._mixed_view(self.tables()), host, values)

    def _mixed_view(self, tables: Mapping[str, tuple[Flow, ...]]) -> MixedView:
        dz, labels = self._dz.view(tables), self._labels.controller.view(tables)
        every = list(self.interests(Side.PUBLISHER).values())
        return MixedView.of(replace(dz, advertisements=every), labels, self._labelled)

    def quote(self, host: str, wanted: Filter) -> Quote:
        """Entries for what others send by dz; of what names receivers nothing unwanted comes, but its publishers learn
        of the filter."""
        told = self._labels.quote(host, wanted).told
        quoted = self._dz.quote(host, wanted)
        brought, matched = brought_by_dz(self._scenario, self._dz.state, host, wanted, quoted.dz)
        named = traffic(self._scenario, self._labels.interests(Side.PUBLISHER).values())
        named = named.take((named.hosts != host) & wanted.matches_batch(named))
        share = (brought - matched) / (brought + len(named)) if brought else 0.0
        return replace(quoted, false_positive_share=share, told=told)

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        raise BadInput(
            "packets of some hosts name their receivers, and have no dz to be followed; right is a scenario without "
            "labels in [index], or `flowsieve run`, which sends the events"
        )

    def figures(self) -> dict[str, Any]:
        hosts = sum(map(self._labelled.hold, self._scenario.topology.hosts))
        labels = self._labels.figures()
        named = {key: labels[key] for key in ("sets", "set_trees")}
        return self._dz.figures() | named | {"label_hosts": hosts}
