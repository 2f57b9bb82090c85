"""Laws of a network in which some hosts send labels and others dz: events of either kind come to those who want them.

Requests come in any order, links fail, tables have any capacity, and the controller forgets all but its journal. After
each of these the switches have followed, and every event of every publisher is sent, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

from hypothesis import given, settings
from networks import topologies
from worlds import ENCODING, EVENTS, PLAN, a_filter, seeds

from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.control.switches.table_work import TableWork, table_work
from flowsieve.flow.interest import Interest
from flowsieve.flow.mixed_view import MixedView
from flowsieve.flow.proof.proving import explained, proved
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork

LABELLED = HostPatterns(("h0", "h[24]"))


class World:
    """A state, and embedded switches that follow it."""

    def __init__(self, topology: Topology, random: Random) -> None:
        self.topology, self.random = topology, random
        trees = random.choice([None, TreeMap.spread(topology, 2)])
        sets = HostPlaces(spread=random.randint(1, 3))  # with trees of their own, as far as there are several
        self.capacity: int | None = None
        self.state = self.made(trees)
        self.state.begin_with_sets(sets)
        if random.random() < 0.5:  # little room beside labels
            most = max(map(self.state.size, topology.switches))
            self.capacity = most + most // 2 + random.randint(0, 6)
            self.state = self.made(trees)
            self.state.begin_with_sets(sets)
        self.network = EmbeddedNetwork(topology, self.capacity)
        self.works = self.new_works()
        self.follow(Outcome({switch: [] for switch in topology.switches}))

    def made(self, trees: TreeMap | None) -> ControlState:
        chosen = Settings(budget=0, capacity=self.capacity, labelled=True, label_hosts=LABELLED)
        return ControlState(self.topology, PLAN, trees, chosen)

    def new_works(self) -> dict[str, TableWork]:
        """Works that know of no switch what it holds."""
        return {
            switch: table_work(switch, ENCODING, lambda: self.state, None)
            for switch in self.topology.switches
        }

    def follow(self, outcome: Outcome) -> None:
        """Have all switches do what is asked; none of them is asked for more than it has room for."""
        for switch, changes in outcome.changes.items():
            work, strays = self.works[switch], []
            if not work.known:
                strays = work.read(self.network.read(switch))
            else:
                work.ask(changes)
            ops = strays + work.begin()
            after = work.size_after(len(ops) - len(strays))
            ticket = self.network.apply(switch, ops)
            self.network.settle()
            assert ticket.error is None
            work.acknowledge()
            assert work.size == after == self.state.size(switch) == len(self.network.read(switch))

    def restart(self) -> None:
        """Go on with what a snapshot says, over switches of which nothing is known."""
        before = self.state.tables
        self.state, _ = recover(Past(snapshot(self.state, Ledger())), self.made)
        assert self.state.tables == before
        self.works = self.new_works()
        self.follow(Outcome({switch: [] for switch in self.topology.switches}))

    # Events.

    def sent(self, host: str, event: Mapping[str, object]) -> Iterator[str]:
        """The addresses that a host sends an event to, by what it knows: the plan, or the filters of others."""
        if LABELLED.hold(host):
            held = self.state.filters.held_by(host)
            named = {each for wanted, hosts in held if wanted.matches(event) for each in hosts}
            yield from self.state.labels.texts(named)
        else:
            yield from map(ENCODING.text, PLAN.encode(event))

    def check(self) -> None:
        """Publish everything that may be published."""
        wants = list(self.state.subscriptions.values())
        for host in {each.endpoint for each in self.state.advertisements.values()}:
            offers = self.state.publishes(host)
            for event in EVENTS:
                if not any(each.holds(event, ()) for each in offers):
                    continue
                seen = len(self.network.deliveries)
                for address in self.sent(host, event):
                    self.network.send(host, address)
                self.network.settle()
                got = Counter(each.host for each in self.network.deliveries[seen:])
                self.judge(host, event, got, wants)

    def judge(self, host: str, event: Mapping[str, object], got: Counter[str], wants: list[Interest]) -> None:
        right = {each.endpoint for each in wants if each.holds(event, ()) and each.endpoint != host}
        assert right <= got.keys() and set(got.values()) <= {1}
        if LABELLED.hold(host):
            assert right == got.keys()
        elif self.capacity is None:
            cells = PLAN.encode(event)
            assert got.keys() == {
                each.endpoint for each in wants if each.endpoint != host and any(map(each.dz.covers, cells))
            }

    def view(self) -> MixedView:
        tables = {switch: self.network.read(switch) for switch in self.topology.switches}
        return MixedView.of(self.state.view(ENCODING, tables), self.state.label_view(tables), LABELLED)


def requests(topology: Topology, random: Random) -> list[Request]:
    """Some that begin, and ends of some of them, each behind its beginning."""
    begun = []
    for n in range(random.randint(3, 12)):
        op = random.choice([Op.ADVERTISE, Op.SUBSCRIBE, Op.SUBSCRIBE])
        begun.append(Request(op, f"i{n}", random.choice(list(topology.hosts)), a_filter(random)))
    found = list(begun)
    for each in random.sample(begun, len(begun) // 3):
        found.insert(
            random.randint(found.index(each) + 1, len(found)),
            Request(each.op.reverse, each.id, each.endpoint),
        )
    return found


@settings(max_examples=40)
@given(topologies(switches=5, hosts=6), seeds)
def test_events_of_either_kind_come_to_those_who_want_them(topology: Topology, random: Random) -> None:
    world, waiting = World(topology, random), requests(topology, random)
    edges = [frozenset((link.a, link.b)) for link in topology.links]
    gone: set[str] = set()
    while waiting:
        some = [waiting.pop(0) for _ in range(min(len(waiting), random.randint(1, 4)))]
        due = [each for each in some if each.id not in gone]
        outcome = world.state.step(due)
        gone |= {request.id for request, _ in outcome.refused}
        world.follow(outcome)
        if edges and random.random() < 0.4:
            world.follow(world.state.rewire(random.sample(edges, random.randint(0, 1))))
        if random.random() < 0.3:
            world.restart()
    world.follow(world.state.rewire(()))
    world.check()
    verdict = proved(world.view())
    assert verdict.holds, verdict.witness
    for host in {each.endpoint for each in world.state.advertisements.values()}:
        told = explained(world.view(), host, random.choice(EVENTS))
        assert not told.missed or not told.published
