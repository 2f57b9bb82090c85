"""Whatever fails while requests come and go: nothing loops or doubles meanwhile, and all is right afterwards."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from fault_story import ENCODING, PLAN, SCHEMA, Story, WatchedFabric
from hypothesis import given, settings
from hypothesis import strategies as st
from in_loop import InLoopConfigurators
from networks import topologies

from flowsieve.content.filter import Filter
from flowsieve.control.discovery.explorer import Explorer
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Link, Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.numbered import NumberedSwitches


@given(topologies(), st.data())
def test_faults_at_any_moment_leave_nothing_wrong(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(Story(topology, data).run())


class SharedStory(Story):
    """Configurators decide on the tables, and are hit by faults as well, while all else is."""

    most_partitions = 5
    divides = True

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        self.share(topology)

    def share(self, known: Topology) -> None:
        """Have the same network controlled with configurators."""
        trees = partition_trees(known, self.data.draw(st.integers(1, self.most_partitions)))
        state = ControlState(known, PLAN, trees, Settings(elsewhere=True))
        dice = random.Random(self.data.draw(st.integers(0, 99)))
        self.configurators = InLoopConfigurators(lambda: dice.randrange(7))
        switches = NumberedSwitches(self.fabric, lambda: self.dispatcher.state.topology)
        self.dispatcher = Dispatcher(
            state, switches, ENCODING, patience=60, drain=0, deciding=self.configurators
        )
        self.fabric.report = switches.translated(self.dispatcher.heard)

    def step(self) -> None:
        match self.data.draw(st.integers(0, 9)):
            case 0:
                self.configurators.fire(self.data.draw(st.integers(0, 1)))
            case 1:
                pool = self.configurators.pool
                pool.migrate(self.pick_partition(), self.pick(pool.members))
                self.configurators._flush()
            case 2 if self.divides:
                partitions = [*self.dispatcher.state.partitions]
                halved = partitions.pop(self.data.draw(st.integers(0, len(partitions) - 1)))
                self.pending.append(
                    asyncio.create_task(self.dispatcher.divide([*partitions, *halved.children]))
                )
            case _:
                super().step()

    def pick_partition(self) -> Dz:
        return self.data.draw(st.sampled_from(sorted(self.configurators.pool.partitions)))

    async def run(self) -> None:
        async with self.configurators:
            await super().run()
        assert not self.configurators.pool.stale

    @property
    def at_rest(self) -> bool:
        return super().at_rest and self.dispatcher.undecided is None


@given(topologies(), st.data())
def test_faults_of_configurators_beside_all_others_leave_nothing_wrong(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(SharedStory(topology, data).run())


class TightStory(SharedStory):
    """Switches have little room, which they tell by refusing entries; it is shared out between configurators.

    There is an entry for each partition and configurator at least.
    """

    most_partitions = 3
    divides = False
    room = (8, 10)

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        room = data.draw(st.integers(*self.room))
        self.fabric = WatchedFabric(
            EmbeddedNetwork(topology, room), lambda event: self.dispatcher.heard(event)
        )
        self.share(topology)

    def step(self) -> None:
        """Everybody publishes anything, and most of what happens are subscriptions."""
        if not self.number:
            for host in self.topology.hosts:
                self.number += 1
                everything = Filter.parse("True", SCHEMA)
                self.ask(Request(Op.ADVERTISE, str(self.number), host, everything))
        for _ in range(self.data.draw(st.integers(0, 3))):
            self.number += 1
            low = self.data.draw(st.integers(0, 15))
            narrow = Filter.parse(f"a == {low}", SCHEMA)
            self.ask(Request(Op.SUBSCRIBE, str(self.number), self.pick(list(self.topology.hosts)), narrow))
        super().step()


@settings(max_examples=40)
@given(topologies(), st.data())
def test_nor_do_they_where_switches_have_little_room(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(TightStory(topology, data).run())


class TooTightStory(TightStory):
    """There may be less room than partitions, so that not even the coarsest table fits.

    No link fails: one that comes back would stay closed until tables fit, and what needs it would wait as long.
    """

    events = ("add", "add", "end", "cut", "mute", "restart")
    most_partitions = 5
    room = (3, 7)


@settings(max_examples=40)
@given(topologies(), st.data())
def test_nor_do_they_where_switches_have_less_room_than_partitions(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(TooTightStory(topology, data).run())


class GrowingStory(Story):
    """A network of which only a part is known at first, by the numbers that its switches have for their ports."""

    settings = Settings()
    encoding = ENCODING

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        links = [link for link in topology.links if data.draw(st.booleans())]
        hosts = [host for host in topology.hosts if data.draw(st.booleans())]
        self.growth: asyncio.Task[None] | None = None
        self.forgotten: list[Edge] = []
        known = self.part(links, hosts)
        trees = TreeMap.spread(known, 2) if data.draw(st.booleans()) else None
        self.switches = NumberedSwitches(self.fabric, lambda: self.dispatcher.state.topology)
        state = ControlState(known, PLAN, trees, self.settings)
        if self.settings.labelled:  # in sets that have trees of their own, as far as there are several
            state.begin_with_sets(HostPlaces(spread=data.draw(st.integers(1, 3))))
        self.dispatcher = Dispatcher(state, self.switches, self.encoding, patience=60, drain=0)
        self.fabric.report = self.switches.translated(self.dispatcher.heard)

    def part(self, links: Sequence[Link], hosts: Sequence[str]) -> Topology:
        """A topology of some links and hosts, on the ports that they really have."""
        whole = self.topology
        near: dict[str, list[str]] = {switch: [] for switch in whole.switches}
        for link in links:
            near[link.a].append(link.b)
            near[link.b].append(link.a)
        for host in hosts:
            near[whole.hosts[host]].append(host)
        numbers = {switch: {each: whole.port(switch, each) for each in row} for switch, row in near.items()}
        return Topology(whole.switches, tuple(links), {host: whole.hosts[host] for host in hosts}, numbers)

    def step(self) -> None:
        known = self.dispatcher.state.topology
        if self.data.draw(st.booleans()) and (self.growth is None or self.growth.done()):
            links = [link for link in self.topology.links if link not in known.links]
            hosts = [host for host in self.topology.hosts if host not in known.hosts]
            new = self.data.draw(st.sampled_from([*links, *hosts])) if links or hosts else None
            settled = self.at_rest
            if settled and self.data.draw(st.booleans()):
                self.growth = asyncio.create_task(self.forget())
            else:
                self.grow([new] if isinstance(new, Link) else [], [new] if isinstance(new, str) else [])
        elif self.topology.links and self.data.draw(st.integers(0, 4)) == 0:
            link = self.data.draw(st.sampled_from(self.topology.links))  # known or not
            self.fabric.set_link(link.a, link.b, up=self.data.draw(st.booleans()))
        elif known.hosts and known.links:
            whole, self.topology = self.topology, known
            try:
                super().step()
            finally:
                self.topology = whole

    async def forget(self) -> None:
        """Have links that are down forgotten, as far as that can be done."""
        explorer = Explorer(self.dispatcher, None, lambda topology: None, links=True, hosts=True)  # type: ignore[arg-type]

        async def become(more: Callable[[Topology], Topology]) -> Topology:
            topology = more(self.dispatcher.state.topology)
            await self.dispatcher.grow(topology, {})
            return topology

        explorer.become = become  # type: ignore[method-assign]
        self.forgotten += await explorer.forget(60)

    def grow(self, links: Sequence[Link], hosts: Sequence[str]) -> None:
        known = self.dispatcher.state.topology
        new = self.part([*known.links, *links], [*known.hosts, *hosts])
        self.growth = asyncio.create_task(self.dispatcher.grow(new, {}))

    def ask(self, request: Request) -> None:
        with suppress(BadInput):  # a host that was cut off from the start, until the network has grown
            self.dispatcher.state.check(request)
            super().ask(request)

    async def check(self) -> None:
        """In the end all is known; what really stands in the tables is right on the network as it is."""
        await self.dispatcher.settled()
        assert (await self.dispatcher.verify()).holds
        await self.grow_wholly()
        state, network = self.dispatcher.state, self.fabric.network
        tables = {switch: network.read(switch) for switch in self.topology.switches}
        offers, wants = list(state.advertisements.values()), list(state.subscriptions.values())
        assert verify(NetworkView(self.topology, PLAN, ENCODING, tables, offers, wants, state.down)).holds
        assert (await self.dispatcher.verify()).holds

    async def grow_wholly(self) -> None:
        if self.growth is not None:
            await self.growth
        known = self.dispatcher.state.topology
        self.grow(
            [link for link in self.topology.links if link not in known.links],
            [host for host in self.topology.hosts if host not in known.hosts],
        )
        assert self.growth is not None
        await self.growth
        while self.dispatcher.state.down != self.fabric.down or not self.at_rest:
            self.recover()  # one that has yet to lose an answer may be asked for something now
            await asyncio.sleep(0.001)


class MixedStory(GrowingStory):
    """The same where some hosts send labels; nobody holds filters here, so no request waits for a publisher."""

    settings = Settings(labelled=True, label_hosts=HostPatterns(("h0", "h2")))

    async def check(self) -> None:
        await self.dispatcher.settled()
        assert (await self.dispatcher.verify()).holds
        await self.grow_wholly()
        verdict = await self.dispatcher.verify()
        assert verdict.holds, verdict
        state, network = self.dispatcher.state, self.fabric.network
        assert set(state.labels.hosts) == set(self.topology.hosts)
        for switch in self.topology.switches:
            assert len(network.read(switch)) == state.size(switch)


class LabelStory(MixedStory):
    """The same where all hosts send labels."""

    settings = Settings(labelled=True)
    encoding = encoding_of("receivers")


@given(topologies(), st.data())
def test_a_network_that_grows_at_any_moment_is_right_all_the_time(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(GrowingStory(topology, data).run())


@settings(max_examples=15)
@given(topologies(extra=4), st.data())
def test_so_is_one_in_which_some_hosts_send_labels(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(MixedStory(topology, data).run())


@settings(max_examples=15)
@given(topologies(hosts=6, extra=5), st.data())
def test_so_is_one_in_which_all_send_labels_along_the_trees_of_sets(
    topology: Topology, data: st.DataObject
) -> None:
    asyncio.run(LabelStory(topology, data).run())


class SharedGrowingStory(GrowingStory, SharedStory):
    """A network that grows while configurators decide, and are hit."""

    def __init__(self, topology: Topology, data: st.DataObject) -> None:
        super().__init__(topology, data)
        self.share(self.dispatcher.state.topology)


@settings(max_examples=40)
@given(topologies(), st.data())
def test_so_is_one_on_which_configurators_decide(topology: Topology, data: st.DataObject) -> None:
    asyncio.run(SharedGrowingStory(topology, data).run())
