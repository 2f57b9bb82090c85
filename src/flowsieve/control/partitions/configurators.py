"""Configurators at work for a dispatcher that lives: they connect to it, own partitions, and may die at any moment.

Each is sent orders over its own connection, and answers them in turn. One that is gone, or owes an answer for too long,
does not count any more: its connection is closed, its partitions are given to others under higher numbers, and what it
was at is done again. One that comes back begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from types import TracebackType
from typing import Any

from flowsieve.control.partitions.adaptation import AdaptationSettings, redivided
from flowsieve.control.partitions.decided_elsewhere import Interests
from flowsieve.control.partitions.monitor import Monitor
from flowsieve.control.partitions.orders import (
    Begin,
    Key,
    Order,
    Own,
    Rewire,
    answer_from_bytes,
    order_to_bytes,
)
from flowsieve.control.partitions.ownership import Ownership
from flowsieve.control.partitions.pool import SLICE, ConfiguratorPool
from flowsieve.control.partitions.table_rows import Rows
from flowsieve.control.partitions.wire import (
    HELLO,
    NONCE,
    PROOF,
    SIZE,
    configurator_proof,
    dispatcher_proof,
    length_of,
    name_in,
    nonce,
    same,
)
from flowsieve.control.state import ControlState
from flowsieve.errors import BadInput, JournalError, Refused
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

GREETING_SECONDS = 5.0  # for one that connects to prove who it is
GRACE_SECONDS = 0.5  # for which others are waited for before the first own all
LOOK_SECONDS = 0.25  # at who owes an answer, and who has too much to do
ANSWER_SECONDS = 1.5  # for an order of every day
BUILDING_SECONDS = 5.0  # for one that has tables made anew, and more with what is in them
BUILDING_SECONDS_EACH = 0.005  # for an interest
HALF_LIFE_SECONDS = 30.0  # of requests, in what a partition weighs
ASSIGNMENT_SECONDS = 600.0  # from one look at who owns how much to the next
FEW_REQUESTS = 100  # of late, which say nothing about that
MOST_STRANGERS = 16  # connections at a time that have not proved who they are

Ask = Callable[[Mapping[str, list[Change]]], None]


@dataclass(frozen=True, slots=True)
class SharingSettings:
    """How work is shared: by so many configurators (more may come), in slices of so many parts, balanced or not.

    `address` is where the dispatcher listens for configurators, HOST or HOST:PORT. No partition has more than `longest`
    bits, however many requests there are.
    """

    configurators: int = 2
    slice_size: int = SLICE
    balance: bool = True
    address: str = "127.0.0.1"
    longest: int = 12


@dataclass(slots=True, eq=False)
class _Link:
    """A configurator's connection, what is to be sent, and since when it owes its oldest answer."""

    name: str
    writer: asyncio.StreamWriter
    orders: asyncio.Queue[tuple[int, Order]] = field(default_factory=asyncio.Queue)
    owes: int = 0  # the number of the order
    since: float = 0.0


