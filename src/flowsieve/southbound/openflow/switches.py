"""Real switches as a southbound: what the embedded network is in this process, over OpenFlow.

The connections live on an asyncio loop in a thread of its own; a controller calls from its own thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType

from flowsieve.control.switches import Ticket
from flowsieve.errors import BadTopology, FlowsieveError, SwitchError, nearest
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.header.address import Prefix
from flowsieve.header.tag import POOLS
from flowsieve.southbound.openflow.address import Address
from flowsieve.southbound.openflow.background import Background
from flowsieve.southbound.openflow.channel import Channel, Connected, Disconnected, SwitchEvent
from flowsieve.southbound.openflow.entries import within
from flowsieve.southbound.openflow.lag import Datapath
from flowsieve.southbound.openflow.link import Link, Timing

GROUPS = tuple(tag.group for pool in POOLS.values() for tag in pool)
MAX_PORT = 0xFFFFFF00
MAX_PRIORITY = 0xFFFF


class OpenFlowSwitches:
    """Switches that are dialled at their addresses, or that dial us and tell their datapath ids.

    A batch is carried out as a whole or not at all: a ticket with an error has nothing done. After an
    `Unacknowledged` error a switch takes no batch until it was read. `control` is the control socket of the
    ovs-vswitchd that all the switches live in, if there is one: it knows when packets meet the new tables.
    `report` hears of connections, ports and packets, on the thread of the connections; it must not wait.

    >>> OpenFlowSwitches({"s1": "unix:/run/lab/s1.mgmt"}).read("s2")
    Traceback (most recent call last):
    flowsieve.errors.BadTopology: there is no switch 's2'; there are 's1'
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        listen: str | None = None,
        datapaths: Mapping[str, int] | None = None,
        groups: Iterable[Prefix] = GROUPS,
        timing: Timing | None = None,
        decrement: bool = True,
        control: str | None = None,
        report: Callable[[SwitchEvent], None] = lambda event: None,
    ) -> None:
        self.groups = tuple(groups)
        self.timing = timing or Timing()
        self._addresses = {switch: Address.parse(text) for switch, text in addresses.items()}
        self._listen = Address.parse(listen) if listen is not None else None
        self._datapaths = {number: switch for switch, number in (datapaths or {}).items()}
        self._decrement = decrement
        self._datapath = Datapath(Address.parse(control) if control is not None else None, self.timing.lag)
        self._report = report
        self._channels = {
            switch: Channel(switch, self.timing, decrement, self._heard)
            for switch in [*self._addresses, *self._datapaths.values()]
        }
        self._began = time.monotonic()
        self._unanswered = 0
        self._changed = threading.Condition()  # tickets were answered, or connections came and went
        self._background = Background(self._keep_connected, "openflow")

    # Beginning and end.

    def start(self) -> None:
        """Begin to dial and to listen."""
        self._background.start()

    def close(self) -> None:
        """Give up all connections; the switches keep their entries."""
        self._background.stop()

    def __enter__(self) -> OpenFlowSwitches:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait_connected(self, seconds: float = 3.0) -> None:
        """Wait until all switches are connected; raises an error that names those that are not."""
        with self._changed:
            self._changed.wait_for(lambda: not self._missing(), seconds)
        if missing := self._missing():
            raise SwitchError("; ".join(f"switch {c.switch} is not connected: {c.why_not}" for c in missing))

    # What a controller asks of it.

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations; the ticket is filled in when it has answered, or should have."""
        channel, ticket, batch = self._channel(switch), Ticket(switch), tuple(ops)
        _check(switch, batch)
        with self._changed:
            self._unanswered += 1
        try:
            self._background.submit(self._carry_out(channel, ticket, batch))
        except SwitchError as error:
            self._close_ticket(ticket, 0, error)
        return ticket

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now, of ours and within our groups, in the order of their matches.

        Those that no flow can say are left out; `expel` removes them.
        """
        entries = within(self._background.call(self._channel(switch).list_entries()), self.groups)
        return tuple(sorted(flow for entry in entries if (flow := entry.flow) is not None))

    def settle(self) -> None:
        """Wait until every ticket is answered, or was given up."""
        with self._changed:
            while not self._changed.wait_for(lambda: not self._unanswered, 1.0):
                if not self._background.running:
                    return  # nobody is left to answer

    # What only real switches need.

    def expel(self, switch: str) -> int:
        """Remove the entries within our groups that no flow can say; returns how many there were."""
        return self._background.call(self._channel(switch).expel(self.groups))

    def send_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch send a packet out of a port."""
        self._background.call(self._channel(switch).send_packet(port, data))

    @property
    def unknown(self) -> dict[str, str]:
        """The switches of which it is unknown what they hold, and why."""
        return {switch: c.unknown for switch, c in self._channels.items() if c.unknown is not None}

    # On the thread of the connections.

    async def _keep_connected(self, ready: Callable[[], None]) -> None:
        async with AsyncExitStack() as stack:
            if self._listen is not None:
                await stack.enter_async_context(await self._listen.listen(self._accept))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            for switch, address in self._addresses.items():
                tasks.create_task(self._channels[switch].keep_dialling(address))
            ready()
            await asyncio.Event().wait()  # until cancelled

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A switch has dialled us; which one it is, its datapath id says."""
        link = Link((reader, writer), self.timing, self._decrement)
        try:
            datapath = await link.greet()
        except (OSError, SwitchError):
            return  # no switch, or none that we can use
        if datapath in self._datapaths:
            await self._channels[self._datapaths[datapath]].serve(link)
        else:
            link.abort()

    async def _carry_out(self, channel: Channel, ticket: Ticket, ops: Sequence[FlowOp]) -> None:
        done: int = 0
        error: FlowsieveError | None = SwitchError(
            f"the connection to switch {ticket.switch} was closed meanwhile"
        )
        try:
            async with self._datapath.followed():
                await channel.apply(ops)
            done, error = len(ops), None
        except FlowsieveError as reason:
            error = reason
        finally:
            self._close_ticket(ticket, done, error)

    def _heard(self, event: SwitchEvent) -> None:
        if isinstance(event, Connected | Disconnected):
            with self._changed:
                self._changed.notify_all()
        self._report(event)

    def _close_ticket(self, ticket: Ticket, done: int, error: FlowsieveError | None) -> None:
        ticket.done, ticket.error = done, error
        ticket.done_at = time.monotonic() - self._began
        with self._changed:
            self._unanswered -= 1
            self._changed.notify_all()

    def _missing(self) -> list[Channel]:
        return [channel for channel in self._channels.values() if not channel.connected]

    def _channel(self, switch: str) -> Channel:
        if switch not in self._channels:
            few = ", ".join(map(repr, [*self._channels][:5]))
            hint = nearest(switch, self._channels) or f"; there are {few}"
            raise BadTopology(f"there is no switch {switch!r}{hint}")
        return self._channels[switch]


def _check(switch: str, ops: Sequence[FlowOp]) -> None:
    """Refuse what no message can say."""
    for op in ops:
        flow = op.flow
        if not 0 <= flow.priority <= MAX_PRIORITY:
            raise SwitchError(
                f"switch {switch} has no priority {flow.priority}; right is 0 to {MAX_PRIORITY}"
            )
        for action in flow.actions:
            if not 1 <= action.port <= MAX_PORT:
                raise SwitchError(f"switch {switch} has no port {action.port} for {flow.match.destination}")
