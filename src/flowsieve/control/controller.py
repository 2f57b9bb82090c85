"""The controller: carries out on switches what the state decides, and believes what they acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches import Switches, Ticket
from flowsieve.errors import FlowsieveError, SwitchError
from flowsieve.flow.diff import Change, FlowOp, Kind, Ports, apply_changes, changes_between, flow_op
from flowsieve.flow.entry import Flow, content_flow
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
        self._unknown: set[str] = (
            set()
        )  # switches whose tables have to be read before anything builds on them
        self._partitions = [dz for dz, _ in state.trees]

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Serve a slice of requests; on return every switch has acknowledged what follows from it.

        Advertisements that end shrink late: what their publishers sent before has to arrive first. If a
        switch fails, its error is raised once all have answered; the next slice reads its table back and makes
        up for what is undone.
        """
        outcome = self.state.step(requests)
        if any(not request.op.adding for request in requests):
            self.switches.settle()
        self._carry_out(outcome.changes)
        return outcome

    def repair(self) -> int:
        """Read all tables back and set right what differs from what they should be; how many operations it took."""
        before = self.operations
        self._unknown = set(self.state.topology.switches)
        self._carry_out({})
        return self.operations - before

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

    def _carry_out(self, changes: Mapping[str, list[Change]]) -> None:
        """Have the switches make the changes, and make up for what those that failed before have left undone."""
        failed: dict[str, FlowsieveError] = {}
        under_way: list[tuple[Ticket, list[Change], int]] = []
        for switch in sorted(self._unknown | changes.keys()):
            try:
                strays = self._read_back(switch) if switch in self._unknown else []
            except SwitchError as error:
                failed[switch] = error
                continue
            wanted = changes.get(switch, [])
            if switch in self._unknown:
                wanted = changes_between(self._believed[switch], self.state.table(switch))
            steps = ordered(self._believed[switch], wanted, self.state.settings.capacity, self._partitions)
            ops = strays + [flow_op(step, self.tag) for step in steps]
            under_way.append((self.switches.apply(switch, ops), steps, len(strays)))
        self.switches.settle()
        for ticket, steps, strays_first in under_way:
            self.operations += ticket.done
            apply_changes(self._believed[ticket.switch], steps[: max(0, ticket.done - strays_first)])
            if ticket.error is not None:
                failed[ticket.switch] = ticket.error
        self._unknown = set(failed)
        for reason in failed.values():
            raise reason

    def _read_back(self, switch: str) -> list[FlowOp]:
        """Believe what a switch really holds; the operations that remove what is no entry of ours from our groups."""
        held: dict[Dz, Ports] = {}
        strays: list[FlowOp] = []
        for flow in self.switches.read(switch):
            if not self.tag.group.covers(flow.match.destination):
                continue
            dz = self.tag.dz(flow.match.destination)
            if flow == content_flow(self.tag, dz, flow.ports):
                held[dz] = flow.ports
            else:
                strays.append(FlowOp(Kind.REMOVE, flow))
        self._believed[switch] = held
        return strays