class Configurators:
    """They decide in the place of a state (`Deciders`) for the time of an `async with` block.

    `attach` a state, and have tables changed by `ask`. Where something was asked of the state, wait until it is
    `decided`; `caught_up` waits for all that was asked so far.
    """

    def __init__(
        self, ownership: Ownership, secret: bytes, settings: SharingSettings, events: Rows | None = None
    ) -> None:
        self.pool = ConfiguratorPool(settings.slice_size)
        self.address = ""  # where configurators find this
        self.takeovers = 0
        self._ownership, self._secret, self._settings = ownership, secret, settings
        self._events, self._tables = events, Tables.OVERLAY
        self._ask: Ask = lambda changes: None
        self._links: dict[str, _Link] = {}
        self._connections = count(1)
        self._strangers = 0
        self._numbers: Mapping[Dz, int] = {}
        self._begun = False  # whether partitions were given out once
        self._assigning: asyncio.TimerHandle | None = None
        self._futures: dict[Key, asyncio.Future[None]] = {}
        self._news = asyncio.Event()  # replaced whenever something is decided
        self._monitor = Monitor()
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()

    # For a dispatcher.

    def attach(self, state: ControlState, ask: Ask) -> None:
        """Decide for a state from now on, in the place of whatever was decided for before."""
        assert state.elsewhere is not None
        self._ask, self._tables = ask, state.settings.tables
        self._state = state
        state.elsewhere.deciders = self
        if self._server is not None:
            self._begin_state()

    def _begin_state(self) -> None:
        state = self._state
        assert state.elsewhere is not None
        self.begin(state.topology, state.trees, state.elsewhere.capacity, state.all_interests())

    async def decided(self, key: Key) -> None:
        """Wait until all that was asked of an interest is decided; raises Refused where there is no room for it."""
        future = self._futures.get(key)
        if future is None:
            return
        try:
            await asyncio.shield(future)
        finally:
            if future.done() and self._futures.get(key) is future:
                del self._futures[key]

    async def caught_up(self) -> None:
        """Wait until all that was asked for so far is decided."""
        ticket = self.pool.ticket
        while not self.pool.passed(ticket):
            await self._news.wait()

    async def rewired(self) -> None:
        """Wait until tables for the trees of now are decided."""
        while self.pool.rewiring:
            await self._news.wait()

    async def known(self) -> None:
        """Wait until it is known what tables should be."""
        while not self.pool.known:
            await self._news.wait()

    @property
    def idle(self) -> bool:
        """Whether all that was asked for is decided."""
        return self.pool.idle

    @property
    def trouble(self) -> str | None:
        """Why nothing is decided, if so."""
        if not self._links:
            return "no configurator is connected"
        if not self.pool.ready:
            return "configurators are taking up their partitions"
        return None

    def told(self) -> dict[str, Any]:
        """Who owns what, and what waits for whom."""
        pool = self.pool
        queues = pool.queues
        return {
            "address": self.address,
            "configurators": {
                name: {
                    "partitions": len(queues[name]),
                    "waiting": sum(queues[name].values()),
                    "decided": pool.work(name)[0],
                    "visits": pool.work(name)[1],
                }
                for name in pool.members
            },
            "partitions": [
                {
                    "dz": str(dz),
                    "owner": each.owner,
                    "number": each.number,
                    "ready": each.ready,
                    "interests": len(each.held),
                    "waiting": len(each.queue) + each.under_way,
                    "recently": round(each.taken, 1),
                }
                for dz, each in pool.partitions.items()
            ],
            "migrations": pool.migrations,
            "takeovers": self.takeovers,
            "trouble": self.trouble,
        }

    # What a state asks.

    def begin(
        self, topology: Topology, trees: TreeMap, room: Mapping[str, int], interests: Interests
    ) -> None:
        """Go on with another network or division, or with the first one."""
        self._monitor.forget()
        numbers, self._numbers = self._numbers, {}
        order = Begin(topology, trees, self._tables, room or None, self._events)
        self.pool.begin(order, interests, numbers or None, assign=self._begun)
        self._flush()

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> Mapping[str, list[Change]]:
        listed = list(parts)
        loop = asyncio.get_running_loop()
        for _, side, interest in listed:
            future = self._futures.get((side, interest.id))
            if future is None or future.done():
                self._futures[side, interest.id] = loop.create_future()
        self.pool.take(listed)
        self._flush()
        return {}

    def rewire(self, trees: TreeMap) -> Mapping[str, list[Change]]:
        self.pool.rewire(trees)
        self._flush()
        return {}

    def bound(self, switch: str, room: int | None) -> Mapping[str, list[Change]]:
        self.pool.bound(switch, room)
        self._flush()
        return {}

    def table(self, switch: str) -> dict[Dz, Ports]:
        return self.pool.aim(switch)

    def size(self, switch: str) -> int:
        return self.pool.size(switch)

    def waste(self) -> dict[str, float]:
        return self.pool.waste

    # The time of a block.

    async def __aenter__(self) -> Configurators:
        await self._tasks.__aenter__()
        host, _, port = self._settings.address.rpartition(":")
        if not port.isdigit():
            host, port = self._settings.address, "0"
        self._numbers = await self._ownership.numbers()
        self._server = await asyncio.start_server(self._connected, host, int(port))
        at = self._server.sockets[0].getsockname()
        self.address = f"{at[0]}:{at[1]}"
        self._begin_state()
        await self._ownership.announce(self.address)
        self._tasks.start(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        if self._assigning is not None:
            self._assigning.cancel()
        self._server.close()
        for link in self._links.values():
            link.writer.close()
        await self._tasks.__aexit__(kind, error, trace)

    # Connections.

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._strangers >= MOST_STRANGERS:
            writer.close()
            return
        self._strangers += 1  # here, since many may come before the first of them is looked at
        self._tasks.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = ""
        try:
            name = await self._greeted(reader, writer)
            if not name:
                return
            link = self._links[name] = _Link(name, writer)
            self._join(name)
            sending = self._tasks.start(self._send_to(link))
            try:
                await self._read_from(link, reader)
            finally:
                sending.cancel()
        except (OSError, asyncio.IncompleteReadError, BadInput) as error:
            log.warning("configurator %s: %s", name or "of an unknown name", error or type(error).__name__)
        finally:
            self._leave(name)
            writer.close()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """The name of a configurator that has proved that it knows the secret; else none."""
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                said, own = await reader.readexactly(HELLO), nonce()
                theirs = said[:NONCE]
                writer.write(own + dispatcher_proof(self._secret, theirs, own))
                proof = await reader.readexactly(PROOF)
        except TimeoutError:
            return ""
        finally:
            self._strangers -= 1
        if not same(proof, configurator_proof(self._secret, own, theirs)):
            log.warning("something that does not know the secret wants to be configurator %r", name_in(said))
            return ""
        return f"{name_in(said)}#{next(self._connections)}"

    async def _read_from(self, link: _Link, reader: asyncio.StreamReader) -> None:
        while link.name in self._links:
            size = length_of(await reader.readexactly(SIZE))
            serial, answer = answer_from_bytes(await reader.readexactly(size))
            if link.name not in self._links:
                return
            self.pool.answered(link.name, serial, answer)
            self._flush()

    async def _send_to(self, link: _Link) -> None:
        while True:
            serial, order = await link.orders.get()
            if isinstance(order, Own):
                try:
                    await self._ownership.keep(link.name, order.numbers)
                except JournalError as error:
                    log.warning("configurator %s owns nothing: %s", link.name, error)
                    return  # another dispatcher leads
            with suppress(OSError):
                link.writer.write(order_to_bytes(serial, order))
                await link.writer.drain()

    def _join(self, name: str) -> None:
        log.info("configurator %s is there", name)
        self.pool.joined(name)
        if self._begun:
            self.pool.assign()
            self._monitor.forget()
        elif len(self._links) >= self._settings.configurators:
            self._assign()
        elif self._assigning is None:
            loop = asyncio.get_running_loop()
            self._assigning = self._tasks.call_at(loop.time() + GRACE_SECONDS, self._assign)
        self._flush()

    def _assign(self) -> None:
        """Have all partitions owned by those who are there."""
        if self._assigning is not None:
            self._assigning.cancel()
        if self._links and not self._begun:
            self._begun = True
            self.pool.assign()
            self._flush()

    def _leave(self, name: str) -> None:
        """A configurator does not count any more."""
        link = self._links.pop(name, None)
        if link is None:
            return
        link.writer.close()
        owned = sum(owner == name for owner, _ in self.pool.owners.values())
        log.warning("configurator %s is gone; others take over %d partitions", name, owned)
        self.takeovers += owned > 0
        self.pool.left(name)
        self._monitor.forget()
        self._flush()

    def _flush(self) -> None:
        """Send what is to be sent, have tables changed, and tell those who wait."""
        for name, serial, order in self.pool.orders():
            if (link := self._links.get(name)) is not None:
                link.orders.put_nowait((serial, order))
        if changes := self.pool.changes():
            self._ask(changes)
        for key, refused in self.pool.decided():
            future = self._futures.get(key)
            if future is None or future.done():
                continue
            if refused is None:
                future.set_result(None)
                del self._futures[key]
            else:
                future.set_exception(Refused(refused))
                future.exception()  # whoever has left need not hear of it
        self._news.set()
        self._news = asyncio.Event()

    # Watching.

    def division(self) -> tuple[Dz, ...] | None:
        """How the space had better be divided, given the requests of late; None if it is well as it is.

        Only partitions on one tree are joined: for another tree it would take another tag.
        """
        pool, trees = self.pool, self.pool.trees
        if trees is None or not pool.idle or sum(pool.requests.values()) < FEW_REQUESTS:
            return None

        def on_one_tree(parent: Dz) -> bool:
            return len({tree for _, tree in trees.split(parent)}) == 1

        settings = AdaptationSettings(longest=self._settings.longest, configurators=len(self._links))
        if (most := pool.most_partitions) is not None:
            settings = replace(settings, most=min(settings.most, most))
        return redivided(pool.requests, pool.spanning, settings, on_one_tree)

    async def _watch(self) -> None:
        """See to those who owe an answer for too long, and to those who have too much to do."""
        loop = asyncio.get_running_loop()
        last = assigned = loop.time()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = loop.time()
            late = now - last - LOOK_SECONDS  # for which this process itself was held up
            for link in list(self._links.values()):
                self._check(link, now, late)
            self.pool.fade(0.5 ** ((now - last) / HALF_LIFE_SECONDS))
            last = now
            if self.pool.ready:
                self._level()
            if self._settings.balance and self.pool.ready:
                migration = self._monitor.observe(now, self.pool.queues)
                if migration is not None:
                    log.info(
                        "partition %s goes from configurator %s to %s, which has less to do",
                        migration.dz,
                        migration.giver,
                        migration.receiver,
                    )
                    self.pool.migrate(migration.dz, migration.receiver)
                elif now > assigned + ASSIGNMENT_SECONDS:
                    assigned = now
                    self._assign_anew()
            self._flush()

    def _level(self) -> None:
        """Give something to those who came while partitions were being taken up, and own none."""
        for name, own in self.pool.queues.items():
            if not own and len(self.pool.partitions) >= len(self._links):
                self.pool.level(name)

    def _assign_anew(self) -> None:
        """After a long time, let who has least to do own as much as the others, by the load of late."""
        queues, weights = self.pool.queues, self.pool.weights
        loads = {name: sum(weights[dz] for dz in own) for name, own in queues.items()}
        if loads:
            self._monitor.forget()
            self.pool.level(min(loads, key=loads.__getitem__))

    def _check(self, link: _Link, now: float, late: float) -> None:
        owed = self.pool.oldest(link.name)
        if owed is None:
            self.pool.ping(link.name)
            return
        serial, order = owed
        if serial != link.owes:
            link.owes, link.since = serial, now
            return
        link.since += max(0.0, late)
        if now - link.since > _patience(order):
            log.warning("configurator %s owes an answer for %.1f s", link.name, now - link.since)
            self._leave(link.name)


def _patience(order: Order) -> float:
    """How long an answer may take."""
    match order:
        case Own(parts=parts):
            return BUILDING_SECONDS + BUILDING_SECONDS_EACH * len(parts)
        case Begin() | Rewire():
            return BUILDING_SECONDS
        case _:
            return ANSWER_SECONDS
