"""The controller: carries out on switches what the state decides, and believes what they acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches.belief import Belief
from flowsieve.errors import FlowsieveError, SwitchError
from flowsieve.flow.diff import Change, Ports, changes_between
from flowsieve.flow.entry import Flow
from flowsieve.flow.proof.explain import Explanation, explain
from flowsieve.flow.proof.verify import Verdict, verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
from flowsieve.southbound.fabric import Switches, Ticket


class Controller:
    """One state, one set of switches."""

    def __init__(self, state: ControlState, switches: Switches, encoding: Encoding) -> None:
        self.state = state
        self.switches = switches
        self.encoding = encoding
        self.operations = 0
        self._beliefs = {name: Belief(encoding, owner=state.owner) for name in state.topology.switches}
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

    def become(
        self, state: ControlState, encoding: Encoding, rename: Callable[[Dz], Dz | None] = lambda dz: dz
    ) -> dict[str, list[Change]]:
        """Go on with another state of the same network; what its tables ask for, to be carried out.

        An encoding may have other names for the same entries: `rename` says which.
        """
        before = {switch: self.state.table(switch) for switch in self.state.topology.switches}
        self.state, self.encoding = state, encoding
        self._partitions = [dz for dz, _ in state.trees]
        found = {}
        for switch, table in before.items():
            self._beliefs[switch].recode(encoding, rename)
            named = {now: ports for dz, ports in table.items() if (now := rename(dz)) is not None}
            if changes := changes_between(named, state.table(switch)):
                found[switch] = changes
        return found

    def carry_out(self, changes: Mapping[str, list[Change]]) -> None:
        """Have switches make changes; on return they have acknowledged them. Errors as in `submit`."""
        self._carry_out(changes)

    def repair(self) -> int:
        """Read all tables back and set right what differs from what they should be; how many operations it took."""
        before = self.operations
        for belief in self._beliefs.values():
            belief.known = False
        self._carry_out({})
        return self.operations - before

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return {switch: self.switches.read(switch) for switch in self.state.topology.switches}

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        """The network with the tables that its switches hold, or with others."""
        return self.state.view(self.encoding, self.tables() if tables is None else tables)

    def verify(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> Verdict:
        """Prove that tables, those in the switches unless others are given, do what all interests ask for."""
        return verify(self.view(tables))

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        """Show, hop by hop, why an event that a host publishes goes where it goes."""
        return explain(self.view(), host, values)

    def believed(self, switch: str) -> dict[Dz, Ports]:
        """The content entries that a switch has acknowledged."""
        return dict(self._beliefs[switch].held)

    def _carry_out(self, changes: Mapping[str, list[Change]]) -> None:
        """Have the switches make the changes, and make up for what those that failed before have left undone."""
        failed: list[FlowsieveError] = []
        under_way: list[tuple[Ticket, Sequence[Change], int]] = []
        unknown = {switch for switch, belief in self._beliefs.items() if not belief.known}
        for switch in sorted(unknown | changes.keys()):
            belief, wanted, strays = self._beliefs[switch], changes.get(switch, []), []
            if not belief.known:
                try:
                    strays = belief.read(self.switches.read(switch))
                except SwitchError as error:
                    failed.append(error)
                    continue
                wanted = changes_between(belief.held, self.state.table(switch))
            steps = belief.steps(wanted, self.state.capacity(switch), self._partitions)
            under_way.append((self.switches.apply(switch, [*strays, *steps]), steps.changes, len(strays)))
        self.switches.settle()
        for ticket, changed, strays_first in under_way:
            self.operations += ticket.done
            belief = self._beliefs[ticket.switch]
            belief.acknowledge(changed[: max(0, ticket.done - strays_first)])
            if ticket.error is not None:
                belief.known = False
                failed.append(ticket.error)
        for reason in failed:
            raise reason
