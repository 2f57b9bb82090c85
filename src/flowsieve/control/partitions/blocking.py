"""Configurators as processes of whoever calls: orders go out, and the call returns when all are answered.

For one caller that waits, such as a scenario that is played. A process that dies is replaced, and its work done again.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType

from flowsieve.control.partitions.decided_elsewhere import Interests
from flowsieve.control.partitions.orders import Begin, answer_from_bytes, order_to_bytes
from flowsieve.control.partitions.pool import ConfiguratorPool
from flowsieve.control.partitions.table_rows import Rows
from flowsieve.control.partitions.wire import SIZE, length_of
from flowsieve.errors import FlowsieveError, Refused
from flowsieve.flow.diff import Change, Ports, joined
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

MODULE = "flowsieve.control.partitions.process"
MOST_DEATHS = 3  # in a row, without an answer in between
READ_BYTES = 1 << 20
LEAVING_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class _Process:
    process: subprocess.Popen[bytes]
    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)
    unsent: bytearray = field(default_factory=bytearray)  # it may have to be heard before it reads on


class ConfiguratorProcesses:
    """Some configurators, for the time of a `with` block; they decide in the place of a state (`Deciders`)."""

    def __init__(
        self, number: int, tables: Tables = Tables.OVERLAY, events: Rows | None = None, slice_size: int = 500
    ) -> None:
        self.pool = ConfiguratorPool(slice_size)
        self._number, self._tables, self._events = number, tables, events
        self._processes: dict[str, _Process] = {}
        self._names = count(1)
        self._deaths = 0
        self._untold: Mapping[str, list[Change]] = {}  # changes that came with a refusal
        self._switches: tuple[str, ...] = ()

    def __enter__(self) -> ConfiguratorProcesses:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> None:
        """Start the processes."""
        for _ in range(self._number):
            self._start()

    def end(self) -> None:
        """End the processes, and wait until they have ended."""
        for each in self._processes.values():
            each.connection.close()  # it ends then
        for each in self._processes.values():
            try:
                each.process.wait(LEAVING_SECONDS)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
        self._processes.clear()

    # What a state asks.

    def begin(
        self, topology: Topology, trees: TreeMap, room: Mapping[str, int], interests: Interests
    ) -> None:
        self._switches = topology.switches
        self.pool.begin(Begin(topology, trees, self._tables, room or None, self._events), interests)
        self._untold = self._worked()

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> Mapping[str, list[Change]]:
        self.pool.take(parts)
        changes = self._worked()
        refused = [why for _, why in self.pool.decided() if why is not None]
        if refused:
            self._untold = changes
            raise Refused(refused[0])
        return changes

    def rewire(self, trees: TreeMap) -> Mapping[str, list[Change]]:
        self.pool.rewire(trees)
        return self._worked()

    def bound(self, switch: str, room: int | None) -> Mapping[str, list[Change]]:
        self.pool.bound(switch, room)
        return self._worked()

    def _worked(self) -> dict[str, list[Change]]:
        """Have all decided that is to be; what tables change by that, and by what was not told before."""
        self.work()
        untold, self._untold = self._untold, {}
        changes = self.pool.changes()
        return joined(untold, changes) if untold else changes

    def table(self, switch: str) -> dict[Dz, Ports]:
        return self.pool.aim(switch)

    def size(self, switch: str) -> int:
        return self.pool.size(switch)

    def waste(self) -> dict[str, float]:
        return self.pool.waste

    # Processes.

    @property
    def connections(self) -> dict[int, socket.socket]:
        """By the ids of the processes."""
        return {each.process.pid: each.connection for each in self._processes.values()}

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        name = f"c{next(self._names)}"
        words = [sys.executable, "-m", MODULE, "--fd", str(theirs.fileno())]
        process = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        theirs.close()
        ours.setblocking(False)
        self._processes[name] = _Process(process, ours)
        self.pool.joined(name)

    def work(self, most: int = 0) -> None:
        """Have all decided that is to be, or all but so many parts."""
        self._send()
        while self.pool.undecided > most or not self.pool.ready:
            by_socket = {each.connection: name for name, each in self._processes.items()}
            full = [each.connection for each in self._processes.values() if each.unsent]
            readable, writable, _ = select.select(list(by_socket), full, [])
            for connection in readable:
                self._read(by_socket[connection])
            for connection in writable:
                if by_socket[connection] in self._processes:
                    self._push(by_socket[connection])
            self._send()

    def _send(self) -> None:
        while orders := self.pool.orders():
            for name, serial, order in orders:
                if name in self._processes:  # else it died meanwhile
                    self._processes[name].unsent += order_to_bytes(serial, order)
                    self._push(name)

    def _push(self, name: str) -> None:
        """Send what can be sent without waiting."""
        each = self._processes[name]
        try:
            while each.unsent:
                del each.unsent[: each.connection.send(each.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._replace(name)

    def _read(self, name: str) -> None:
        each = self._processes[name]
        try:
            data = each.connection.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._replace(name)
            return
        received = each.received
        received += data
        while len(received) >= SIZE and len(received) >= SIZE + (size := length_of(received[:SIZE])):
            body = bytes(received[SIZE : SIZE + size])
            del received[: SIZE + size]
            self._deaths = 0
            self.pool.answered(name, *answer_from_bytes(body))

    def _replace(self, name: str) -> None:
        """A configurator has died: another takes its place, and its work is done again."""
        dead = self._processes.pop(name)
        dead.connection.close()
        dead.process.kill()
        dead.process.wait()
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            raise FlowsieveError("configurators die again and again, so nothing can be decided")
        self._start()
        self.pool.left(name)
