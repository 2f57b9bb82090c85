"""The controller: carries what the state decides out on switches, and believes only what they acknowledged."""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome
from flowsieve.control.switches import Switches, Ticket
from flowsieve.flow.diff import Change, Ports, apply_changes, flow_op
from flowsieve.flow.order import ordered
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

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Serve a slice of requests; on return every switch has acknowledged what follows from it.

        Advertisements that end shrink late: what their publishers sent before has to arrive first.
        """
        outcome = self.state.step(requests)
        if any(not request.op.adding for request in requests):
            self.switches.settle()
        under_way = [self._carry_out(switch, changes) for switch, changes in outcome.changes.items()]
        self.switches.settle()
        for ticket, steps in under_way:
            self.operations += ticket.done
            apply_changes(self._believed[ticket.switch], steps[: ticket.done])
            if ticket.error is not None:
                raise ticket.error
        return outcome

    def believed(self, switch: str) -> dict[Dz, Ports]:
        """The content entries that a switch has acknowledged."""
        return dict(self._believed[switch])

    def _carry_out(self, switch: str, changes: list[Change]) -> tuple[Ticket, list[Change]]:
        partitions = [dz for dz, _ in self.state.trees]
        steps = ordered(self._believed[switch], changes, self.state.settings.capacity, partitions)
        return self.switches.apply(switch, [flow_op(step, self.tag) for step in steps]), steps
