"""The operations of one switch, carried out one after the other at its own speed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from flowsieve.errors import FlowsieveError
from flowsieve.flow.diff import FlowOp
from flowsieve.southbound.embedded.clock import VirtualClock
from flowsieve.southbound.embedded.switch import Switch
from flowsieve.southbound.fabric import Ticket


class Worker:
    """Works off what a switch is asked to do; at no time per operation, before `take` returns."""

    def __init__(self, switch: Switch, clock: VirtualClock, seconds_per_op: float = 0.0) -> None:
        self.switch = switch
        self._clock = clock
        self._seconds_per_op = seconds_per_op
        self._inbox: deque[tuple[Ticket, deque[FlowOp]]] = deque()

    def take(self, ops: Iterable[FlowOp]) -> Ticket:
        """Accept operations."""
        ticket = Ticket(self.switch.name)
        idle = not self._inbox
        self._inbox.append((ticket, deque(ops)))
        if idle:
            self._go_on()
        return ticket

    def _go_on(self) -> None:
        """Close the tickets that are finished and begin with the next operation."""
        while self._inbox:
            ticket, ops = self._inbox[0]
            if not ops:
                ticket.done_at = self._clock.now
                self._inbox.popleft()
            elif self._seconds_per_op:
                self._clock.after(self._seconds_per_op, self._finish)
                return
            else:
                self._carry_out()

    def _finish(self) -> None:
        self._carry_out()
        self._go_on()

    def _carry_out(self) -> None:
        ticket, ops = self._inbox[0]
        try:
            self.switch.carry_out(ops.popleft())
            ticket.done += 1
        except FlowsieveError as error:
            ticket.error = error
            ops.clear()
