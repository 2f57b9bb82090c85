"""The law of verify: it finds what sending every cell from everywhere finds, in good and in broken tables."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Flow, Match, Output
from flowsieve.flow.flat import look_up
from flowsieve.flow.interest import Interest
from flowsieve.flow.verify import verify
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.regular import RegularPlan
from flowsieve.network.topology import Topology

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 7}, "b": {"type": "int", "min": 0, "max": 3}})
PLAN = RegularPlan.make(SCHEMA, bits=4)  # a has two values to a cell, so a filter may touch half a cell
FINE = PLAN.bits + 1  # the longest prefix of an entry: a bit more than any event makes use of
TAG = POOLS["ipv6"][0]
EVENTS = [{"a": a, "b": b} for a, b in product(range(8), range(4))]
Tables = dict[str, list[Flow]]


@dataclass(frozen=True)
class World:
    topology: Topology
    advertisements: list[Interest]
    subscriptions: list[Interest]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    low, high = sorted(draw(st.tuples(st.integers(0, 7), st.integers(0, 7))))
    text = f"{low} <= a <= {high}"
    if draw(st.booleans()):
        text = f"{text} and b {draw(st.sampled_from(['==', '<=', '!=']))} {draw(st.integers(0, 2))}"
    return Filter.parse(text, SCHEMA)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A connected network with a few links more than a tree, and what its hosts publish and want."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    links = [(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, len(names))]
    spare = [pair for pair in product(names, names) if pair[0] < pair[1] and pair not in links]
    links += draw(st.lists(st.sampled_from(spare), unique=True, max_size=3)) if spare else []
    hosts = {f"h{i}": draw(st.sampled_from(names)) for i in range(draw(st.integers(1, 4)))}

    def interests(kind: str, most: int) -> list[Interest]:
        rows = draw(st.lists(st.tuples(st.sampled_from(sorted(hosts)), filters()), max_size=most))
        budgets = st.sampled_from([0, 1, 2])
        return [
            Interest(f"{kind}{i}", host, wanted, PLAN.cover(wanted, draw(budgets)))
            for i, (host, wanted) in enumerate(rows)
        ]

    return World(Topology.make(links, hosts, switches=names), interests("adv", 3), interests("sub", 4))


def cells(length: int) -> Iterator[Dz]:
    return (Dz(bits, length) for bits in range(1 << length))


def entry(dz: Dz, ports: set[int]) -> Flow:
    return Flow(Match(TAG.prefix(dz)), 1000 + dz.length, tuple(map(Output, sorted(ports))))


def good_tables(world: World) -> Tables:
    """On a spanning tree, out of each port what is advertised elsewhere and wanted behind it, by the cell."""
    topology = world.topology
    graph = nx.Graph()
    graph.add_nodes_from(topology.switches)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    tree = nx.minimum_spanning_tree(graph)
    tree.add_edges_from(topology.hosts.items())
    tables: Tables = {switch: [] for switch in topology.switches}
    for switch in topology.switches:
        behind = {}
        for near in tree.neighbors(switch):
            cut = tree.copy()
            cut.remove_edge(switch, near)
            behind[topology.port(switch, near)] = nx.node_connected_component(cut, near)
        for cell in cells(PLAN.bits):
            wants = {each.host for each in world.subscriptions if each.dz.covers(cell)}
            offers = {each.host for each in world.advertisements if each.dz.covers(cell)}
            ports = {port for port, part in behind.items() if wants & part and offers - part}
            if ports:
                tables[switch].append(entry(cell, ports))
    return tables


@st.composite
def broken_tables(draw: st.DrawFn, world: World) -> Tables:
    """Good tables in which some entries were removed, widened, overridden, or sent elsewhere."""
    tables = good_tables(world)
    for _ in range(draw(st.integers(1, 4))):
        switch = draw(st.sampled_from(world.topology.switches))
        flows, near = tables[switch], world.topology.neighbours(switch)
        what = draw(st.sampled_from(["remove", "add port", "new"]))
        if what == "new" and near:
            length = draw(st.integers(0, FINE))
            dz = Dz(draw(st.integers(0, (1 << length) - 1)), length)
            ports = draw(st.sets(st.integers(1, len(near)), max_size=3))
            flows.append(
                Flow(entry(dz, ports).match, draw(st.integers(1000, 1006)), entry(dz, ports).actions)
            )
        elif flows:
            at = draw(st.integers(0, len(flows) - 1))
            flow = flows.pop(at)
            if what == "add port":
                ports = {*flow.ports, draw(st.integers(1, len(near)))}
                flows.append(Flow(flow.match, flow.priority, tuple(map(Output, sorted(ports)))))
    return tables


def outputs(world: World, tables: Tables, switch: str, came_from: str, cell: Dz) -> list[str]:
    prefix = TAG.prefix(cell)
    flow = look_up(tables[switch], prefix.family, prefix.first)
    near = world.topology.neighbours(switch)
    return [near[port - 1] for port in (flow.ports if flow else ()) if near[port - 1] != came_from]


def copies(world: World, tables: Tables, host: str, cell: Dz) -> Counter[str]:
    """How many copies each host gets of a packet, counted hop by hop."""
    got: Counter[str] = Counter()
    under_way = Counter({(world.topology.hosts[host], host): 1})
    for _ in range(HOP_LIMIT - 1):
        coming: Counter[tuple[str, str]] = Counter()
        for (switch, came_from), number in under_way.items():
            for to in outputs(world, tables, switch, came_from, cell):
                if to in world.topology.hosts:
                    got[to] += number
                else:
                    coming[to, switch] += number
        under_way = coming
    return got


def looping(world: World, tables: Tables) -> set[str]:
    """Switches on a loop or behind one, for any address."""
    found: set[str] = set()
    for cell in cells(FINE):
        ways = nx.DiGraph()
        for switch in world.topology.switches:
            for came_from in world.topology.linked(switch):
                for to in outputs(world, tables, switch, came_from, cell):
                    if to not in world.topology.hosts:
                        ways.add_edge((came_from, switch), (switch, to))
        for part in nx.strongly_connected_components(ways):
            if len(part) > 1:
                reached = part.union(*(nx.descendants(ways, link) for link in part))
                found |= {switch for _, switch in reached}
    return found


def sampled(world: World, tables: Tables) -> tuple[int, int, int]:
    """False negatives, duplicates and loops, by sending every cell from every publisher."""
    lost, doubled = set(), set()
    for publisher in {each.host for each in world.advertisements}:
        own = [each for each in world.advertisements if each.host == publisher]
        got = {cell: copies(world, tables, publisher, cell) for cell in cells(PLAN.bits)}
        for cell, counted in got.items():
            if any(each.dz.covers(cell) for each in own):
                doubled |= {(publisher, host) for host, number in counted.items() if number > 1}
        for event in EVENTS:
            (cell,) = PLAN.encode(event)
            if any(each.filter.matches(event) for each in own):
                lost |= {
                    (publisher, each.host)
                    for each in world.subscriptions
                    if each.host != publisher and each.filter.matches(event) and not got[cell][each.host]
                }
    return len(lost), len(doubled), len(looping(world, tables))


@given(worlds())
def test_good_tables_hold(world):
    tables = good_tables(world)
    verdict = verify(world.topology, PLAN, TAG, tables, world.advertisements, world.subscriptions)
    assert verdict.holds, verdict.witness
    assert verdict.witness is None
    assert sampled(world, tables) == (0, 0, 0)


@settings(max_examples=200)
@given(st.data())
def test_broken_tables_are_judged_as_sending_every_cell_judges_them(data):
    world = data.draw(worlds())
    tables = data.draw(broken_tables(world))
    verdict = verify(world.topology, PLAN, TAG, tables, world.advertisements, world.subscriptions)
    assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == sampled(world, tables)
    assert verdict.holds == (verdict.witness is None)


@given(st.data())
def test_the_witness_of_a_false_negative_is_an_event_that_really_is_lost(data):
    world = data.draw(worlds())
    tables = data.draw(broken_tables(world))
    verdict = verify(world.topology, PLAN, TAG, tables, world.advertisements, world.subscriptions)
    if not verdict.false_negatives:
        return
    witness = verdict.witness
    assert witness is not None and witness.kind == "false negative"
    assert any(a.host == witness.publisher and a.filter.matches(witness.event) for a in world.advertisements)
    (cell,) = PLAN.encode(witness.event)
    got = copies(world, tables, witness.publisher, cell)
    asking = [
        s for s in world.subscriptions if s.filter.matches(witness.event) and s.host != witness.publisher
    ]
    assert any(not got[each.host] and witness.where.startswith(f"{each.host} ") for each in asking)
