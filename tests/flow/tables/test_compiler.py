"""The worked examples of the papers: what is forwarded after each request, and which entries change."""

from __future__ import annotations

import random

import pytest

from flowsieve.flow.diff import Change
from flowsieve.flow.tables import compiler as compiler_module
from flowsieve.flow.tables import meaning
from flowsieve.flow.tables.compiler import Compiler, Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.generators import fat_tree
from flowsieve.network.mend import mended
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap, center_tree


class Example:
    """A compiler with the hosts' requests in one line each, and tables by the neighbours' names."""

    def __init__(
        self, links: list[tuple[str, str]], hosts: dict[str, str], tables: Tables = Tables.OVERLAY
    ) -> None:
        self.topology = Topology.make(links, hosts)
        self.compiler = Compiler(self.topology, TreeMap.single(center_tree(self.topology)), tables)

    def add(self, side: Side, host: str, *dz: str) -> dict[str, list[Change]]:
        self.compiler.change(host, side, DzSet.of(*dz), adding=True)
        return self.compiler.update().by_switch()

    def drop(self, side: Side, host: str, *dz: str) -> dict[str, list[Change]]:
        self.compiler.change(host, side, DzSet.of(*dz), adding=False)
        return self.compiler.update().by_switch()

    def table(self, switch: str) -> dict[str, set[str]]:
        return {
            str(dz): {self.topology.neighbour(switch, port) for port in ports}
            for dz, ports in self.compiler.table(switch).items()
        }


@pytest.fixture
def maintenance() -> Example:
    """[PLEROMA], figure 3: p1 publishes, s1 wants {1}, s2 wants {100}."""
    links = [("R1", "R3"), ("R3", "R2"), ("R3", "R4"), ("R4", "R5"), ("R5", "R6")]
    example = Example(links, {"p1": "R1", "s1": "R2", "s2": "R5", "s3": "R6"})
    example.add(Side.PUBLISHER, "p1", "")
    example.add(Side.SUBSCRIBER, "s1", "1")
    example.add(Side.SUBSCRIBER, "s2", "100")
    return example


def test_before_the_third_subscriber_each_region_goes_where_it_is_wanted(maintenance: Example) -> None:
    assert maintenance.table("R1") == {"1": {"R3"}}
    assert maintenance.table("R3") == {"1": {"R2"}, "100": {"R2", "R4"}}
    assert maintenance.table("R4") == {"100": {"R5"}}
    assert maintenance.table("R5") == {"100": {"s2"}}
    assert maintenance.table("R6") == {}


def test_a_new_subscription_shows_the_five_cases(maintenance: Example) -> None:
    changed = maintenance.add(Side.SUBSCRIBER, "s3", "10")
    assert maintenance.table("R6") == {"10": {"s3"}}  # 1: nothing there yet
    assert "R1" not in changed  # 2: covered already
    assert maintenance.table("R4") == {"10": {"R5"}}  # 3: the finer entry is replaced
    assert maintenance.table("R3") == {
        "1": {"R2"},
        "10": {"R2", "R4"},
    }  # 4: partly covered, takes the ports along
    assert maintenance.table("R5") == {"10": {"R6"}, "100": {"s2", "R6"}}  # 5: the finer entry is widened


def test_an_ended_subscription_leaves_no_trace(maintenance: Example) -> None:
    before = {switch: maintenance.table(switch) for switch in maintenance.topology.switches}
    there = maintenance.add(Side.SUBSCRIBER, "s3", "10")
    back = maintenance.drop(Side.SUBSCRIBER, "s3", "10")
    assert {switch: maintenance.table(switch) for switch in maintenance.topology.switches} == before
    for switch, changes in there.items():
        undone = {Change(change.dz, change.new, change.old) for change in changes}
        assert set(back[switch]) == undone


