"""Publishers hold versions of others' filters under leases; nothing is promised that one of them could pass over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.core import Core
from flowsieve.control.memory.journal import NoJournal
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.publishers import ROWS, Publishers
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import Busy, Denied
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.matcher.filter_store import FilterStore
from flowsieve.network.topology import Topology
from flowsieve.protocol.filter_page import FilterPage, HeldVersion
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 9}})
NETWORK = Topology.make([("s1", "s2")], {"pub": "s1", "sub": "s2", "new": "s2"})
LEASE = 1.0
LONG = 60.0  # for what comes in an instant, or not at all


class Gates:
    """Gates that follow when they are told to."""

    def __init__(self, can: bool) -> None:
        self._can = can
        self.closed: set[str] = set()
        self.unready: set[str] = set()
        self.follow = asyncio.Event()

    def ready(self, host: str) -> bool:
        return host not in self.unready

    def shut(self, host: str) -> bool:
        if self._can:
            self.closed.add(host)
        return self._can

    def open(self, host: str) -> None:
        self.closed.discard(host)

    async def followed(self, host: str) -> None:
        await self.follow.wait()


class World:
    """A state, its publishers, and what a host has taken in."""

    def __init__(self, *, gates: bool = False, before: float = 0.0) -> None:
        settings = Settings(labelled=True)
        self.state = ControlState(NETWORK, RegularPlan.make(SCHEMA, bits=0), settings=settings)
        switches = EmbeddedFabric(EmbeddedNetwork(NETWORK), lambda event: None)
        core = Core(self.state, switches, encoding_of("receivers"), Scribe(NoJournal()))
        self.gates = Gates(gates)
        self.publishers = Publishers(core, self.gates, lambda: LEASE, before)
        self.store = FilterStore(SCHEMA)
        self._ids = 0

    def take(self, op: Op, host: str, text: str) -> str:
        self._ids += 1
        id = f"i{self._ids}"
        outcome = self.state.step([Request(op, id, host, Filter.parse(text, SCHEMA))])
        self.publishers.follow(outcome.told)
        return id

    def end(self, op: Op, id: str, host: str) -> None:
        self.publishers.follow(self.state.step([Request(op, id, host)]).told)

    async def ask(self, patience: float = 0.01, session: str = "a") -> FilterPage:
        page = await self.publishers.ask("pub", session, self.store.held, patience)
        self.store.take(FilterPage.parse(page.to_json()))
        return page

    def wanted(self, x: int) -> set[str]:
        mask = self.store.match({"x": x}).receivers
        return {host for host in NETWORK.hosts if mask >> self.state.sets.number(host) & 1}


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(120):
            await story()

    asyncio.run(within())


def test_a_host_is_told_all_of_it_and_then_what_is_new() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "x < 8")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        world.take(Op.SUBSCRIBE, "new", "x == 9")  # which the publisher never sends
        first = await world.ask()
        assert (first.anew, first.more, first.lease) == (True, True, 0.0)
        assert (await world.ask()).lease == LEASE
        assert (world.wanted(2), world.wanted(9)) == ({"sub"}, set())
        id = world.take(Op.SUBSCRIBE, "new", "1 < x < 6")
        then = await world.ask(LONG)
        assert (then.anew, len(then.add), len(then.remove)) == (False, 1, 0)
        assert world.wanted(2) == {"sub", "new"}
        world.end(Op.UNSUBSCRIBE, id, "new")
        await world.ask(LONG)
        assert world.wanted(2) == {"sub"}

    run(story)


def test_an_answer_that_got_lost_is_given_again() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        await world.ask()
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        lost = await world.publishers.ask("pub", "a", world.store.held, LONG)
        again = await world.ask(LONG)
        assert again == lost
        await world.ask()
        assert not world.publishers.behind

    run(story)


def test_a_host_that_did_not_hear_that_nothing_counts_any_more_is_told_so_again() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        goes = world.take(Op.SUBSCRIBE, "sub", "x < 3")
        for _ in range(2):
            await world.ask()
        world.publishers.begin_anew()
        world.end(Op.UNSUBSCRIBE, goes, "sub")
        lost = await world.publishers.ask("pub", "a", world.store.held, LONG)
        assert (lost.anew, lost.add) == (True, ())
        await world.ask()
        assert world.wanted(2) == set()

    run(story)


def test_what_comes_and_goes_before_a_host_has_asked_is_not_told() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        stays = world.take(Op.SUBSCRIBE, "sub", "x < 3")
        for _ in range(2):
            await world.ask()
        goes = world.take(Op.SUBSCRIBE, "new", "x < 7")
        world.end(Op.UNSUBSCRIBE, goes, "new")
        world.end(Op.UNSUBSCRIBE, stays, "sub")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        page = await world.ask(LONG)
        assert (page.add, page.remove, page.version) == ((), (), world.publishers.version)
        assert world.wanted(2) == {"sub"}

    run(story)


def test_all_of_it_is_not_told_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.control.publishers.QUICK_SECONDS", 0.0)
    monkeypatch.setattr("flowsieve.control.publishers.REST", 1e9)

    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        await world.ask()
        with pytest.raises(Busy, match="a moment ago"):
            await world.publishers.ask("pub", "a", None, LONG)

    run(story)


def test_pages_are_told_one_after_the_other_and_what_comes_meanwhile_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flowsieve.control.publishers.ROWS", 2)

    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        for x in range(5):
            world.take(Op.SUBSCRIBE, "sub", f"x == {x}")
        assert [(await world.ask()).more for _ in range(2)] == [True, True]
        assert world.wanted(0) == set()  # not before all of it is there
        world.take(Op.SUBSCRIBE, "new", "x == 7")
        assert [(await world.ask()).more for _ in range(2)] == [True, False]
        assert [world.wanted(x) for x in (0, 4, 6, 7)] == [{"sub"}, {"sub"}, set(), {"new"}]

    run(story)


def test_a_subscription_is_served_when_its_publishers_hold_it() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        await world.ask()
        await world.publishers.holding(["pub"])
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        waiting = asyncio.create_task(world.publishers.holding(["pub"]))
        await world.ask(LONG)  # it is told
        await asyncio.sleep(0.05)
        assert not waiting.done()
        asking = asyncio.create_task(world.ask(LONG))  # it says that it holds it
        await waiting
        asking.cancel()

    run(story)


def test_pages_do_not_count_as_held_before_the_last_of_them_is_there() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        await world.ask()
        world.publishers.begin_anew()
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        waiting = asyncio.create_task(world.publishers.holding(["pub"]))
        assert (await world.ask()).more
        await world.publishers.ask("pub", "a", world.store.held, LONG)  # the last one, which gets lost
        await asyncio.sleep(0.05)
        assert world.wanted(2) == set()  # it still publishes with what it held before
        assert not waiting.done()
        await world.ask(LONG)
        assert world.wanted(2) == {"sub"}
        asking = asyncio.create_task(world.ask(LONG))
        await waiting
        asking.cancel()

    run(story)


def test_a_silent_publisher_is_waited_for_as_long_as_its_lease() -> None:
    async def story() -> None:
        world = World()
        loop = asyncio.get_running_loop()
        world.take(Op.ADVERTISE, "pub", "True")
        begin = loop.time()
        assert (await world.ask()).lease == LEASE
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        await world.publishers.holding(["pub"])
        assert loop.time() - begin >= LEASE
        world.take(Op.SUBSCRIBE, "sub", "x < 4")
        begin = loop.time()
        await world.publishers.holding(["pub"])  # it has no lease any more
        assert loop.time() - begin < LEASE

    run(story)


def test_whoever_may_have_a_lease_of_a_controller_before_us_is_waited_for() -> None:
    async def story() -> None:
        world = World(before=1.0)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        world.take(Op.ADVERTISE, "pub", "True")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        await world.publishers.holding(["pub"])
        assert loop.time() - begin >= 0.9

    run(story)


def test_a_matcher_that_a_controller_before_us_knew_is_not_waited_for_once_it_holds_what_there_is() -> None:
    async def story() -> None:
        world = World(before=1000.0)
        world.store.held = HeldVersion("another epoch", 7)
        world.take(Op.ADVERTISE, "pub", "True")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        for _ in range(3):
            await world.ask()
        await world.publishers.holding(["pub"])

    run(story)


def test_the_labels_of_a_publisher_past_its_lease_are_dropped_until_it_holds_all_there_is() -> None:
    async def story() -> None:
        world = World(gates=True)
        world.take(Op.ADVERTISE, "pub", "True")
        await world.ask()
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        waiting = asyncio.create_task(world.publishers.holding(["pub"]))
        await asyncio.sleep(0)
        assert not world.gates.closed  # what it sends under its lease is owed to others
        await waiting
        assert world.gates.closed == {"pub"}
        assert "dropped at its port" in world.publishers.behind["pub"]
        assert (await world.ask()).lease == 0  # it is told, and may not send yet
        asking = asyncio.create_task(world.ask(LONG))
        await asyncio.sleep(0.05)
        assert not asking.done()  # nor before its switch lets it
        world.gates.follow.set()
        assert (await asking).lease == LEASE
        assert not world.gates.closed
        assert not world.publishers.behind

    run(story)


def test_a_matcher_whose_place_another_has_taken_is_sent_away_and_its_lease_waited_for() -> None:
    async def story() -> None:
        world = World()
        loop = asyncio.get_running_loop()
        world.take(Op.ADVERTISE, "pub", "True")
        begin = loop.time()
        await world.ask()
        world.store = FilterStore(SCHEMA)
        await world.ask(session="b")
        with pytest.raises(Denied, match="another matcher"):
            await world.ask(session="a")
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        waiting = asyncio.create_task(world.publishers.holding(["pub"]))
        for _ in range(2):
            await world.ask(session="b")
        await waiting
        assert loop.time() - begin >= LEASE  # the first one might have sent something

    run(story)


def test_a_lease_is_waited_for_though_another_matcher_takes_over_and_holds_what_there_is() -> None:
    async def story() -> None:
        world = World()
        loop = asyncio.get_running_loop()
        world.take(Op.ADVERTISE, "pub", "True")
        begin = loop.time()
        assert (await world.ask()).lease == LEASE
        world.take(Op.SUBSCRIBE, "sub", "x < 3")
        waiting = asyncio.create_task(world.publishers.holding(["pub"]))
        await asyncio.sleep(0.05)
        world.store = FilterStore(SCHEMA)
        for _ in range(3):
            await world.ask(session="b")
        await waiting
        assert loop.time() - begin >= LEASE  # the first one does not know of it, and may send until then

    run(story)


def test_a_page_has_room_for_so_many_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.control.publishers.PAGE_CHARACTERS", 15)

    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        for x in range(2):
            for host in ("sub", "new"):
                world.take(Op.SUBSCRIBE, host, f"x=={x}")
        assert [len((await world.ask()).add) for _ in range(3)] == [1, 1, 0]
        assert [world.wanted(x) for x in (0, 1)] == [{"sub", "new"}] * 2

    run(story)


def test_after_a_restart_all_of_it_is_told_anew() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        await world.ask()
        other = World()
        other.store = world.store
        other.take(Op.ADVERTISE, "pub", "True")
        other.take(Op.SUBSCRIBE, "sub", "x < 3")
        assert (await other.ask()).anew
        await other.ask()
        assert other.wanted(1) == {"sub"}

    run(story)


def test_a_host_is_told_nothing_before_its_port_lets_in_what_follows_from_it() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        world.gates.unready.add("pub")
        with pytest.raises(Busy, match="has not heard yet whom the host may address"):
            await world.ask()
        world.gates.unready.clear()
        assert (await world.ask()).anew

    run(story)


def test_no_matcher_comes_back_whose_place_was_taken_however_many_there_were() -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        for session in "abcd":
            world.store = FilterStore(SCHEMA)
            await world.ask(session=session)
        for session in "abc":
            with pytest.raises(Denied, match="another matcher"):
                await world.ask(session=session)
        await world.ask(session="d")

    run(story)


@pytest.mark.parametrize("together", [True, False])
def test_a_host_that_is_far_behind_is_told_page_by_page_and_may_publish_after_the_last(
    together: bool,
) -> None:
    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        for _ in range(2):
            await world.ask()
        requests = [
            Request(Op.SUBSCRIBE, f"s{n}", "sub", Filter.parse(f"x < 5 or x > {n / 1000}", SCHEMA))
            for n in range(2 * ROWS + 1)
        ]
        for some in [requests] if together else [[each] for each in requests]:
            world.publishers.follow(world.state.step(some).told)
        holding = asyncio.create_task(world.publishers.holding(["pub"]))
        pages = [await world.ask(LONG) for _ in range(3)]
        assert [len(page.add) for page in pages] == [ROWS, ROWS, 1]
        assert [page.lease for page in pages] == [0.0, 0.0, LEASE]
        assert not any(page.anew for page in pages)
        await world.ask()
        await holding
        assert world.wanted(7) == {"sub"}

    run(story)


def test_a_host_that_is_too_far_behind_is_told_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsieve.control.publishers.NEWS", 10)

    async def story() -> None:
        world = World()
        world.take(Op.ADVERTISE, "pub", "True")
        for _ in range(2):
            await world.ask()
        ids = [world.take(Op.SUBSCRIBE, "sub", f"x < {n % 9 + 1}") for n in range(9)]
        for id in ids[:4]:
            world.end(Op.UNSUBSCRIBE, id, "sub")
        first = await world.ask(LONG)
        assert first.anew and len(first.add) == 5
        assert (await world.ask(LONG)).lease == LEASE
        assert (world.wanted(8), world.wanted(9)) == ({"sub"}, set())

    run(story)
