"""Real switches for callers without an event loop: `Switches`, as the embedded network is.

The connections, an `OpenFlowFabric`, live on an asyncio loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Self, TypeVar

from flowsieve.errors import FlowsieveError, SwitchError
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.southbound.fabric import Ticket
from flowsieve.southbound.openflow.background import Background
from flowsieve.southbound.openflow.fabric import OpenFlowFabric

T = TypeVar("T")


class OpenFlowSwitches:
    """The switches of a fabric, with tickets.

    A batch is carried out as a whole or not at all: a ticket with an error has nothing done. After an
    `Unacknowledged` error a switch takes no batch until it was read. What the fabric reports, it reports on the
    thread of the connections.

    >>> OpenFlowSwitches(OpenFlowFabric({"s1": "unix:/run/lab/s1.mgmt"})).apply("s2", [])
    Traceback (most recent call last):
    flowsieve.errors.BadTopology: there is no switch 's2'; there are 's1'
    """

    def __init__(self, fabric: OpenFlowFabric) -> None:
        self.fabric = fabric
        self._began = time.monotonic()
        self._unanswered = 0
        self._answered = threading.Condition()
        self._background = Background(self._keep_connected, "openflow")

    # Beginning and end.

    def start(self) -> None:
        """Begin to dial and to listen."""
        self._background.start()

    def close(self) -> None:
        """Give up all connections; the switches keep their entries."""
        self._background.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def wait_connected(self, seconds: float = 3.0) -> None:
        """Wait until all switches are connected; raises an error that names those that are not."""
        self.call(self.fabric.wait_connected(seconds))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the thread of the connections, such as `fabric.ports("s1")`, and wait for what comes out."""
        return self._background.call(work)

    # What a controller asks of it.

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations; the ticket is filled in when it has answered, or should have."""
        ticket, batch = Ticket(switch), tuple(ops)
        self.fabric.check(switch, batch)
        with self._answered:
            self._unanswered += 1
        try:
            self._background.submit(self._carry_out(ticket, batch))
        except SwitchError as error:
            self._close_ticket(ticket, 0, error)
        return ticket

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now, of ours and within our groups, in the order of their matches.

        Entries there that no `Flow` can describe are removed on the way.
        """
        self.fabric.check(switch, ())
        return self.call(self.fabric.read(switch))

    def settle(self) -> None:
        """Wait until every ticket is answered, or was given up."""
        with self._answered:
            while not self._answered.wait_for(lambda: not self._unanswered, 1.0):
                if not self._background.running:
                    return  # nobody is left to answer

    # On the thread of the connections.

    async def _keep_connected(self, ready: Callable[[], None]) -> None:
        async with self.fabric:
            ready()
            await asyncio.Event().wait()  # until cancelled

    async def _carry_out(self, ticket: Ticket, ops: Sequence[FlowOp]) -> None:
        ended: FlowsieveError | None
        done, ended = 0, SwitchError(f"the connection to switch {ticket.switch} was closed meanwhile")
        try:
            await self.fabric.apply(ticket.switch, ops)
            done, ended = len(ops), None
        except FlowsieveError as reason:
            ended = reason
        finally:
            self._close_ticket(ticket, done, ended)

    def _close_ticket(self, ticket: Ticket, done: int, error: FlowsieveError | None) -> None:
        ticket.done, ticket.error = done, error
        ticket.done_at = time.monotonic() - self._began
        with self._answered:
            self._unanswered -= 1
            self._answered.notify_all()
