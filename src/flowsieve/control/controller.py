"""The controller: carries out on switches what the state decides, and believes what they acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches import Switches, Ticket
from flowsieve.flow.diff import Change, Ports, apply_changes, changes_between, flow_op
from flowsieve.flow.entry import Flow
from flowsieve.flow.explain import Explanation, explain
from flowsieve.flow.order import ordered
from flowsieve.flow.verify import Verdict, verify
from flowsieve.header.tag import Tag
from flowsieve.index.dz import Dz


class Controller:
    """One state, one set of switches."""

    def __init__(self, state: ControlState, switches: Switches, tag: Tag) -> None:
        self.state = state
        self.switches = switches
        self.tag = tag
        self.operations = 0
        self._believed: dict[str, dict[Dz, Ports]] = {name: {} for name in state.topology.switches}
        self._behind: set[str] = set()  # switches that did not do all they were told

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Serve a slice of requests; on return every switch has acknowledged what follows from it.

        Advertisements that end shrink late: what their publishers sent before has to arrive first. If a
        switch fails, its error is raised once all have answered; the next slice makes up for what is undone.
        """
        outcome = self.state.step(requests)
        if any(not request.op.adding for request in requests):
            self.switches.settle()
        changes = dict(outcome.changes)
        for switch in self._behind:
            changes[switch] = changes_between(self._believed[switch], self.state.table(switch))
        under_way = [self._carry_out(switch, wanted) for switch, wanted in changes.items()]
        self.switches.settle()
        for ticket, steps in under_way:
            self.operations += ticket.done
            apply_changes(self._believed[ticket.switch], steps[: ticket.done])
        failed = {ticket.switch: ticket.error for ticket, _ in under_way if ticket.error is not None}
        self._behind = set(failed)
        for error in failed.values():
            raise error
        return outcome

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return {switch: self.switches.read(switch) for switch in self.state.topology.switches}

    def verify(self, tables: Mapping[str, Iterable[Flow]] | None = None) -> Verdict:
        """Prove that tables, those in the switches unless others are given, do what all interests ask for."""
        state = self.state
        return verify(
            state.topology,
            state.plan,
            self.tag,
            self.tables() if tables is None else tables,
            list(state.advertisements.values()),
            list(state.subscriptions.values()),
        )

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        """Show, hop by hop, why an event that a host publishes goes where it goes."""
        state = self.state
        return explain(
            state.topology,
            state.plan,
            self.tag,
            self.tables(),
            list(state.advertisements.values()),
            list(state.subscriptions.values()),
            host,
            values,
            state.trees,
        )

    def believed(self, switch: str) -> dict[Dz, Ports]:
        """The content entries that a switch has acknowledged."""
        return dict(self._believed[switch])

    def _carry_out(self, switch: str, changes: list[Change]) -> tuple[Ticket, list[Change]]:
        partitions = [dz for dz, _ in self.state.trees]
        steps = ordered(self._believed[switch], changes, self.state.settings.capacity, partitions)
        return self.switches.apply(switch, [flow_op(step, self.tag) for step in steps]), steps
