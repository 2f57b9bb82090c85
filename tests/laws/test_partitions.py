"""Laws of control that is shared: whoever decides, comes, goes or is slow, the tables are those of one process."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from staff import Staff

from flowsieve.content.schema import Schema
from flowsieve.control.partitions.division import Division
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.entry import content_flow
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.tables.compiler import Tables
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.mend import edges_of, mended
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}, "b": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA, bits=7)
ENCODING = encoding_of("ipv6")
MOST_PARTITIONS, MOST_MEMBERS = 13, 4

# Networks are drawn by seed: Hypothesis' own choices lean towards the simplest, where nothing goes wrong.
seeds = st.integers(0, 2**32 - 1).map(Random)


def a_topology(random: Random, switches: int = 5) -> Topology:
    """A connected network with a few links more than a tree."""
    names = [f"s{i}" for i in range(random.randint(1, switches))]
    links = [(names[random.randrange(i)], names[i]) for i in range(1, len(names))]
    spare = [pair for pair in combinations(names, 2) if pair not in links]
    links += random.sample(spare, min(len(spare), random.randint(0, 4)))
    hosts = {f"h{i}": random.choice(names) for i in range(random.randint(2, 6))}
    return Topology.make(links, hosts, switches=names)


def grown(random: Random, topology: Topology) -> Topology:
    """The network with one switch and one host more."""
    new, links = f"s{len(topology.switches)}", [(link.a, link.b) for link in topology.links]
    links.append((random.choice(topology.switches), new))
    hosts = {**topology.attached, f"h{len(topology.attached)}": random.choice([new, *topology.switches])}
    return Topology.make(links, hosts, switches=[*topology.switches, new])


def a_division(random: Random, most: int = MOST_PARTITIONS) -> Division:
    """Some number of partitions, of any sizes."""
    parts = [WHOLE_SPACE]
    for _ in range(min(random.choice([0, 1, 2, 3, 5, 8, 12]), most - 1)):
        divisible = [dz for dz in parts if dz.length < PLAN.bits - 1]
        dz = random.choice(divisible)
        parts.remove(dz)
        parts += dz.children
    return Division(tuple(parts))


def a_set(random: Random, fine: bool) -> DzSet:
    """Some cells; many small ones if that is asked for, so that tables fill."""

    def cell() -> Dz:
        length = random.choice([3, 4, 5, 6, 6, 7, 7] if fine else [0, 1, 2, 2, 3, 3, 4, 5, 6, 7])
        return Dz(random.getrandbits(length), length)

    return DzSet.of(*(cell() for _ in range(random.choice([2, 4, 6, 8] if fine else [1, 1, 2, 4]))))


@dataclass
class Story:
    """One state that decides by itself, one for which others do, and what happens to both."""

    random: Random
    capacity: int | None = None
    most: int = MOST_PARTITIONS
    asked: int = 0
    live: dict[str, Request] = field(default_factory=dict)
    moved: tuple[Dz, str] = (WHOLE_SPACE, "")  # what went over to another last, and who gave it away
    slow: set[str] = field(default_factory=set)  # configurators that are seldom heard
    shrinks: bool = False  # whether switches turn out to have less room than was thought

    def __post_init__(self) -> None:
        random, topology = self.random, a_topology(self.random)
        trees = TreeMap.over(topology, a_division(random, self.most).partitions)
        exact = self.capacity is None and not self.shrinks
        kind = random.choice(list(Tables)) if exact else Tables.OVERLAY
        self.one = ControlState(topology, PLAN, trees, Settings(capacity=None, tables=kind))
        shared = Settings(capacity=self.capacity, tables=kind, elsewhere=True)
        self.two = ControlState(topology, PLAN, trees, shared)
        self.staff = Staff(kind, random.choice([1, 2, 3, 7, 500]), roomy=not self.shrinks)
        assert self.two.elsewhere is not None
        self.two.elsewhere.deciders = self.staff
        self.begin()

        often = ["ask"] * 5 + ["work"] * 12 + ["hear"] * 15
        rare = ["join", "leave", "level", "begin", "grow", "fade", "ping"] + ["migrate"] * 4 + ["rewire"] * 2
        rare += ["bound"] * 8 if self.shrinks else []
        self.events = [*often, "join", *random.choices(rare, k=random.choice([4, 8, 16]))]

    def begin(self) -> None:
        assert self.two.elsewhere is not None
        two = self.two
        self.staff.begin(two.topology, two.trees, two.elsewhere.capacity, two.all_interests())

    def step(self) -> None:
        """Have one thing happen."""
        random, staff = self.random, self.staff
        what = random.choice(self.events)
        if not staff.lines and random.random() < 0.2:
            what = "join"
        name = random.choice(list(staff.lines)) if staff.lines else ""
        if what == "ask":
            self.ask([self.request() for _ in range(random.choice([1, 1, 2, 5, 9]))])
        elif what == "work" and (some := [line for line in staff.lines.values() if line.orders]):
            line = random.choice(some)
            for _ in range(min(random.randint(1, 4), len(line.orders))):
                line.work()
        elif what == "hear" and (some := [line for line in staff.lines.values() if line.answers]):
            line = random.choice(some)
            if line.name not in self.slow or random.random() < 0.1:
                for _ in range(min(random.randint(1, 4), len(line.answers))):
                    staff.hear(line.name)
        elif what == "join" and len(staff.lines) < MOST_MEMBERS:
            self.join()
        elif what == "leave" and name and (len(staff.lines) > 1 or random.random() < 0.2):
            staff.leave(name)
        elif what == "migrate" and name:
            self.migrate(name)
        elif what == "level" and name:
            staff.pool.level(name)
        elif what == "rewire":
            down = {edge for edge in sorted(edges_of(self.one.topology), key=sorted) if random.random() < 0.3}
            self.one.rewire(down)
            self.two.rewire(down)
        elif what == "begin" and random.random() < 0.2:
            self.begin()
        elif what == "grow" and random.random() < 0.2:
            self.grow()
        elif what == "fade":
            staff.pool.fade(0.5)
        elif what == "ping" and name:
            staff.pool.ping(name)
        elif what == "bound":
            switch = random.choice(self.two.topology.switches)
            self.two.bound(switch, random.choice([None, 1, 1, 2, 3, 4, 6, 9, 14]))
        staff.flush()
        self.take_back()

    def join(self) -> None:
        name = self.staff.join()
        if self.random.random() < 0.3:
            self.slow.add(name)

    def migrate(self, name: str) -> None:
        """A partition goes over to a configurator, or back to where it came from."""
        pool = self.staff.pool
        dz, giver = self.moved
        if dz in pool.partitions and giver in self.staff.lines and self.random.random() < 0.7:
            name = giver
        else:
            movable = [dz for dz, each in pool.partitions.items() if each.ready and each.owner != name]
            if not movable:
                return
            dz = self.random.choice(movable)
        self.moved = dz, pool.partitions[dz].owner or ""
        pool.migrate(dz, name)

    def request(self) -> Request:
        if self.live and self.random.random() < 0.4:
            was = self.live.pop(self.random.choice(list(self.live)))
            return Request(was.op.reverse, was.id, was.endpoint)
        self.asked += 1
        op = self.random.choice([Op.ADVERTISE, Op.SUBSCRIBE])
        host = self.random.choice(list(self.one.topology.hosts))
        fine = (self.capacity is not None or self.shrinks) and self.random.random() < 0.8
        made = Request(op, f"r{self.asked}", host, dz=a_set(self.random, fine))
        self.live[made.id] = made
        return made

    def ask(self, requests: list[Request]) -> None:
        self.one.step(requests)
        assert not self.two.step(requests).refused

    def take_back(self) -> None:
        """What was refused is taken back, as a dispatcher does it, unless it is at an end already."""
        refused, self.staff.refused = self.staff.refused, []
        for _, id in refused:
            if id in self.live:
                was = self.live.pop(id)
                self.ask([Request(was.op.reverse, was.id, was.endpoint)])

    def grow(self) -> None:
        """The network is another, or its space divided in another way, or both."""
        topology = self.one.topology
        if self.random.random() < 0.6 and len(topology.switches) < 8:
            topology = grown(self.random, topology)
        trees = None
        if self.random.random() < 0.6:
            trees = TreeMap.over(topology, a_division(self.random, self.most).partitions)
            trees = mended(trees, topology, self.one.down)
        for state in (self.one, self.two):
            state.grow(topology, trees)

    def end(self) -> None:
        """Let everybody finish."""
        if not self.staff.lines:
            self.staff.join()
        self.staff.settle()
        self.take_back()
        self.staff.settle()
        assert self.staff.pool.idle
        assert not self.staff.undecided
        self.check_held()
        for switch in self.one.topology.switches:
            assert self.staff.tables.get(switch, {}) == self.staff.pool.aim(switch) == self.two.table(switch)
            assert self.staff.pool.size(switch) == len(self.two.table(switch))

    def check_held(self) -> None:
        """What is held in partitions is what is in force, cut along them."""
        held = {
            (dz, key): part.dz
            for dz, each in self.staff.pool.partitions.items()
            for key, part in each.held.items()
        }
        division = Division(tuple(dz for dz, _ in self.two.trees))
        assert held == {
            (dz, (side, interest.id)): cut
            for side, interest in self.two.all_interests()
            for dz, cut in division.cut(interest.dz)
        }


@settings(max_examples=150)
@given(seeds)
def test_whoever_decides_and_whatever_happens_meanwhile_tables_are_those_of_one_process(random):
    story = Story(random)
    for _ in range(random.randint(20, 120)):
        story.step()
    story.end()
    for switch in story.one.topology.switches:
        assert story.staff.tables.get(switch, {}) == story.one.table(switch)


def check_served(story: Story) -> None:
    """All that is in force arrives, once, as far as cables lead."""
    two = story.two
    tables = {
        switch: tuple(content_flow(ENCODING, dz, ports) for dz, ports in table.items())
        for switch, table in story.staff.tables.items()
    }
    verdict = verify(two.view(ENCODING, dict.fromkeys(two.topology.switches, ()) | tables))
    assert verdict.holds, verdict.witness


@settings(max_examples=150)
@given(seeds)
def test_shares_of_little_room_are_never_exceeded_and_what_is_not_refused_is_served(random):
    most = random.choice([1, 2, 4])
    story = Story(random, random.choice([1, 2, 4, 8]) + most + MOST_MEMBERS, most)
    for _ in range(random.randint(20, 120)):
        story.step()
    story.end()
    check_served(story)


@settings(max_examples=150)
@given(seeds)
def test_a_switch_that_turns_out_smaller_than_its_partitions_is_asked_for_no_more_than_the_coarsest_table(
    random,
):
    """What is in force stays so; nothing comes to it for which there is no room."""
    story = Story(random, most=random.choice([1, 2, 4, 8]), shrinks=True)
    for _ in range(random.randint(20, 120)):
        story.step()
    story.end()
    check_served(story)