@pytest.fixture
def thesis() -> Example:
    """[Distributed], figures 4.3 to 4.6: R0 in the middle, its port 1 to P0, 2 to R1, 3 to R2."""
    example = Example(
        [("R0", "R1"), ("R0", "R2")], {"P0": "R0", "S0": "R1", "P1": "R1", "S1": "R2", "S2": "R2"}
    )
    example.add(Side.PUBLISHER, "P0", "000")
    example.add(Side.SUBSCRIBER, "S0", "00")
    example.add(Side.SUBSCRIBER, "S1", "0000")
    return example


def test_table_4_1_the_smaller_of_advertised_and_wanted_is_installed(thesis: Example) -> None:
    assert thesis.table("R0") == {"000": {"R1"}, "0000": {"R1", "R2"}}


def test_table_4_2_a_wider_subscription_upgrades_the_flow(thesis: Example) -> None:
    thesis.add(Side.SUBSCRIBER, "S2", "000")
    assert thesis.table("R0") == {"000": {"R1", "R2"}}


def test_a_subscription_within_an_installed_one_changes_the_last_switch_only(thesis: Example) -> None:
    changed = thesis.add(Side.SUBSCRIBER, "S2", "0000")
    assert changed == {"R2": [Change(Dz.parse("0000"), (2,), (2, 3))]}


def test_table_4_3_ended_subscriptions_downgrade_the_flow(thesis: Example) -> None:
    thesis.add(Side.SUBSCRIBER, "S2", "000")
    thesis.drop(Side.SUBSCRIBER, "S0", "00")
    thesis.drop(Side.SUBSCRIBER, "S2", "000")
    assert thesis.table("R0") == {"0000": {"R2"}}


def test_table_4_4_an_ended_advertisement_leaves_what_the_other_publisher_needs(thesis: Example) -> None:
    thesis.add(Side.SUBSCRIBER, "S2", "000")
    thesis.add(Side.PUBLISHER, "P1", "0000")
    thesis.drop(Side.PUBLISHER, "P0", "000")
    assert thesis.table("R0") == {"0000": {"R2"}}


