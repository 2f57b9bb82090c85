"""A scenario whose packets are addressed by their receivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowsieve.client.batch_packets import Packets
from flowsieve.client.label_packets import holders, labelled_packets, offers_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.label_controller import LabelController
from flowsieve.control.request import Request
from flowsieve.control.state import Outcome
from flowsieve.errors import BadInput
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.view import NetworkView
from flowsieve.index.dzset import EMPTY
from flowsieve.scenario.index_section import ReceiverSection
from flowsieve.scenario.price import Quote
from flowsieve.scenario.read import Scenario
from flowsieve.southbound.fabric import Switches


class LabelPlane:
    """The plane of labels that name receivers: a `LabelController`, and publishers that match events themselves."""

    columns = ("src", "dst")

    def __init__(self, scenario: Scenario, index: ReceiverSection, switches: Switches) -> None:
        labelling = index.labelling(scenario.topology, scenario.host_sets)
        self.controller = LabelController(labelling, scenario.schema, switches)
        self.controller.repair()

    @property
    def operations(self) -> int:
        return self.controller.operations

    def submit(self, requests: Sequence[Request]) -> Outcome:
        return self.controller.submit(requests)

    def interests(self, side: Side) -> Mapping[str, Interest]:
        return self.controller.interests(side)

    def packets(self, events: EventBatch) -> Packets:
        return labelled_packets(
            events,
            self.controller.advertisements.values(),
            self.controller.subscriptions.values(),
            self.controller.labelling.labels,
        )

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return self.controller.tables()

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        return self.controller.verify(tables)

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        return self.controller.explain(host, values)

    def quote(self, host: str, wanted: Filter) -> Quote:
        """No table changes and nothing unwanted comes; but publishers learn of the filter."""
        offers = offers_of(self.controller.advertisements.values())
        told = tuple(publisher for publisher in holders(wanted, offers) if publisher != host)
        return Quote({}, {}, EMPTY, 0.0, None, told)

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        raise BadInput(
            "labels name receivers, and there are no dz to be followed; right is a scenario with header "
            "'ipv6' or 'ipv4', or `flowsieve run`, which sends the events"
        )

    def figures(self) -> dict[str, Any]:
        labels, trees = self.controller.labelling.labels, self.controller.labelling.trees
        return {"bits": labels.bits, "coarsened": {}, "sets": len(labels.sets), "set_trees": len(trees)}
