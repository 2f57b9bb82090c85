"""Laws of Bloom filters in a network that lives: whichever publishers, switches and steps are behind, nothing is lost.

Switches make their operations one by one and at any time, publishers take in what they were told at any time, links
fail, tables are full, and the controller is killed among all that. After each operation every publisher may send any
event that it has advertised, and whoever's subscription was acknowledged gets it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from networks import topologies
from worlds import EVENTS, SCHEMA, a_filter

from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.errors import BadTopology
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_diff import label_ops
from flowsieve.flow.publisher_filters import FilterChange
from flowsieve.flow.shares import Shares
from flowsieve.flow.table_chain import met
from flowsieve.flow.tables.bloom_labelled import BloomLabelledTables, BloomSettings
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.tables.pattern_order import ordered
from flowsieve.header.bloom import BloomLabels
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.matcher.packed_filters import PackedFilters
from flowsieve.network.generators import generate
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.protocol.filter_page import FilterPacking

seeds = st.integers(0, 2**32 - 1).map(Random)
LABELS = BloomLabels.tuned(4)


@dataclass(eq=False)
class Publisher:
    """A host that publishes: what it holds, and what it was told and has not taken in, version by version."""

    held: PackedFilters
    news: deque[tuple[int, list[FilterChange]]] = field(default_factory=deque)
    offers: set[str] = field(default_factory=set)  # advertisements that were acknowledged

    def take(self, number: int, numbers: dict[str, int]) -> None:
        for _ in range(min(number, len(self.news))):
            _, changes = self.news.popleft()
            for change in changes:
                self.held.change((change.filter.text, (numbers[change.host],)), 1 if change.wanted else -1)


@dataclass(eq=False)
class Step:
    """What is under way: switches that have yet to acknowledge it, then publishers that have yet to hold it."""

    subscription: str | None
    switches: set[str]
    told: int | None = None


class World:
    """A state, what switches hold, what publishers hold, and what was acknowledged to subscribers."""

    def __init__(self, topology: Topology, random: Random) -> None:
        self.topology, self.random = topology, random
        self.copies = Shares(random.randint(1, 4), random.choice([None, 1, 2]))
        self.room: int | None = None
        fixed = max(self.made().size(switch) for switch in topology.switches)
        self.room = random.choice([None, fixed + random.randint(2, 8)])
        self.state = self.made()
        self.bloom.start()
        self.bloom.started()
        self.tables: dict[str, dict[object, Flow]] = {switch: {} for switch in topology.switches}
        self.numbers = {host: self.state.sets.number(host) for host in topology.hosts}
        self.publishers: dict[str, Publisher] = {}
        self.acknowledged: dict[str, Interest] = {}
        self.steps: dict[int, Step] = {}
        self.version = self.count = 0
        self.starting: Step | None = None
        self.paused = False
        self.faults = random.choice(
            [[], [self.rewire], [self.restart], [self.rewire] * 2 + [self.restart] * 4]
        )
        self.away: set[str] = set()  # switches that a controller which was started anew has not seen yet
        self.waiting: set[str] = set()  # publishers that go on with what a controller before told them
        for switch in topology.switches:
            self.follow(switch)

    def made(self, trees: TreeMap | None = None) -> ControlState:
        settings = Settings(labelled=True, capacity=self.room, bloom=BloomSettings(LABELS, self.copies))
        return ControlState(self.topology, RegularPlan.make(SCHEMA, bits=0), trees, settings)

    @property
    def bloom(self) -> BloomLabelledTables:
        assert self.state.bloom is not None
        return self.state.bloom

    # What happens.

    def act(self) -> None:
        self.random.choice(
            [self.subscribe] * 4
            + [self.unsubscribe] * 3
            + [self.some_switch] * 8
            + [self.some_publisher] * 5
            + [self.some_step] * 12
            + [self.renew] * 4
            + [self.advertise, self.unadvertise]
            + self.faults
        )()

    def subscribe(self) -> None:
        self.count += 1
        host = self.random.choice(list(self.topology.hosts))
        self.take(Request(Op.SUBSCRIBE, f"s{self.count}", host, a_filter(self.random)))

    def unsubscribe(self) -> None:
        if there := list(self.state.subscriptions.values()):
            gone = self.random.choice(there)
            self.acknowledged.pop(gone.id, None)
            self.take(Request(Op.UNSUBSCRIBE, gone.id, gone.endpoint))

    def advertise(self) -> None:
        self.count += 1
        host, name = self.random.choice(list(self.topology.hosts)), f"a{self.count}"
        offer = Filter.parse("True", SCHEMA) if self.count == 1 else a_filter(self.random)
        if self.paused or self.away:
            return
        if self.take(Request(Op.ADVERTISE, name, host, offer)):
            for switch in self.topology.switches:
                self.follow(switch)
            if host in self.waiting:
                self.tell_all(host)
            publisher = self.publisher(host)
            publisher.take(len(publisher.news), self.numbers)
            publisher.offers.add(name)

    def unadvertise(self) -> None:
        if not self.away and (there := list(self.state.advertisements.values())[1:]):
            gone = self.random.choice(there)
            self.publishers[gone.endpoint].offers.discard(gone.id)
            self.take(Request(Op.UNADVERTISE, gone.id, gone.endpoint))

    def take(self, request: Request) -> bool:
        outcome = self.state.step([request])
        self.heard(outcome, request)
        return not outcome.refused

    def heard(self, outcome: Outcome, request: Request | None = None) -> None:
        self.tell(outcome.told)
        for step in outcome.steps:
            there = request is not None and request.op is Op.SUBSCRIBE and not outcome.refused
            name = request.id if there and request is not None else None
            self.steps[step] = Step(name, self.bloom.switches_of(step))

    def tell(self, told: dict[str, list[FilterChange]]) -> None:
        self.version += 1
        for host, changes in told.items():
            self.publisher(host).news.append((self.version, changes))

    def publisher(self, host: str) -> Publisher:
        if host not in self.publishers:
            self.publishers[host] = self.fresh_publisher()
        return self.publishers[host]

    def some_switch(self) -> None:
        switch = self.random.choice(list(self.topology.switches))
        if switch not in self.away:
            self.follow(switch)
        elif self.random.random() < 0.1:
            self.come_back()

    def come_back(self) -> None:
        """Switches that were away are seen again, with what they held."""
        for switch in self.away:
            self.bloom.adopt(switch, self.tables[switch].values())
        self.away = set()

    def follow(self, switch: str, *, looking: bool = True) -> None:
        """A switch makes all that is asked of it, one operation after the other."""
        table = self.tables[switch]
        ops = label_ops(table.values(), self.state.label_entries(switch))
        for op in ordered(ops, LABELS, len(table), self.room):
            apply(table, op)
            if looking and (self.room is None or len(table) + len(ops) <= self.room):
                self.look()  # else it is made as one batch
            if self.room is not None:
                assert len(table) <= self.room
        if looking:
            self.look()
        for step in (*self.steps.values(), *([self.starting] if self.starting else ())):
            step.switches.discard(switch)

    def some_publisher(self) -> None:
        if there := sorted(self.publishers.keys() - self.waiting):
            self.publishers[self.random.choice(there)].take(self.random.randint(1, 3), self.numbers)

    def some_step(self) -> None:
        """A step goes on, if it can."""
        if not self.steps or self.paused:
            return
        number = self.random.choice(list(self.steps))
        step = self.steps[number]
        if step.switches:
            return
        if step.told is None:
            waits = self.bloom.waits_of(number)
            if any(self.steps[other].told is None for other in waits if other in self.steps):
                return
            self.tell(self.bloom.tell(number))
            step.told = self.version
        elif all(
            not publisher.news or publisher.news[0][0] > step.told for publisher in self.publishers.values()
        ):
            others = {each.subscription for each in self.steps.values() if each is not step}
            if step.subscription in self.state.subscriptions.keys() - others:
                assert step.subscription is not None
                self.acknowledged[step.subscription] = self.state.subscriptions[step.subscription]
            del self.steps[number]
            self.bloom.settle([number])

    def rewire(self) -> None:
        """A link fails; what is under way where it did may be lost, so all switches follow before anybody looks."""
        if self.away:
            return
        edges = [frozenset(edge) for edge in self.state.trees.trees[0].edges]
        spare = [frozenset((link.a, link.b)) for link in self.topology.links]
        if not edges or len(spare) == len(edges):
            return
        down = {self.random.choice(edges)} if self.random.random() < 0.7 else set()
        self.state.rewire(down)
        for switch in self.topology.switches:
            self.follow(switch, looking=False)
        for number, step in self.steps.items():
            step.switches |= self.bloom.switches_of(number)

    def restart(self) -> None:
        """The controller is killed; publishers go on with what they hold until they hear of the next one."""
        state, _ = recover(Past(snapshot(self.state, Ledger())), self.made)
        state.down, state.fenced = self.state.down, self.state.fenced
        self.state = state
        self.bloom.start()
        self.steps = {step: Step(None, self.bloom.switches_of(step)) for step in self.bloom.begun()}
        self.away = {switch for switch in self.topology.switches if self.random.random() < 0.2}
        for switch, table in self.tables.items():
            if switch not in self.away:
                self.bloom.adopt(switch, table.values())
        for publisher in self.publishers.values():
            publisher.news.clear()
        self.starting, self.paused = Step(None, set(self.topology.switches)), True
        self.waiting = set(self.publishers)

    def renew(self) -> None:
        """Publishers are told all of it when switches have followed, and then what they held before is forgotten."""
        if (
            self.starting is None or self.starting.switches - self.away
        ):  # for those that are away nobody waits
            return
        self.paused = False
        if self.waiting:
            self.tell_all(self.random.choice(sorted(self.waiting)))
        if not self.waiting:
            self.starting = None
            self.bloom.started()
            for each in () if self.away else self.state.subscriptions.values():
                if not any(step.subscription == each.id for step in self.steps.values()):
                    self.acknowledged[each.id] = each

    def tell_all(self, host: str) -> None:
        """A publisher is told all of it."""
        known, self.publishers[host] = self.publishers[host], self.fresh_publisher()
        for filter, hosts in self.state.filters.held_by(host):
            numbers = tuple(self.numbers[each] for each in hosts)
            self.publishers[host].held.change((filter.text, numbers), 1)
        self.publishers[host].offers = known.offers
        self.waiting.discard(host)

    def fresh_publisher(self) -> Publisher:
        packing = FilterPacking(LABELS.k, self.copies.filters, self.copies.number)
        return Publisher(PackedFilters(SCHEMA, packing))

    # Judgement.

    def look(self) -> None:
        """Whatever is published now comes to whom it was promised."""
        for host, publisher in self.publishers.items():
            offers = [self.state.advertisements[name] for name in publisher.offers]
            for event in EVENTS[:: len(EVENTS) // 12]:
                if not any(offer.holds(event, ()) for offer in offers):
                    continue
                wanted = {
                    each.endpoint
                    for each in self.acknowledged.values()
                    if each.endpoint != host and each.holds(event, ())
                }
                if wanted:
                    packets = publisher.held.match(event).packets or ()
                    missed = {
                        at for at in wanted if not self.arrives(host, at, [bits for bits, _ in packets])
                    }
                    assert not missed, f"{event} of {host} does not get to {missed}"

    def arrives(self, host: str, to: str, packets: list[int]) -> bool:
        home = self.topology.hosts
        try:
            path = self.state.trees.trees[0].path(home[host], home[to])
        except BadTopology:
            return True  # cut off from each other, they are owed nothing
        way = [
            (switch, self.topology.port(switch, near))
            for switch, near in zip(path, (*path[1:], to), strict=True)
        ]
        return any(all(self.sends(switch, port, bits) for switch, port in way) for bits in packets)

    def sends(self, switch: str, port: int, bits: int) -> bool:
        source, destination = LABELS.addresses(bits)
        flows = met(tuple(self.tables[switch].values()), 6, destination, source)
        return sum(flow.ports.count(port) for flow in flows) == 1

    def rest(self) -> None:
        """All goes on until nothing is under way."""
        self.come_back()
        for _ in range(1000):
            for switch in self.topology.switches:
                self.follow(switch)
            self.renew()
            for host in self.publishers.keys() - self.waiting:
                self.publishers[host].take(len(self.publishers[host].news), self.numbers)
            self.some_step()
            if not self.steps and self.starting is None:
                break
        for switch in self.topology.switches:
            self.follow(switch)


def apply(table: dict[object, Flow], op: FlowOp) -> None:
    if op.kind is OpKind.REMOVE:
        del table[op.flow.key]
    else:
        table[op.flow.key] = op.flow


@settings(max_examples=40)
@given(topologies(switches=5, hosts=6), seeds)
def test_whoever_was_promised_an_event_gets_it_whatever_is_under_way(
    topology: Topology, random: Random
) -> None:
    world = World(topology, random)
    for _ in range(3):
        world.advertise()
    for _ in range(60):
        world.act()
        world.look()
    world.rest()
    world.look()
    assert set(world.acknowledged) == set(world.state.subscriptions)
    fresh = world.made(world.state.trees)
    fresh.restore(
        [
            Request(op, each.id, each.endpoint, each.filter)
            for op, side in ((Op.ADVERTISE, Side.PUBLISHER), (Op.SUBSCRIBE, Side.SUBSCRIBER))
            for each in world.state.interests(side).values()
        ]
    )
    if world.room is None:
        for switch in topology.switches:
            assert set(world.tables[switch].values()) == set(fresh.label_entries(switch))


def test_a_filter_that_was_ending_is_sent_until_a_switch_that_was_away_at_a_restart_does_without() -> None:
    """The switch knows what the filter covers by the filter alone, and the controller is killed before it is back."""
    world = World(generate("line:3"), Random(0))
    world.room, world.state = None, world.made()
    world.bloom.start()
    world.bloom.started()
    for op, name, host, text in (
        (Op.ADVERTISE, "all", "h0", "True"),
        (Op.SUBSCRIBE, "wide", "h2", "a < 6"),
        (Op.SUBSCRIBE, "narrow", "h2", "a < 2"),
    ):
        world.take(Request(op, name, host, Filter.parse(text, SCHEMA)))
        if op is Op.ADVERTISE:
            world.publisher("h0").offers.add("all")
        world.rest()
    assert world.acknowledged.keys() == {"wide", "narrow"}
    del world.acknowledged["wide"]
    world.take(Request(Op.UNSUBSCRIBE, "wide", "h2"))
    world.restart()
    world.away = {"s1"}
    for _ in range(20):
        for switch in ("s0", "s2"):
            world.follow(switch)  # and looks
        world.renew()
        for _ in range(5):
            world.some_step()
    assert world.steps  # which wait for the switch
    world.rest()
    assert not world.steps
    assert not list(world.state.filters.held_by("h0"))[1:]