def test_a_second_interest_of_the_same_host_in_the_same_region_costs_nothing() -> None:
    example = Example([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    example.add(Side.PUBLISHER, "h1", "")
    example.add(Side.SUBSCRIBER, "h2", "01")
    assert example.add(Side.SUBSCRIBER, "h2", "011") == {}
    assert example.drop(Side.SUBSCRIBER, "h2", "01") != {}
    assert example.table("s2") == {"011": {"h2"}}


def test_requests_that_cancel_out_in_a_slice_cost_no_operation() -> None:
    example = Example([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    example.add(Side.PUBLISHER, "h1", "")
    example.compiler.change("h2", Side.SUBSCRIBER, DzSet.of("0101"), adding=True)
    example.compiler.change("h2", Side.SUBSCRIBER, DzSet.of("0101"), adding=False)
    assert len(example.compiler.update()) == 0


def test_a_switch_may_have_more_ports_than_a_word_has_bits() -> None:
    hosts = {f"h{i}": "s1" for i in range(150)}
    for tables in Tables:
        example = Example([("s1", "s2")], hosts | {"p": "s2"}, tables)
        example.add(Side.PUBLISHER, "p", "")
        for i in range(150):
            example.add(Side.SUBSCRIBER, f"h{i}", f"{i:08b}")
        table = {dz: frozenset(ports) for dz, ports in example.compiler.table("s1").items()}
        for i in range(150):
            assert meaning.look_up(table, Dz(i, 8)) - {1} == {example.topology.port("s1", f"h{i}")}


def test_a_dz_of_112_bits_is_compiled_like_any_other() -> None:
    long = "10" * 56
    for tables in Tables:
        example = Example([("s1", "s2")], {"h1": "s1", "h2": "s2"}, tables)
        example.add(Side.PUBLISHER, "h1", "1")
        example.add(Side.SUBSCRIBER, "h2", long, long[:-1] + "1")
        assert example.compiler.entries("s1") >= 1
        example.drop(Side.SUBSCRIBER, "h2", long, long[:-1] + "1")
        example.drop(Side.PUBLISHER, "h1", "1")
        assert example.compiler.entries("s1") == 0


@pytest.mark.parametrize("tables", list(Tables))
def test_tables_kept_up_to_date_are_those_worked_out_anew(tables: Tables) -> None:
    rng = random.Random(7)
    topology = fat_tree(4, hosts=16)
    compiler = Compiler(topology, TreeMap.spread(topology, 2), tables)
    there: list[tuple[str, Side, DzSet]] = []
    for i in range(1500):
        if there and rng.random() < 0.45:
            host, side, dz = there.pop(rng.randrange(len(there)))
            compiler.change(host, side, dz, adding=False)
        else:
            host, side = f"h{rng.randrange(16)}", rng.choice(list(Side))
            lengths = [rng.randint(1, 14) for _ in range(rng.randint(1, 12))]
            dz = DzSet.of(
                [Dz(rng.getrandbits(length) >> rng.randint(0, length), length) for length in lengths]
            )
            there.append((host, side, dz))
            compiler.change(host, side, dz, adding=True)
        if rng.random() < 0.3:
            compiler.update()
        if i % 100 == 99:
            compiler.update()
            compiler.work_out_anew()
            assert len(compiler.update()) == 0


@pytest.mark.parametrize("tables", list(Tables))
def test_an_interest_that_changes_nothing_hides_no_later_change_of_its_slice(tables: Tables) -> None:
    example = Example([("s1", "s2")], {"h1": "s1", "h2": "s2", "h3": "s2"}, tables)
    example.add(Side.PUBLISHER, "h1", "")
    example.add(Side.SUBSCRIBER, "h2", "00")
    example.add(Side.SUBSCRIBER, "h2", "01")
    example.add(Side.SUBSCRIBER, "h3", "0010")
    example.compiler.change(
        "h2", Side.SUBSCRIBER, DzSet.of("0"), adding=True
    )  # as a whole it is there already
    example.add(Side.SUBSCRIBER, "h3", "0001")
    example.compiler.work_out_anew()
    assert len(example.compiler.update()) == 0


def test_memory_of_ended_interests_is_used_again() -> None:
    example = Example([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    example.add(Side.PUBLISHER, "h1", "")
    sizes = []
    for _ in range(3):
        for i in range(500):
            example.add(Side.SUBSCRIBER, "h2", f"{i:012b}"[::-1])
        for i in range(500):
            example.drop(Side.SUBSCRIBER, "h2", f"{i:012b}"[::-1])
        sizes.append(example.compiler.memory_bytes)
    assert sizes[2] == sizes[0]


@pytest.mark.parametrize("tables", list(Tables))
@pytest.mark.parametrize("seed", range(5))
def test_interests_counted_at_once_are_those_counted_one_by_one(tables: Tables, seed: int) -> None:
    """Also where a host had some before, and where they end one by one: each is counted, not only their union."""
    rng, topology = random.Random(seed), fat_tree(4)
    trees = TreeMap.spread(topology, rng.choice([1, 2]))
    hosts = list(topology.hosts)[:6]

    def some(count: int) -> list[tuple[str, Side, DzSet]]:
        lengths = [[rng.randint(0, 7) for _ in range(rng.randint(1, 4))] for _ in range(count)]
        sets = [DzSet([Dz(rng.getrandbits(length), length) for length in own]) for own in lengths]
        return [(rng.choice(hosts), rng.choice(list(Side)), dz) for dz in sets]

    single, many = (Compiler(topology, trees, tables) for _ in range(2))
    first, then = some(8), some(25)
    for compiler in (single, many):
        for host, side, dz in first:
            compiler.change(host, side, dz, adding=True)
        compiler.update()
    for host, side, dz in then:
        single.change(host, side, dz, adding=True)
    many.add(then)
    many.add([])
    ends = first + then
    rng.shuffle(ends)
    for host, side, dz in ends:
        assert single.update().by_switch().keys() == many.update().by_switch().keys()
        assert all(single.table(switch) == many.table(switch) for switch in topology.switches)
        for compiler in (single, many):
            compiler.change(host, side, dz, adding=False)
    many.update()
    assert not any(many.entries(switch) for switch in topology.switches)


def test_an_edge_is_exchanged_without_a_word_to_those_who_see_the_same_behind_their_ports() -> None:
    """Of a ring with a tail at each switch, the tails have nothing to do with it."""

    def visits(tail: int) -> int:
        links = [(f"r{i}", f"r{(i + 1) % 4}") for i in range(4)]
        links += [(f"t{i}.{n - 1}" if n else f"r{i}", f"t{i}.{n}") for i in range(4) for n in range(tail)]
        hosts = {f"h{i}": f"t{i}.{tail - 1}" for i in range(4)}
        topology = Topology.make(links, hosts)
        trees = TreeMap.single(SpanningTree.of(topology, "r0"))
        compiler = Compiler(topology, trees)
        for host in hosts:
            compiler.change(host, Side.PUBLISHER, DzSet.of(""), adding=True)
            compiler.change(host, Side.SUBSCRIBER, DzSet.of(f"{int(host[1]):04b}"), adding=True)
        compiler.update()
        before = compiler.visits
        compiler.rewire(mended(trees, topology, {frozenset(("r0", "r1"))}))
        changed = compiler.update().by_switch()
        assert changed.keys() <= {"r0", "r1", "r2", "r3"} and len(changed) > 2
        return compiler.visits - before

    assert visits(tail=6) == visits(tail=1)


@pytest.mark.parametrize("tables", list(Tables))
def test_tables_do_not_depend_on_how_much_room_there_was_at_first(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes, messages, runs, changes and removed entries outgrow their arrays in the midst of a request."""
    rng, topology = random.Random(3), fat_tree(4)
    trees, hosts = TreeMap.spread(topology, 2), list(topology.hosts)
    many = [
        (hosts[i % 5], DzSet([Dz(rng.getrandbits(12), 12) for _ in range(60)])) for i in range(10)
    ]  # behind few hosts, so that whoever wants all of it splits a message into many
    made = []
    for room in (1, 1 << 16):
        monkeypatch.setattr(compiler_module, "ROOM", room)
        compiler = Compiler(topology, trees, tables)
        steps = [
            (hosts[-1], Side.PUBLISHER, DzSet.of(""), True),
            (hosts[-2], Side.PUBLISHER, DzSet.of("01"), True),
        ]
        steps += [(host, Side.SUBSCRIBER, dz, True) for host, dz in many]
        steps += [(hosts[7], Side.SUBSCRIBER, DzSet.of(""), adding) for adding in (True, False)]
        steps += [(host, Side.SUBSCRIBER, dz, False) for host, dz in many[:-1]]
        found = []
        for host, side, dz, adding in steps:
            compiler.change(host, side, dz, adding=adding)
            found.append((compiler.update().by_switch(), compiler.visits))
        made.append((found, [compiler.table(switch) for switch in topology.switches]))
    assert made[0] == made[1]
    assert max(len(table) for table in made[0][1]) > 50


@pytest.mark.parametrize("tables", Tables)
def test_more_tries_change_at_once_than_the_arrays_have_room_for_at_first(tables: Tables) -> None:
    """A trie that is one leaf has an entry, too, that needs its place among the changes."""
    topology = fat_tree(4)
    compiler = Compiler(topology, TreeMap.spread(topology, 256), tables)
    first, *others = topology.hosts
    for host in others:
        compiler.change(host, Side.PUBLISHER, DzSet.of(""), adding=True)
    compiler.change(first, Side.SUBSCRIBER, DzSet.of(""), adding=True)
    update = compiler.update()
    assert len(update) == sum(compiler.entries(switch) for switch in topology.switches) > 1024
    assert compiler.update().operations() == {}
