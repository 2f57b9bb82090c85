"""Two owners of disjoint parts of the space on the same switches: neither deletes nor reports what is the other's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.core import Guarding, not_guarded
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Asked
from flowsieve.control.memory.recovery import recover
from flowsieve.control.memory.sqlite_journal import SqliteJournal
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput, BadJournal
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import GuardSettings
from flowsieve.flow.owner import Owner
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.tables.compiler import Tables
from flowsieve.header.encoding import encoding_of
from flowsieve.header.match import parse_match
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import line
from flowsieve.network.tree import TreeMap, center_tree
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import SwitchEvent, TableChanged
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 255}})
PLAN = RegularPlan.make(SCHEMA)
ENCODING = encoding_of("ipv6")
LOW, HIGH = Owner(1, DzSet.of("0")), Owner(2, DzSet.of("1"))
BROAD = "32 <= a < 192"


def request(op: Op, id: str, host: str, text: str) -> Request:
    return Request(op, id, host, Filter.parse(text, SCHEMA))


class Shared:
    """A line of switches with a dispatcher for each owner, and what the fabric tells both of them."""

    def __init__(
        self,
        tables: Tables = Tables.OVERLAY,
        capacity: int | None = None,
        guarding: Guarding = not_guarded,
    ) -> None:
        self.topology = line(3)
        self.network = EmbeddedNetwork(self.topology, capacity)
        self.fabric = EmbeddedFabric(self.network, self.report)
        settings = Settings(tables=tables)
        self.dispatchers = [
            Dispatcher(
                ControlState(self.topology, PLAN, settings=settings, owner=owner),
                self.fabric,
                ENCODING,
                drain=0,
                guarding=guarding,
            )
            for owner in (LOW, HIGH)
        ]

    def report(self, event: SwitchEvent) -> None:
        for each in self.dispatchers:
            each.heard(event)

    async def ask(self, request: Request) -> None:
        for each in self.dispatchers:
            assert not (await each.submit(request)).refused

    def flows(self, owner: Owner) -> dict[str, tuple[Flow, ...]]:
        return {
            switch: tuple(flow for flow in self.network.read(switch) if flow.owner == owner.number)
            for switch in self.topology.switches
        }

    def check(self) -> None:
        """Each owner's entries are those of its own state, and lie in its part."""
        for each in self.dispatchers:
            for switch, flows in self.flows(each.state.owner).items():
                held = {ENCODING.dz_of(flow.match): flow.ports for flow in flows}
                assert held == each.state.table(switch)
                assert all(each.state.owner.part.covers(dz) for dz in held if dz is not None)


@asynccontextmanager
async def at_work(shared: Shared) -> AsyncIterator[Shared]:
    async with asyncio.timeout(300), shared.dispatchers[0], shared.dispatchers[1]:
        for switch in shared.topology.switches:
            shared.fabric.connect(switch)
        await shared.ask(request(Op.ADVERTISE, "all", "h0", "True"))
        await shared.ask(request(Op.SUBSCRIBE, "broad", "h2", BROAD))
        yield shared


@pytest.mark.parametrize("tables", Tables)
def test_two_owners_together_serve_what_one_of_all_would(tables: Tables) -> None:
    async def story() -> None:
        async with at_work(Shared(tables)) as shared:
            shared.check()
            assert all(any(shared.flows(owner).values()) for owner in (LOW, HIGH))
            sole = ControlState(shared.topology, PLAN)
            sole.step(
                [request(Op.ADVERTISE, "all", "h0", "True"), request(Op.SUBSCRIBE, "broad", "h2", BROAD)]
            )
            everything = {switch: shared.network.read(switch) for switch in shared.topology.switches}
            view = sole.view(ENCODING, everything)
            assert verify(view).holds
            for dispatcher in shared.dispatchers:
                assert (await dispatcher.verify()).holds

    asyncio.run(story())


def test_an_owner_that_reads_all_tables_again_leaves_the_others_alone() -> None:
    async def story() -> None:
        async with at_work(Shared()) as shared:
            before = {switch: shared.network.read(switch) for switch in shared.topology.switches}
            for dispatcher in shared.dispatchers:
                assert await dispatcher.repair() == 0
            assert before == {switch: shared.network.read(switch) for switch in shared.topology.switches}

    asyncio.run(story())


def test_what_an_owner_ends_stays_in_force_for_the_other() -> None:
    async def story() -> None:
        async with at_work(Shared()) as shared:
            kept = shared.flows(HIGH)
            await shared.dispatchers[0].submit(Request(Op.UNSUBSCRIBE, "broad", "h2"))
            assert not any(shared.flows(LOW).values())
            assert shared.flows(HIGH) == kept

    asyncio.run(story())


