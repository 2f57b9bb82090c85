"""Small networks with tables, good and broken ones, that proofs are compared with sending packets on."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from random import Random

import networkx as nx
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.interest import Interest
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 7}, "b": {"type": "int", "min": 0, "max": 3}})
PLAN = RegularPlan.make(SCHEMA, bits=4)  # a has two values to a cell, so a filter may touch half a cell
FINE = PLAN.bits + 1  # the longest prefix of an entry: a bit more than any event makes use of
ENCODING = encoding_of("ipv6")
EVENTS = [{"a": a, "b": b} for a, b in product(range(8), range(4))]
Tables = dict[str, list[Flow]]


@dataclass(frozen=True)
class World:
    topology: Topology
    advertisements: list[Interest]
    subscriptions: list[Interest]


# Networks are drawn by seed: Hypothesis' own choices lean towards the simplest, where nothing goes wrong.
seeds = st.integers(0, 2**32 - 1).map(Random)


def a_filter(random: Random) -> Filter:
    low, high = sorted(random.choices(range(8), k=2))
    text = f"{low} <= a <= {high}"
    if random.random() < 0.5:
        text += f" and b {random.choice(['==', '<=', '!='])} {random.randrange(3)}"
    return Filter.parse(text, SCHEMA)


def a_world(random: Random) -> World:
    """A connected network with a few links more than a tree, and what its hosts publish and want."""
    names = [f"s{i}" for i in range(random.randint(1, 6))]
    links = [(names[random.randrange(i)], names[i]) for i in range(1, len(names))]
    spare = [pair for pair in combinations(names, 2) if pair not in links]
    links += random.sample(spare, min(len(spare), random.randint(1, 4)))
    hosts = {f"h{i}": random.choice(names) for i in range(random.randint(2, 5))}

    def interests(kind: str, least: int, most: int) -> list[Interest]:
        found = []
        for i in range(random.randint(least, most)):
            wanted = a_filter(random)
            dz = PLAN.cover(wanted, random.choice([0, 1, 2]))
            found.append(Interest(f"{kind}{i}", random.choice(list(hosts)), wanted, dz))
        return found

    return World(Topology.make(links, hosts, switches=names), interests("adv", 1, 4), interests("sub", 2, 8))


def cells(length: int) -> Iterator[Dz]:
    return (Dz(bits, length) for bits in range(1 << length))


def entry(dz: Dz, ports: set[int]) -> Flow:
    return Flow(ENCODING.match_of(dz), 1000 + dz.length, tuple(map(Output, sorted(ports))))


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
            wants = {each.endpoint for each in world.subscriptions if each.dz.covers(cell)}
            offers = {each.endpoint for each in world.advertisements if each.dz.covers(cell)}
            ports = {port for port, part in behind.items() if wants & part and offers - part}
            if ports:
                tables[switch].append(entry(cell, ports))
    return tables


def broken_tables(world: World, random: Random) -> Tables:
    """Good tables in which some switches flood, and some entries were removed, widened or overridden."""
    tables = good_tables(world)
    for switch in world.topology.switches:
        flows, ports = tables[switch], range(1, len(world.topology.neighbours(switch)) + 1)
        what = random.choice(["nothing", "flood", "flood", "remove", "widen", "override"])
        if what in ("remove", "widen") and flows:
            flow = flows.pop(random.randrange(len(flows)))
            if what == "widen":
                wider = sorted({*flow.ports, random.choice(ports)})
                flows.append(Flow(flow.match, flow.priority, tuple(map(Output, wider))))
        elif what in ("flood", "override") and ports:
            length = random.randint(0, 1 if what == "flood" else FINE)
            match = ENCODING.match_of(Dz(random.getrandbits(length), length))
            out = ports if what == "flood" else random.sample(ports, min(len(ports), random.randint(0, 3)))
            flows.append(Flow(match, random.randint(1000, 1000 + FINE), tuple(map(Output, out))))
    return tables
