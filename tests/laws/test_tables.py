"""The compiled tables mean what the plain definitions say, after any sequence of requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from networks import dz_sets, finest, topologies

from flowsieve.flow.diff import Ports, apply_changes
from flowsieve.flow.tables import meaning
from flowsieve.flow.tables.compiler import Compiler, Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.mend import mended
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap, center_tree

Interests = dict[Side, list[tuple[str, DzSet]]]


def host_ports(topology: Topology, switch: str) -> frozenset[int]:
    ports = range(1, len(topology.neighbours(switch)) + 1)
    return frozenset(port for port in ports if topology.neighbour(switch, port) in topology.hosts)


def trees_of(topology: Topology, several: bool) -> TreeMap:
    return TreeMap.spread(topology, 2) if several else TreeMap.single(center_tree(topology))


class Checked:
    """One compiler per kind of table, each with the table that its updates add up to."""

    def __init__(self, topology: Topology, trees: TreeMap) -> None:
        self.topology, self.trees = topology, trees
        self.compilers = {tables: Compiler(topology, trees, tables) for tables in Tables}
        self.tables: dict[Tables, dict[str, dict[Dz, Ports]]] = {
            tables: {switch: {} for switch in topology.switches} for tables in Tables
        }
        self.interests: Interests = {side: [] for side in Side}

    def change(self, data: st.DataObject) -> None:
        side = data.draw(st.sampled_from(list(Side)))
        ending = bool(self.interests[side]) and data.draw(st.booleans())
        if ending:
            host, dz = self.interests[side].pop(data.draw(st.integers(0, len(self.interests[side]) - 1)))
        else:
            host, dz = data.draw(st.sampled_from(sorted(self.topology.hosts))), data.draw(dz_sets())
            self.interests[side].append((host, dz))
        for compiler in self.compilers.values():
            compiler.change(host, side, dz, adding=not ending)

    def update(self) -> None:
        for kind, compiler in self.compilers.items():
            for switch, changes in compiler.update().by_switch().items():
                table = self.tables[kind][switch]
                for change in changes:
                    assert table.get(change.dz) == change.old != change.new
                apply_changes(table, changes)
            for switch, table in self.tables[kind].items():
                assert compiler.table(switch) == table
                assert compiler.entries(switch) == len(table)

    def check(self, switch: str, part: Dz, tree: SpanningTree) -> None:
        space = finest(part)
        wanted, advertised = (
            [meaning.port_sets(self.topology, tree, switch, self.interests[side], cell) for cell in space]
            for side in (Side.SUBSCRIBER, Side.PUBLISHER)
        )
        labels = [meaning.label(*pair) for pair in zip(wanted, advertised, strict=True)]
        mine = {
            kind: {dz: frozenset(ports) for dz, ports in tables[switch].items() if part.covers(dz)}
            for kind, tables in self.tables.items()
        }
        plain = {
            Dz(part.bits << dz.length | dz.bits, part.length + dz.length): ports
            for dz, ports in meaning.overlay(labels).items()
        }
        assert mine[Tables.OVERLAY] == plain
        assert [meaning.look_up(mine[Tables.SMALLEST], cell) for cell in space] == labels
        assert len(mine[Tables.SMALLEST]) == meaning.smallest([frozenset([label]) for label in labels])
        inward = host_ports(self.topology, switch)
        arriving = [meaning.arrivals(*pair, inward) for pair in zip(wanted, advertised, strict=True)]
        for cell, want, ports in zip(space, wanted, arriving, strict=True):
            assert meaning.acceptable(meaning.look_up(mine[Tables.FREE], cell), want, ports)
        useful = {*wanted, meaning.NOTHING}
        useful |= {want ^ {port} for want, ports in zip(wanted, arriving, strict=True) for port in ports}
        options = [
            frozenset(label for label in useful if meaning.acceptable(label, want, ports))
            for want, ports in zip(wanted, arriving, strict=True)
        ]
        assert len(mine[Tables.FREE]) == meaning.smallest(options)


@given(topologies(), st.booleans(), st.data())
def test_every_table_is_what_its_definition_says_and_no_larger_than_it_must_be(
    topology: Topology, several: bool, data: st.DataObject
) -> None:
    checked = Checked(topology, trees_of(topology, several))
    for _ in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.integers(1, 4))):
            checked.change(data)
        checked.update()
    for part, tree in checked.trees:
        for switch in topology.switches:
            checked.check(switch, part, tree)


@given(topologies(), st.sampled_from(list(Tables)), st.booleans(), st.data())
def test_tables_do_not_depend_on_the_order_of_requests(
    topology: Topology, kind: Tables, several: bool, data: st.DataObject
) -> None:
    requests = data.draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(topology.hosts)), st.sampled_from(list(Side)), dz_sets()),
            max_size=8,
        )
    )
    trees, found = trees_of(topology, several), []
    for order in (requests, data.draw(st.permutations(requests))):
        compiler = Compiler(topology, trees, kind)
        passing = data.draw(dz_sets())
        for host, side, dz in order:
            compiler.change(host, side, passing, adding=True)
            compiler.change(host, side, dz, adding=True)
            if data.draw(st.booleans()):
                compiler.update()
            compiler.change(host, side, passing, adding=False)
        compiler.update()
        found.append({switch: compiler.table(switch) for switch in topology.switches})
    assert found[0] == found[1]


@given(topologies(), st.sampled_from(list(Tables)), st.booleans(), st.data())
def test_tables_on_mended_trees_are_those_compiled_on_them_anew(
    topology: Topology, kind: Tables, several: bool, data: st.DataObject
) -> None:
    edges = [frozenset((link.a, link.b)) for link in topology.links]
    trees = trees_of(topology, several)
    compiler = Compiler(topology, trees, kind)
    tables: dict[str, dict[Dz, Ports]] = {switch: {} for switch in topology.switches}
    interests: list[tuple[str, Side, DzSet]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 4))):
            host, side = data.draw(st.sampled_from(sorted(topology.hosts))), data.draw(st.sampled_from(Side))
            interests.append((host, side, data.draw(dz_sets())))
            compiler.change(*interests[-1], adding=True)
        trees = mended(trees, topology, data.draw(st.sets(st.sampled_from(edges))) if edges else ())
        compiler.rewire(trees)
        for switch, changes in compiler.update().by_switch().items():
            apply_changes(tables[switch], changes)
        anew = Compiler(topology, trees, kind)
        for interest in interests:
            anew.change(*interest, adding=True)
        anew.update()
        for switch in topology.switches:
            assert compiler.table(switch) == tables[switch] == anew.table(switch)