def test_tables_that_are_shown_hold_no_entry_of_another_owner() -> None:
    async def story() -> None:
        async with at_work(Shared()) as shared:
            for dispatcher, owner in zip(shared.dispatchers, (LOW, HIGH), strict=True):
                assert await dispatcher.tables() == shared.flows(owner)

    asyncio.run(story())


def test_a_stray_entry_is_removed_by_the_owner_of_its_part_alone() -> None:
    async def story() -> None:
        async with at_work(Shared()) as shared:
            stray = Flow(parse_match("ff0e:8000::/24"), 1008, (Output(1),), owner=None)
            shared.network.apply("s1", [FlowOp(OpKind.INSTALL, stray)])
            assert await shared.dispatchers[0].repair() == 0
            assert stray in shared.network.read("s1")
            assert await shared.dispatchers[1].repair() == 1
            assert stray not in shared.network.read("s1")
            shared.check()

    asyncio.run(story())


def test_a_change_of_the_others_entries_is_no_reason_to_read_a_table() -> None:
    async def story() -> None:
        async with at_work(Shared()) as shared:
            low, high = shared.dispatchers
            shared.report(TableChanged("s1", frozenset({HIGH.number})))
            assert "s1" not in low.troubles and "s1" in high.troubles
            shared.report(TableChanged("s1", frozenset({None})))
            assert "s1" in low.troubles
            await asyncio.gather(low.settled(), high.settled())

    asyncio.run(story())


def test_the_room_that_others_take_is_not_an_owners_own() -> None:
    async def story() -> None:
        shared = Shared(capacity=12)
        async with at_work(shared):
            taken = len(shared.flows(HIGH)["s1"])
            for number in range(40):
                wanted = request(Op.SUBSCRIBE, f"q{number}", "h2", f"a == {3 * number}")
                await shared.dispatchers[0].submit(wanted)
            capacity = shared.dispatchers[0].state.capacity("s1")
            assert capacity is not None and capacity <= 12 - taken
            assert len(shared.flows(HIGH)["s1"]) == taken
            shared.check()
            assert (await shared.dispatchers[0].verify()).holds

    asyncio.run(story())


def test_each_owner_guards_its_part_and_leaves_the_others_guard_alone() -> None:
    async def story() -> None:
        shared = Shared(guarding=lambda topology: GuardSettings())
        async with at_work(shared):
            guards, port = shared.fabric.guards, shared.topology.port("s0", "h0")

            def admitted(owner: Owner) -> tuple[str, ...]:
                (gate,) = (each for each in guards["s0", owner.number].gates if each.port == port)
                return tuple(map(str, gate.admitted))

            assert (admitted(LOW), admitted(HIGH)) == (("ff0e::/17",), ("ff0e:8000::/17",))
            await shared.dispatchers[0].submit(Request(Op.UNADVERTISE, "all", "h0"))
            await shared.dispatchers[0].settled()
            assert (admitted(LOW), admitted(HIGH)) == ((), ("ff0e:8000::/17",))
            shared.fabric.restart("s0")
            await asyncio.gather(*(each.settled() for each in shared.dispatchers))
            assert (admitted(LOW), admitted(HIGH)) == ((), ("ff0e:8000::/17",))

    asyncio.run(story())


def test_a_tree_that_reaches_beyond_an_owners_part_is_refused() -> None:
    topology = line(2)
    with pytest.raises(BadInput, match="reaches beyond what owner 1 has"):
        ControlState(topology, PLAN, TreeMap.single(center_tree(topology)), owner=LOW)


def test_a_number_that_no_cookie_has_room_for_is_refused() -> None:
    with pytest.raises(BadInput, match="65536"):
        Owner(1 << 16, WHOLE)


def test_each_owner_has_a_journal_of_its_own(tmp_path: Path) -> None:
    async def story() -> None:
        path, wanted = tmp_path / "low.db", request(Op.SUBSCRIBE, "broad", "h2", BROAD)
        journal = SqliteJournal(path, "base", owner=LOW)
        await journal.append([Asked(request(Op.ADVERTISE, "all", "h0", "True")), Asked(wanted)])
        await journal.close()
        with pytest.raises(BadJournal, match="is the memory of owner '1 0', not of '2 1'"):
            SqliteJournal(path, "base", owner=HIGH)
        again = SqliteJournal(path, "base", owner=LOW)
        state, _ = recover(await again.load(SCHEMA), partial(ControlState, line(3), PLAN, owner=LOW))
        await again.close()
        assert LOW.part.covers_set(state.subscriptions["broad"].dz)
        assert state.subscriptions["broad"].filter == replace(wanted).filter

    asyncio.run(story())
