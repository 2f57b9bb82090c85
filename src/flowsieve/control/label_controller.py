"""The controller of a network whose labels name receivers: tables follow from the network, and requests change none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsieve.content.schema import Schema
from flowsieve.control.request import Request
from flowsieve.control.request_check import check_requests
from flowsieve.control.state import Outcome
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_diff import label_ops, within
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import WHOLE
from flowsieve.southbound.fabric import Switches


class LabelController:
    """All interests, which publishers match events against, and the switches, whose tables `repair` makes once.

    An interest's dz are all of the space: labels know nothing of contents.
    """

    def __init__(self, labelling: Labelling, schema: Schema, switches: Switches) -> None:
        self.labelling = labelling
        self.schema = schema
        self.switches = switches
        self.operations = 0
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Take a slice of requests; no table changes. A bad request raises before anything is changed."""
        check_requests(requests, self.labelling.topology, self.labelling.trees, self.interests)
        for request in requests:
            book = self.interests(request.op.side)
            if request.op.adding:
                book[request.id] = Interest(request.id, request.endpoint, request.filter, WHOLE)
            else:
                del book[request.id]
        return Outcome({})

    def interests(self, side: Side) -> dict[str, Interest]:
        """All of one side, by id."""
        return self.subscriptions if side is Side.SUBSCRIBER else self.advertisements

    def repair(self) -> int:
        """Make all tables what they should be, whatever the switches hold; how many operations it took."""
        before = self.operations
        wanted, group = self.labelling.tables(), self.labelling.labels.tag.group
        changes = {
            switch: label_ops(within(group, held), wanted[switch]) for switch, held in self.tables().items()
        }
        self.operations += carried_out(self.switches, changes)
        return self.operations - before

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return {switch: self.switches.read(switch) for switch in self.labelling.topology.switches}

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> LabelView:
        """The network with the tables that its switches hold, or with others."""
        return LabelView(
            self.labelling.topology,
            self.labelling.trees,
            self.labelling.labels,
            self.schema,
            self.tables() if tables is None else tables,
            tuple(self.advertisements.values()),
            tuple(self.subscriptions.values()),
            self.labelling.deliveries,
        )

    def verify(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> Verdict:
        """Prove that tables, those in the switches unless others are given, bring labels to whom they name."""
        return verify_labels(self.view(tables))

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        """Show, hop by hop, why an event that a host publishes goes where it goes."""
        return explain_labels(self.view(), host, values)


def carried_out(switches: Switches, changes: Mapping[str, Sequence[FlowOp]]) -> int:
    """Have switches make changes, and wait until all have answered; how many operations it took.

    Raises what a switch that could not do them says.
    """
    tickets = [switches.apply(switch, ops) for switch, ops in changes.items() if ops]
    switches.settle()
    for ticket in tickets:
        if ticket.error is not None:
            raise ticket.error
    return sum(ticket.done for ticket in tickets)
