"""A controller over the embedded network that is killed and started again, and what it is watched for.

After every single change of a table, a fence or a link it is proved that no packet could loop or arrive twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.core import DetourRoom, no_detours
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Entry, Past, Snapshot, entry_from_json, entry_to_json
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.errors import JournalError
from flowsieve.flow.detours import Protection
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import content_flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.bridges import misleading
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
EVERYTHING = Filter.parse("True", SCHEMA)
PATIENCE = 60.0  # on a busy machine


class WatchedFabric(EmbeddedFabric):
    """Proves after every change that no packet could loop or arrive twice on the links that carry any.

    What a switch has carried out is known to the controller a moment later: it may be killed in between.
    """

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        try:
            await super().apply(switch, ops)
        finally:
            self.check()
        await asyncio.sleep(0)

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        try:
            await super().fence(switch, port, closed)
        finally:
            self.check()
        await asyncio.sleep(0)

    async def protect(self, switch: str, protection: Protection) -> None:
        try:
            await super().protect(switch, protection)
        finally:
            self.check()
        await asyncio.sleep(0)

    def set_link(self, a: str, b: str, up: bool) -> None:
        super().set_link(a, b, up)
        self.check()

    def restart(self, switch: str) -> None:
        super().restart(switch)
        self.check()

    @property
    def down(self) -> frozenset[Edge]:
        return frozenset(self._down)

    @property
    def fenced(self) -> dict[str, set[int]]:
        return {switch: ports for switch, ports in self._fences.items() if ports}

    def check(self) -> None:
        topology = self.network.topology
        tables = {name: self.network.read(name) for name in topology.switches}
        offers = [
            Interest(host, host, EVERYTHING, PLAN.cover(EVERYTHING, 0, None)) for host in topology.hosts
        ]
        view = NetworkView(topology, PLAN, ENCODING, tables, offers, [], self.closed)
        verdict = verify(view)
        assert not verdict.duplicates and not verdict.loops, verdict
        assert not list(misleading(replace(view, protections=self._protections)))


class Memory:
    """A journal that outlives its controllers, and whose disk may be full, with room set aside or without."""

    def __init__(self) -> None:
        self.full = False
        self.reserve = True
        self.number = 0
        self._kept: tuple[int, list[dict[str, Any]]] = (0, [])  # after which entry, and what
        self._before: list[dict[str, Any]] = []  # kept in a former life
        self._snapshot: Snapshot | None = None
        self._entries: list[tuple[int, dict[str, Any]]] = []

    @property
    def length(self) -> int:
        return len(self._entries)

    @property
    def past(self) -> Past:
        after, kept = self._kept
        self._before = kept if after == self.number else []
        bodies = [*(data for _, data in self._entries), *self._before]
        return Past(self._snapshot, tuple(entry_from_json(data, SCHEMA) for data in bodies))

    async def keep(self, entries: Sequence[Entry]) -> None:
        await asyncio.sleep(0)
        if not self.reserve:
            raise JournalError("nor is there room beside it")
        self._kept = self.number, [*self._before, *map(_body, entries)]

    async def append(self, entries: Sequence[Entry]) -> int:
        await asyncio.sleep(0)
        if self.full:
            raise JournalError("the disk is full")
        for body in [*self._before, *map(_body, entries)]:
            self.number += 1
            self._entries.append((self.number, body))
        self._before = []
        number = self.number
        await asyncio.sleep(0)
        return number

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        if self.full:
            raise JournalError("the disk is full")
        if self._before:
            number = await self.append(())
        self._snapshot = json.loads(json.dumps(snapshot))
        self._entries = [each for each in self._entries if each[0] > number]


def _body(entry: Entry) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(entry_to_json(entry)))
    return body


class Lives:
    """A network that outlives its controllers; `away` are the switches that have no way to them."""

    def __init__(
        self,
        topology: Topology,
        trees: TreeMap | None = None,
        damping: DampingSettings | None = None,
        detours: bool = False,
    ) -> None:
        self.topology = topology
        self.memory = Memory()
        self.fabric = WatchedFabric(EmbeddedNetwork(topology), lambda event: None)
        self.away: set[str] = set()
        self.pending: list[asyncio.Task[object]] = []
        self.dispatcher: Dispatcher
        self._trees, self._damping = trees, damping
        self._detour_room: DetourRoom = (lambda topology: None) if detours else no_detours
        self._number = 0

    async def start(self, *, compact: bool = False) -> None:
        """Start a controller from what was written down; switches connect."""
        state, ledger = recover(
            self.memory.past, lambda trees: ControlState(self.topology, PLAN, trees or self._trees)
        )
        self.dispatcher = Dispatcher(
            state,
            self.fabric,
            ENCODING,
            patience=2 * PATIENCE,
            drain=0,
            journal=self.memory,
            ledger=ledger,
            damping=self._damping,
            detour_room=self._detour_room,
        )
        for switch in self.topology.switches:
            self.fabric.disconnect(switch)
        self.fabric.report = self.dispatcher.heard
        await self.dispatcher.__aenter__()
        if compact:
            with suppress(JournalError):
                await self.dispatcher.scribe.compact(lambda: snapshot(state, ledger))
        self.connect()

    async def kill(self) -> None:
        """What it was at stays undone; switches go on without it."""
        for task in self.pending:
            task.cancel()
        self.fabric.report = lambda event: None
        await self.dispatcher.__aexit__(None, None, None)
        await asyncio.gather(*self.pending, return_exceptions=True)
        self.pending.clear()

    def connect(self, order: Iterable[str] | None = None) -> None:
        """Have all switches connect that have a way."""
        for switch in self.topology.switches if order is None else order:
            if switch not in self.away:
                self.fabric.connect(switch)

    def strand(self, switch: str) -> None:
        """A switch loses its controller, and goes on forwarding."""
        self.away.add(switch)
        self.fabric.disconnect(switch)

    def ask(self, op: Op, host: str, text: str) -> asyncio.Task[object]:
        """Ask for something, without waiting for it."""
        self._number += 1
        request = Request(op, str(self._number), host, Filter.parse(text, SCHEMA))
        return self.submit(request)

    def submit(self, request: Request) -> asyncio.Task[object]:
        task: asyncio.Task[object] = asyncio.create_task(self.dispatcher.submit(request))
        self.pending.append(task)
        return task

    async def populate(self) -> None:
        """All hosts publish and want everything."""
        for host in self.topology.hosts:
            for op in (Op.ADVERTISE, Op.SUBSCRIBE):
                self.ask(op, host, "True")
        await asyncio.gather(*self.pending)

    async def check(self) -> None:
        """What is installed is proved, and is what it should be."""
        await self.dispatcher.settled()
        verdict = await self.dispatcher.verify()
        assert verdict.holds, verdict
        state = self.dispatcher.state
        for switch in self.topology.switches:
            aim = {content_flow(ENCODING, dz, ports) for dz, ports in state.table(switch).items()}
            assert set(self.fabric.network.read(switch)) == aim, switch
