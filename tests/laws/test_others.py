"""The law of verify where others have entries and set ports: packets sent one by one fare as it says.

Whether an entry of others catches a packet may depend on what nobody knows. So packets are sent through networks in
which that was decided at random: what verify counts goes wrong in all of them, and where it leaves nothing undecided,
nothing else does.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import networkx as nx
from hypothesis import given, settings
from worlds import (
    ENCODING,
    EVENTS,
    FINE,
    PLAN,
    Tables,
    World,
    a_world,
    broken_tables,
    cells,
    good_tables,
    seeds,
)

from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.flat import look_up
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.others import Foreign, Others, PortSetting, SentCopy
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.address import Prefix
from flowsieve.index.dz import Dz

GROUP = ENCODING.tag.group
ELSEWHERE = Prefix.parse("ff02::99/128")


def an_entry(random: Random, ports: int, certain: bool) -> Foreign:
    """An entry of others, in the content's table or in one before it; without doubts if it is to be `certain`."""
    length = random.randint(0, FINE)
    dz = Prefix(6, GROUP.bits << length | random.getrandbits(length), GROUP.length + length)
    reach = random.choice([None, Prefix.parse("ff00::/8"), Prefix.parse("ff15::/16"), GROUP, dz, dz])
    out = random.sample(range(1, ports + 1), random.randint(0, min(ports, 2)))
    changed = [(None, None)] * 6 + [(7, None), (None, ELSEWHERE), (7, ELSEWHERE)]
    made = Foreign(
        priority=random.choice([0, 500, 1000, 1003, *range(1000, 1001 + FINE), 3000, 3000]),
        text=f"entry {random.getrandbits(30)}",
        reach=reach,
        certain=certain or random.random() < 0.5,
        in_port=None if certain or random.random() < 0.7 else random.randint(1, ports + 1),
        copies=tuple(SentCopy(port, *random.choice(changed)) for port in out),
        perhaps=not certain and random.random() < 0.2,
        floods=not certain and random.random() < 0.1,
        goes_on=(ahead := random.random() < 0.3) and random.random() < 0.6,
        ahead=int(ahead),
    )
    if made.goes_on:  # with copies of its own, it would be a riddle
        return replace(made, copies=(), perhaps=False, floods=False)
    return replace(made, copies=()) if made.floods else made


def some_others(random: Random, world: World, certain: bool) -> dict[str, Others]:
    found = {}
    for switch in world.topology.switches:
        ports = len(world.topology.neighbours(switch))
        if ports and random.random() < 0.5:
            entries = [an_entry(random, ports, certain) for _ in range(random.randint(0, 3))]
            ways = [PortSetting.NO_RECEIVE, PortSetting.NO_FORWARD, PortSetting.DOWN]
            closed = {random.randint(1, ports): random.choice(ways)} if random.random() < 0.2 else {}
            found[switch] = Others(tuple(entries), closed)
    return found


def readdressed(view: NetworkView) -> NetworkView:
    """The same with tables that deliver by the hosts' own addresses."""
    deliveries = deliveries_of(view.topology, 6)

    def changed(switch: str, flow: Flow) -> Flow:
        return replace(flow, actions=tuple(deliveries[switch].get(each.port, each) for each in flow.actions))

    tables = {switch: [changed(switch, flow) for flow in flows] for switch, flows in view.tables.items()}
    return replace(view, tables=tables, deliveries=deliveries)


