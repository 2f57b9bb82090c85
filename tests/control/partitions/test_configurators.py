"""Configurators that connect to a dispatcher: only those who know the secret, and only as long as they make sense."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.partitions import configurators as module
from flowsieve.control.partitions.configurators import Configurators, SharingSettings
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.partitions.orders import Answer, answer_to_bytes, order_from_bytes
from flowsieve.control.partitions.ownership import OwnOwnership
from flowsieve.control.partitions.serving_orders import NotTrusted, greet, serve_orders
from flowsieve.control.partitions.table_rows import no_rows
from flowsieve.control.partitions.wire import (
    HELLO,
    NONCE,
    PROOF,
    SIZE,
    configurator_proof,
    dispatcher_proof,
    hello,
    length_of,
    nonce,
)
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import Refused
from flowsieve.flow.diff import Change, Ports, apply_changes
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring

PLAN = RegularPlan.make(Schema.parse({"a": {"type": "int", "min": 0, "max": 255}}))
RING = ring(4)
HOSTS = list(RING.hosts)
TREES = partition_trees(RING, 4)
SECRET = b"what all controllers of a network share"
PATIENCE = 20.0


def offered(id: str = "p") -> Request:
    return Request(Op.ADVERTISE, id, HOSTS[0], dz=DzSet.of(""))


def wanted(id: str, *dz: str) -> Request:
    return Request(Op.SUBSCRIBE, id, HOSTS[2], dz=DzSet.of(*dz))


@dataclass
class Place:
    """A dispatcher's side: configurators, the state that they decide for, and tables that follow at once."""

    there: Configurators
    state: ControlState
    tables: dict[str, dict[Dz, Ports]] = field(default_factory=lambda: {each: {} for each in RING.switches})
    workers: list[asyncio.Task[None]] = field(default_factory=list)

    def follow(self, changes: Mapping[str, list[Change]]) -> None:
        for switch, some in changes.items():
            apply_changes(self.tables[switch], some)

    def work(self, name: str, secret: bytes = SECRET) -> None:
        """Have a configurator of that name work in a thread, until its connection ends."""
        self.workers.append(asyncio.create_task(asyncio.to_thread(self._work, name, secret)))

    def _work(self, name: str, secret: bytes) -> None:
        with socket.create_connection(self.address, PATIENCE) as connection:
            greet(connection, secret, name)
            with suppress(ConnectionError):  # closed while it had something to say
                serve_orders(connection, lambda: False)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.there.address.split(":")
        return host, int(port)

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await asyncio.sleep(0.005)

    async def ask(self, *requests: Request) -> None:
        """Ask for something, and wait until it is decided."""
        assert not self.state.step(requests).refused
        for request in requests:
            await self.there.decided((request.op.side, request.id))

    def check(self) -> None:
        """Tables are those that one process makes."""
        alone = ControlState(RING, PLAN, TREES)
        made = [
            Request(
                Op.ADVERTISE if side is Side.PUBLISHER else Op.SUBSCRIBE, each.id, each.endpoint, dz=each.dz
            )
            for side, each in self.state.all_interests()
        ]
        alone.step(made)
        assert self.tables == {switch: alone.table(switch) for switch in RING.switches}


@asynccontextmanager
async def place(
    configurators: int = 2, capacity: int | None = None, balance: bool = False
) -> AsyncIterator[Place]:
    state = ControlState(RING, PLAN, TREES, Settings(capacity=capacity, elsewhere=True))
    settings = SharingSettings(configurators, slice_size=5, balance=balance)
    there = Configurators(OwnOwnership(), SECRET, settings)
    found = Place(there, state)
    there.attach(state, found.follow)
    async with asyncio.timeout(PATIENCE):
        async with there:
            yield found
        for worker in found.workers:  # their connections are closed, so they end
            await worker


