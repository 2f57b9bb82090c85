"""Where labels are Bloom filters, tables know a filter before publishers do, and until none of them sends its bits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.errors import Busy
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_labelled import BloomSettings
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.matcher.filter_store import FilterStore
from flowsieve.network.topology import Topology
from flowsieve.protocol.filter_page import FilterPage
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 99}})
NETWORK = Topology.make([("s1", "s2"), ("s1", "s3")], {"pub": "s1", "sub": "s2", "far": "s3"})
LEASE = 2.0


def made(filters: int = 16, capacity: int | None = None) -> ControlState:
    bloom = BloomSettings(BloomLabels.tuned(filters), Shares(filters))
    settings = Settings(labelled=True, bloom=bloom, capacity=capacity)
    return ControlState(NETWORK, RegularPlan.make(SCHEMA, bits=0), settings=settings)


class Net:
    """A dispatcher over embedded switches, and the matcher of host pub."""

    def __init__(self, state: ControlState, network: EmbeddedNetwork, ledger: Ledger | None = None) -> None:
        self.network = network
        self.fabric = EmbeddedFabric(network, lambda event: self.dispatcher.heard(event))
        self.dispatcher = Dispatcher(
            state, self.fabric, encoding_of("bloom"), drain=0, ledger=ledger, filter_lease=LEASE
        )
        self.store = FilterStore(SCHEMA)
        self.listens = asyncio.Event()  # whether the matcher asks
        self.listens.set()

    async def match(self) -> None:
        """What a matcher does."""
        while True:
            await self.listens.wait()
            try:
                page = await self.dispatcher.publishers.ask("pub", "a", self.store.held, 0.05)
            except Busy:
                await asyncio.sleep(0.01)
                continue
            self.store.take(FilterPage.parse(page.to_json()))

    async def ask(self, op: Op, id: str, host: str, text: str | None = None) -> Outcome:
        filter = None if text is None else Filter.parse(text, SCHEMA)
        return await self.dispatcher.submit(Request(op, id, host, filter))

    def filters(self, switch: str) -> int:
        """How many entries of filters a switch holds."""
        return sum(bool(flow.actions) for flow in self.network.read(switch))

    def arrives(self, x: int) -> set[str]:
        """The hosts that an event gets to which the publisher sends now."""
        seen, labels = len(self.network.deliveries), BloomLabels.tuned(16)
        for packet in self.store.match({"x": x}).packets or ():
            source, to = labels.addresses(packet.bits)
            self.network.send("pub", to, source=source)
        self.network.settle()
        return {each.host for each in self.network.deliveries[seen:]}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def play(story: Callable[[Net], Awaitable[None]], net: Callable[[], Net]) -> None:
    async def whole() -> None:
        there = net()
        async with asyncio.timeout(120), there.dispatcher:
            for switch in NETWORK.switches:
                there.fabric.connect(switch)
            await there.dispatcher.settled()
            matching = asyncio.create_task(there.match())
            if not there.dispatcher.state.advertisements:
                await there.ask(Op.ADVERTISE, "a", "pub", "True")
            await story(there)
            matching.cancel()

    asyncio.run(whole())


def test_publishers_hear_of_a_filter_when_the_switches_on_its_way_know_it_and_wait_for_no_others() -> None:
    async def story(net: Net) -> None:
        net.fabric.disconnect("s2")
        asked = asyncio.create_task(net.ask(Op.SUBSCRIBE, "s", "sub", "x < 50"))
        await net.ask(Op.SUBSCRIBE, "f", "far", "x < 60")
        assert net.arrives(10) == {"far"}
        assert net.dispatcher.steps_under_way and not asked.done()
        net.fabric.connect("s2")
        await asked
        assert net.arrives(10) == {"sub", "far"}

    play(story, lambda: Net(made(), EmbeddedNetwork(NETWORK)))


def test_tables_keep_a_filter_until_publishers_do_without_it_and_have_what_it_covered_before() -> None:
    async def story(net: Net) -> None:
        await net.ask(Op.SUBSCRIBE, "narrow", "sub", "x < 10")
        await net.ask(Op.SUBSCRIBE, "wide", "sub", "x < 50")
        await until(lambda: not net.dispatcher.steps_under_way)
        assert (net.filters("s1"), net.filters("s2")) == (1, 1)
        net.listens.clear()
        await asyncio.sleep(0.1)  # for the call under way
        await net.ask(Op.UNSUBSCRIBE, "wide", "sub")
        assert (net.filters("s1"), net.filters("s2")) == (2, 2)
        assert net.arrives(5) == {"sub"}
        net.listens.set()
        await until(lambda: not net.dispatcher.steps_under_way)
        await net.dispatcher.settled()
        assert (net.filters("s1"), net.filters("s2")) == (1, 1)
        assert (net.arrives(5), net.arrives(20)) == ({"sub"}, set())
        assert (await net.dispatcher.verify()).holds

    play(story, lambda: Net(made(), EmbeddedNetwork(NETWORK)))


def test_a_silent_publisher_keeps_a_filter_in_the_tables_for_its_lease_and_no_longer() -> None:
    async def story(net: Net) -> None:
        await net.ask(Op.SUBSCRIBE, "s", "sub", "x < 50")
        net.listens.clear()
        await asyncio.sleep(0.1)
        await net.ask(Op.UNSUBSCRIBE, "s", "sub")
        await asyncio.sleep(LEASE / 4)
        assert net.arrives(5) == {"sub"}  # it may go by what it holds
        await until(lambda: not net.dispatcher.steps_under_way)
        await net.dispatcher.settled()
        assert net.filters("s1") == 0

    play(story, lambda: Net(made(), EmbeddedNetwork(NETWORK)))


def test_what_an_earlier_controller_told_publishers_holds_until_they_hear_of_the_next_one() -> None:
    network, ledger = EmbeddedNetwork(NETWORK), Ledger()
    ledger.promise(5 * LEASE)
    held: list[FilterStore] = []

    async def first(net: Net) -> None:
        await net.ask(Op.SUBSCRIBE, "narrow", "sub", "x < 10")
        await net.ask(Op.SUBSCRIBE, "wide", "sub", "x < 50")
        await until(lambda: not net.dispatcher.steps_under_way)
        held.append(net.store)

    async def then(net: Net) -> None:
        """One that has never heard of the wide filter, as if it had ended when nobody could be told."""
        net.listens.clear()
        assert (net.filters("s2"), net.dispatcher.steps_under_way) == (2, 1)
        net.store, fresh = held[0], net.store
        assert net.arrives(5) == {"sub"}
        net.store = fresh
        net.listens.set()
        await until(lambda: not net.dispatcher.steps_under_way)
        await net.dispatcher.settled()
        assert net.filters("s2") == 1
        await until(lambda: net.arrives(5) == {"sub"})
        assert (await net.dispatcher.verify()).holds

    play(first, lambda: Net(made(), network))
    state, narrow = made(), Filter.parse("x < 10", SCHEMA)
    state.step([Request(Op.ADVERTISE, "a", "pub", Filter.parse("True", SCHEMA))])
    state.step([Request(Op.SUBSCRIBE, "narrow", "sub", narrow)])
    play(then, lambda: Net(state, network, ledger))


def test_filters_are_packed_otherwise_after_the_configuration_was_read_again() -> None:
    async def story(net: Net) -> None:
        await net.ask(Op.SUBSCRIBE, "s", "sub", "x < 50")
        other = made(filters=4)
        for id, each in (
            ("a", net.dispatcher.state.advertisements),
            ("s", net.dispatcher.state.subscriptions),
        ):
            op = Op.ADVERTISE if id == "a" else Op.SUBSCRIBE
            other.step([Request(op, id, each[id].endpoint, each[id].filter)])
        net.dispatcher.replace(other)
        await until(lambda: not net.dispatcher.steps_under_way)
        await net.dispatcher.settled()
        assert (net.filters("s1"), net.filters("s2")) == (1, 1)
        packet = net.store.match({"x": 5}).packets[0]  # type: ignore[index]
        assert packet.bits.bit_count() == BloomLabels.tuned(4).k != BloomLabels.tuned(16).k
        assert (await net.dispatcher.verify()).holds

    play(story, lambda: Net(made(), EmbeddedNetwork(NETWORK)))


def test_entries_are_merged_where_a_switch_refuses_one_and_what_cannot_fit_is_refused() -> None:
    async def story(net: Net) -> None:
        for number in range(6):
            assert not (await net.ask(Op.SUBSCRIBE, f"s{number}", "sub", f"x == {number}")).refused
        await until(lambda: not net.dispatcher.steps_under_way)
        await net.dispatcher.settled()
        assert 0 < net.filters("s1") < 6
        assert set().union(*map(net.arrives, range(6))) == {"sub"}
        assert all(net.arrives(number) == {"sub"} for number in range(6))
        assert (await net.dispatcher.verify()).false_negatives == 0

    fixed = max(made().size(switch) for switch in NETWORK.switches)
    play(story, lambda: Net(made(), EmbeddedNetwork(NETWORK, fixed + 4)))

    async def refused(net: Net) -> None:
        outcome = await net.ask(Op.SUBSCRIBE, "s", "sub", "x == 1")
        assert outcome.refused
        assert net.dispatcher.state.subscriptions == {}

    play(refused, lambda: Net(made(capacity=fixed + 1), EmbeddedNetwork(NETWORK)))