@dataclass
class Nature:
    """Decides what nobody knows, always alike for one packet at one port of a switch."""

    view: NetworkView
    random: Random
    known: dict[tuple[str, str, Dz], list[str]] = field(default_factory=dict)

    def outputs(self, switch: str, came_from: str, cell: Dz) -> list[str]:
        key = switch, came_from, cell
        if key not in self.known:
            self.known[key] = self._outputs(*key)
        return self.known[key]

    def _outputs(self, switch: str, came_from: str, cell: Dz) -> list[str]:
        near = self.view.topology.neighbours(switch)
        if self._setting(switch, came_from) & (PortSetting.NO_RECEIVE | PortSetting.DOWN):
            return []
        there = [
            copy for copy in self._copies(switch, near.index(came_from) + 1, cell) if copy.port <= len(near)
        ]
        return [
            near[port - 1]
            for port in sorted({copy.port for copy in there if self._arrives(switch, copy)})
            if near[port - 1] != came_from
            and not self._setting(switch, near[port - 1]) & (PortSetting.NO_FORWARD | PortSetting.DOWN)
        ]

    def _setting(self, switch: str, near: str) -> PortSetting:
        others = self.view.others.get(switch, Others())
        return others.ports.get(self.view.topology.port(switch, near), PortSetting.OPEN)

    def _copies(self, switch: str, in_port: int, cell: Dz) -> list[SentCopy]:
        """The tables from the first one to that of the content; each match is looked up, the highest wins."""
        address = ENCODING.address_of(cell)
        there = self.view.others.get(switch, Others()).entries
        ports = len(self.view.topology.neighbours(switch))
        sent: list[SentCopy] = []
        for ahead in (1, 0):
            own = look_up(self.view.tables[switch], 6, address) if ahead == 0 else None
            found: list[tuple[int, float, Foreign | Flow]] = []
            if own is not None:
                found.append((own.priority, self.random.random(), own))
            for each in there:
                held = each.reach is None or address >> 128 - each.reach.length == each.reach.bits
                fits = held and each.ahead == ahead and each.in_port in (None, in_port)
                if fits and (each.certain or self.random.random() < 0.5):
                    found.append((each.priority, self.random.random(), each))
            if not found:
                if ahead:
                    continue
                return sent
            _, _, winner = max(found, key=lambda each: each[:2])
            if isinstance(winner, Flow):
                return [*sent, *map(SentCopy.of, winner.actions)]
            sent += [each for each in winner.copies if not winner.perhaps or self.random.random() < 0.5]
            if winner.floods:
                sent += [SentCopy(port) for port in range(1, ports + 1) if self.random.random() < 0.5]
            if not winner.goes_on:
                return sent
        return sent

    def _arrives(self, switch: str, copy: SentCopy) -> bool:
        topology, deliveries = self.view.topology, self.view.deliveries
        if topology.neighbour(switch, copy.port) not in topology.hosts:
            return copy.address is None
        if deliveries is None:
            return (copy.mac, copy.address) == (None, None) or self.random.random() < 0.5
        right: Deliver = deliveries[switch][copy.port]
        return (copy.mac, copy.address) == (right.mac, right.address)

    def copies(self, host: str, cell: Dz) -> Counter[str]:
        got: Counter[str] = Counter()
        under_way = Counter({(self.view.topology.hosts[host], host): 1})
        for _ in range(HOP_LIMIT - 1):
            coming: Counter[tuple[str, str]] = Counter()
            for (switch, came_from), number in under_way.items():
                for to in self.outputs(switch, came_from, cell):
                    if to in self.view.topology.hosts:
                        got[to] += number
                    else:
                        coming[to, switch] += number
            under_way = coming
        return got

    def looping(self) -> set[str]:
        found: set[str] = set()
        for cell in cells(FINE):
            ways = nx.DiGraph()
            for switch in self.view.topology.switches:
                for came_from in self.view.topology.linked(switch):
                    for to in self.outputs(switch, came_from, cell):
                        # A packet that the next switch drops is not on a loop; one that it gets is on the link.
                        deaf = PortSetting.NO_RECEIVE | PortSetting.DOWN
                        if to not in self.view.topology.hosts and not self._setting(to, switch) & deaf:
                            ways.add_edge((came_from, switch), (switch, to))
            for part in nx.strongly_connected_components(ways):
                if len(part) > 1:
                    reached = part.union(*(nx.descendants(ways, link) for link in part))
                    found |= {switch for _, switch in reached}
        return found

    def wrong(self) -> tuple[int, int, int]:
        """False negatives, duplicates and loops."""
        lost, doubled = set(), set()
        for publisher in {each.endpoint for each in self.view.advertisements}:
            own = [each for each in self.view.advertisements if each.endpoint == publisher]
            got = {cell: self.copies(publisher, cell) for cell in cells(PLAN.bits)}
            for cell, counted in got.items():
                if any(each.dz.covers(cell) for each in own):
                    doubled |= {(publisher, host) for host, number in counted.items() if number > 1}
            for event in EVENTS:
                (cell,) = PLAN.encode(event)
                if any(each.filter.matches(event) for each in own):
                    lost |= {
                        (publisher, each.endpoint)
                        for each in self.view.subscriptions
                        if each.endpoint != publisher
                        and each.filter.matches(event)
                        and not got[cell][each.endpoint]
                    }
        return len(lost), len(doubled), len(self.looping())


def a_view(random: Random, certain: bool) -> NetworkView:
    world = a_world(random)
    tables: Tables = good_tables(world) if random.random() < 0.7 else broken_tables(world, random)
    others = some_others(random, world, certain)
    offers, wants = world.advertisements, world.subscriptions
    view = NetworkView(world.topology, PLAN, ENCODING, tables, offers, wants, others=others)
    return readdressed(view) if random.random() < 0.5 else view


@settings(max_examples=150)
@given(seeds)
def test_what_is_counted_goes_wrong_however_it_turns_out_and_nothing_else_where_nothing_is_undecided(random):
    view = a_view(random, certain=False)
    verdict = verify(view)
    counted = verdict.false_negatives, verdict.duplicates, verdict.loops
    for _ in range(3):
        wrong = Nature(view, random).wrong()
        if verdict.undecided:
            assert all(least <= there for least, there in zip(counted, wrong, strict=True)), verdict.witness
        else:
            assert counted == wrong, verdict.witness
    assert verdict.holds == (verdict.witness is None)


@settings(max_examples=100)
@given(seeds)
def test_entries_of_others_without_doubt_leave_undecided_only_what_the_switch_may_choose(random):
    """That is which of several entries of one priority it takes."""
    view = a_view(random, certain=True)
    verdict = verify(view)
    tied = any(
        len({each.rank for each in others.entries} | {flow.priority for flow in view.tables[switch]})
        < len(others.entries) + len({flow.priority for flow in view.tables[switch]})
        for switch, others in view.others.items()
    )
    unseen = view.deliveries is None and any(
        (copy.mac, copy.address) != (None, None)
        for others in view.others.values()
        for each in others.entries
        for copy in each.copies
    )
    if not (tied or unseen):
        assert verdict.undecided == ()
        assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == Nature(view, random).wrong()