@dataclass
class Fake:
    """One that knows the secret, and says what a test wants."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def order(self) -> int:
        """The number of the next order."""
        size = length_of(await self.reader.readexactly(SIZE))
        serial, _ = order_from_bytes(await self.reader.readexactly(size))
        return serial

    async def dropped(self) -> None:
        """Wait until the connection is closed."""
        with suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.writer.close()


async def fake(there: Place, name: str = "fake") -> Fake:
    reader, writer = await asyncio.open_connection(*there.address)
    own = nonce()
    writer.write(hello(own, name))
    theirs = await reader.readexactly(NONCE + PROOF)
    assert theirs[NONCE:] == dispatcher_proof(SECRET, own, theirs[:NONCE])
    writer.write(configurator_proof(SECRET, theirs[:NONCE], own))
    return Fake(reader, writer)


def test_what_configurators_decide_is_what_one_process_would() -> None:
    async def story() -> None:
        async with place() as here:
            here.work("one")
            here.work("two")
            await here.ask(offered(), wanted("s", "0", "110"), wanted("t", "01"))
            here.check()
            owners = {owner for owner, _ in here.there.pool.owners.values()}
            assert {str(owner).split("#")[0] for owner in owners} == {"one", "two"}
            await here.ask(Request(Op.UNSUBSCRIBE, "s", HOSTS[2]))
            here.check()
            await here.there.caught_up()
            assert here.there.idle
            assert here.there.trouble is None

    asyncio.run(story())


def test_one_that_does_not_know_the_secret_is_sent_no_order() -> None:
    async def story() -> None:
        async with place() as here:
            reader, writer = await asyncio.open_connection(*here.address)
            writer.write(hello(nonce(), "stranger"))
            theirs = await reader.readexactly(NONCE + PROOF)
            writer.write(configurator_proof(b"guessed", theirs[:NONCE], bytes(NONCE)))
            assert await reader.read() == b""  # it is closed, and nothing more was said
            writer.close()
            assert not here.there.pool.members
            assert here.there.trouble == "no configurator is connected"

    asyncio.run(story())


def test_a_proof_that_was_overheard_is_worth_nothing() -> None:
    async def story() -> None:
        async with place() as here:
            own = nonce()
            reader, writer = await asyncio.open_connection(*here.address)
            writer.write(hello(own, "one"))
            first = await reader.readexactly(NONCE + PROOF)
            overheard = configurator_proof(SECRET, first[:NONCE], own)
            writer.close()
            reader, writer = await asyncio.open_connection(*here.address)
            writer.write(hello(own, "one"))
            second = await reader.readexactly(NONCE + PROOF)
            assert second != first
            writer.write(overheard)
            assert await reader.read() == b""
            writer.close()
            assert not here.there.pool.members

    asyncio.run(story())


def test_a_configurator_does_not_work_for_one_that_does_not_know_the_secret() -> None:
    async def story() -> None:
        async with place() as here:
            with pytest.raises(NotTrusted, match="no dispatcher of this network"):
                await asyncio.to_thread(here._work, "one", b"another secret")
            assert not here.there.pool.members

    asyncio.run(story())


def test_strangers_that_say_nothing_do_not_keep_others_out_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GREETING_SECONDS", 0.3)

    async def story() -> None:
        async with place(configurators=1) as here:
            strangers = [await asyncio.open_connection(*here.address) for _ in range(module.MOST_STRANGERS)]
            await here.until(lambda: here.there._strangers == module.MOST_STRANGERS)
            reader, writer = await asyncio.open_connection(*here.address)
            writer.write(hello(nonce(), "late"))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readexactly(NONCE + PROOF)  # there are too many
            writer.close()
            for reader, writer in strangers:
                assert await reader.read() == b""
                writer.close()
            here.work("one")
            await here.ask(offered(), wanted("s", "01"))
            here.check()

    asyncio.run(story())


def closed(connection: socket.socket) -> bool:
    """Whether the other side has closed a connection on which nothing is said."""
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_of_strangers_that_come_all_at_once_only_some_are_listened_to() -> None:
    async def story() -> None:
        async with place() as here:
            strangers = [socket.socket() for _ in range(3 * module.MOST_STRANGERS)]
            for each in strangers:
                each.setblocking(False)
                with suppress(BlockingIOError):
                    each.connect(here.address)
            await here.until(lambda: sum(map(closed, strangers)) == 2 * module.MOST_STRANGERS)
            for each in strangers:
                each.close()

    asyncio.run(story())


def another_serial(serial: int) -> bytes:
    return answer_to_bytes(serial + 7, Answer(no_rows(1)))


def another_network(serial: int) -> bytes:
    row = np.array([[99, 0, 0, 1, 0, 1, 0, 1]], np.uint64)
    return answer_to_bytes(serial, Answer(row))


def other_columns(serial: int) -> bytes:
    return answer_to_bytes(serial, Answer(np.zeros((1, 3), np.uint64)))


def other_numbers(serial: int) -> bytes:
    return answer_to_bytes(serial, Answer(np.zeros((1, 8), np.float64)))  # type: ignore[arg-type]


def another_switch(serial: int) -> bytes:
    return answer_to_bytes(serial, Answer(no_rows(1), needs={"nowhere": 3}))


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda serial: b"\0\0\0\4oops",
        lambda serial: b"\xff\xff\xff\xff",
        lambda serial: b"\0\0\0\0",
        another_serial,
        another_network,
        other_columns,
        other_numbers,
        another_switch,
    ],
    ids=["bytes", "length", "empty", "serial", "network", "columns", "numbers", "switch"],
)
def test_one_that_says_nonsense_is_dropped_and_its_partitions_are_taken_over(
    nonsense: Callable[[int], bytes],
) -> None:
    async def story() -> None:
        async with place() as here:
            here.work("one")
            odd = await fake(here)
            serial = await odd.order()  # to begin
            odd.writer.write(answer_to_bytes(serial, Answer(no_rows(1))))
            await here.until(lambda: len(here.there.pool.members) == 2)
            serial = await odd.order()  # to own something
            odd.writer.write(nonsense(serial))
            await odd.dropped()
            await here.ask(offered(), wanted("s", ""))
            here.check()
            assert here.there.takeovers == 1
            assert len(here.there.pool.members) == 1

    asyncio.run(story())


def test_one_that_goes_in_the_middle_of_a_message_is_taken_over_from() -> None:
    async def story() -> None:
        async with place() as here:
            here.work("one")
            odd = await fake(here)
            await odd.order()
            odd.writer.write(b"\0\0\1\0half")
            await odd.writer.drain()
            odd.writer.close()
            await here.ask(offered(), wanted("s", ""))
            here.check()

    asyncio.run(story())


def test_one_that_does_not_answer_is_dropped_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"LOOK_SECONDS": 0.02, "ANSWER_SECONDS": 0.2, "BUILDING_SECONDS": 0.4}.items():
        monkeypatch.setattr(module, name, seconds)

    async def story() -> None:
        async with place() as here:
            silent = await fake(here, "silent")
            here.work("one")
            await here.ask(offered(), wanted("s", ""))
            await silent.dropped()
            here.check()
            assert here.there.takeovers == 1
            assert [name.split("#")[0] for name in here.there.pool.members] == ["one"]

    asyncio.run(story())


def test_one_that_has_nothing_to_do_is_asked_now_and_then_whether_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)

    async def story() -> None:
        async with place() as here:
            here.work("one")
            idle = await fake(here, "idle")
            for _ in range(4):
                idle.writer.write(answer_to_bytes(await idle.order(), Answer(no_rows(1))))
            await idle.dropped()  # it was asked, and did not say anything any more
            await here.until(lambda: len(here.there.pool.members) == 1)

    asyncio.run(story())


def test_what_there_is_no_room_for_is_refused_to_who_waits_for_it() -> None:
    async def story() -> None:
        async with place(capacity=0) as here:
            here.work("one")
            here.work("two")
            await here.ask(offered())
            with pytest.raises(Refused, match="needs"):
                await here.ask(wanted("s", "01"))
            await here.ask(Request(Op.UNSUBSCRIBE, "s", HOSTS[2]))
            assert not any(here.tables.values())
            await here.there.decided((Side.SUBSCRIBER, "unheard of"))

    asyncio.run(story())


def test_one_that_comes_late_is_given_its_share_and_nothing_is_lost_when_the_first_goes() -> None:
    async def story() -> None:
        async with place(configurators=1) as here:
            first = await fake(here, "first")
            await here.until(lambda: bool(here.there.pool.members))
            waiting = asyncio.create_task(here.ask(offered(), wanted("s", "00", "1")))
            here.work("late")
            await here.until(lambda: len(here.there.pool.members) == 2)
            assert not waiting.done()
            first.writer.close()  # with all that it was told
            await waiting
            here.check()

    asyncio.run(story())


def test_nothing_hangs_when_the_block_ends_whatever_is_under_way() -> None:
    async def story() -> None:
        async with place() as here:
            here.work("one")
            silent = await fake(here, "silent")
            reader, writer = await asyncio.open_connection(*here.address)  # and one that says nothing
            await here.until(lambda: len(here.there.pool.members) == 2)
            here.state.step([offered(), wanted("s", "")])
        await silent.dropped()
        assert await reader.read() == b""
        writer.close()

    asyncio.run(story())


@pytest.mark.parametrize("name", ["", "a" * 64, "ä" * 40, "one\0two"])
def test_a_name_has_its_place_in_the_greeting(name: str) -> None:
    said = hello(bytes(NONCE), name)
    assert len(said) == HELLO


def test_a_partition_goes_to_who_has_less_to_do_while_requests_pour_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "ANSWER_SECONDS", PATIENCE)

    async def story() -> None:
        async with place(balance=True) as at:
            at.work("c1")
            at.work("c2")
            await at.until(lambda: at.there.pool.ready)
            await at.ask(offered())
            giver, receiver = at.there.pool.members
            hot = [dz for dz, (owner, _) in at.there.pool.owners.items() if owner == giver]
            number = 0
            while not at.there.pool.migrations:
                some = [
                    wanted(f"s{number + n}", f"{hot[n % len(hot)]}{(number + n) % 64:06b}")
                    for n in range(100)
                ]
                number += len(some)
                at.state.step(some)
                await asyncio.sleep(0.001)
            await at.there.caught_up()
            assert any(at.there.pool.owners[dz][0] == receiver for dz in hot)
            at.check()

    asyncio.run(story())


def test_the_space_is_divided_finer_where_requests_are_and_tables_follow() -> None:
    async def story() -> None:
        async with place() as at:
            at.work("c1")
            at.work("c2")
            await at.until(lambda: at.there.pool.ready)
            await at.ask(offered())
            for n in range(200):
                await at.ask(wanted(f"s{n}", f"0000{n % 16:04b}"))
            partitions = at.there.division()
            assert partitions is not None
            assert max(dz.length for dz in partitions) > 2
            at.state.divide(partitions)
            await at.there.caught_up()
            assert set(at.there.pool.partitions) == set(partitions)
            alone = ControlState(RING, PLAN, at.state.trees)
            alone.step([offered(), *(wanted(f"s{n}", f"0000{n % 16:04b}") for n in range(200))])
            assert at.tables == {switch: alone.table(switch) for switch in RING.switches}

    asyncio.run(story())
