"""Tables made to fit: what they cost, and that they lose nothing."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.errors import TableFull
from flowsieve.flow.capacity.coarsen_kernel import LEAK
from flowsieve.flow.capacity.fitted import FittedTables, coarsened, room
from flowsieve.flow.capacity.weights import BY_VOLUME, Weights
from flowsieve.flow.diff import apply_changes
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.flow.tables.meaning import look_up
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.generators import line, star
from flowsieve.network.tree import TreeMap, center_tree, endpoints_behind

DEPTH = 6
CELLS = [Dz(i, DEPTH) for i in range(1 << DEPTH)]


def star_compiler(seed: int, subscriptions: int = 20) -> Compiler:
    """A star whose middle switch has to tell many cells apart."""
    rng = random.Random(seed)
    topology = star(5)
    compiler = Compiler(topology, TreeMap.single(center_tree(topology)))
    compiler.change("h0", Side.PUBLISHER, DzSet([WHOLE_SPACE]), adding=True)
    for _ in range(subscriptions):
        length = rng.randint(2, DEPTH)
        dz = DzSet([Dz(rng.getrandbits(length), length)])
        compiler.change(rng.choice(list(topology.hosts)), Side.SUBSCRIBER, dz, adding=True)
    compiler.update()
    return compiler


def fullest(compiler: Compiler) -> str:
    return max(compiler.topology.switches, key=compiler.entries)


def labels(table: dict[Dz, tuple[int, ...]]) -> dict[Dz, frozenset[int]]:
    plain = {dz: frozenset(ports) for dz, ports in table.items()}
    return {cell: look_up(plain, cell) for cell in CELLS}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("limit", [1, 2, 4, 8])
def test_a_coarse_table_fits_and_sends_at_least_what_the_exact_one_sends(seed: int, limit: int) -> None:
    compiler = star_compiler(seed)
    switch = fullest(compiler)
    exact = labels(compiler.table(switch))
    coarse = coarsened(compiler, switch, limit, BY_VOLUME)
    assert len(coarse.table) <= limit
    every = frozenset().union(*exact.values())
    for cell, ports in labels(coarse.table).items():
        assert exact[cell] <= ports <= every


@pytest.mark.parametrize("seed", range(8))
def test_the_waste_that_is_told_is_the_waste_there_is(seed: int) -> None:
    compiler = star_compiler(seed)
    switch = fullest(compiler)
    exact = labels(compiler.table(switch))
    coarse = coarsened(compiler, switch, 4, BY_VOLUME)
    extra = sum(
        waste_of(compiler, switch, exact[cell], ports) for cell, ports in labels(coarse.table).items()
    )
    assert coarse.waste == pytest.approx(extra, rel=1e-4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("limit", [4, 8])
def test_hardly_any_table_is_better(seed: int, limit: int) -> None:
    compiler = star_compiler(seed)
    switch = fullest(compiler)
    coarse = coarsened(compiler, switch, limit, BY_VOLUME)
    cost = coarse.waste + coarse.price * len(coarse.table)
    best = least_cost(compiler, switch, coarse.price)
    assert best * (1 - 1e-4) <= cost <= best * 1.03


def waste_of(compiler: Compiler, switch: str, wanted: frozenset[int], ports: frozenset[int]) -> float:
    """The unwanted copies of the events in one cell; a neighbour sends little that is not wanted here."""
    at_home = compiler.topology.hosts["h0"] == switch
    every = range(1, len(compiler.topology.neighbours(switch)) + 1)
    source = next(
        port
        for port in every
        if (
            port == compiler.topology.port(switch, "h0")
            if at_home
            else "h0" in _behind(compiler, switch, port)
        )
    )
    return len(ports - wanted - {source}) * (1 if wanted or at_home else LEAK) / len(CELLS)


def least_cost(compiler: Compiler, switch: str, price: float) -> float:
    """The plain twin of the kernel: what the best table costs, every label of every region tried."""
    exact = labels(compiler.table(switch))
    every = sorted(frozenset().union(*exact.values()))
    tried = [frozenset(some) for n in range(len(every) + 1) for some in combinations(every, n)]

    def costs(dz: Dz) -> dict[frozenset[int], float]:
        if dz.length == DEPTH:
            need = exact[dz]
            found = {
                label: waste_of(compiler, switch, need, label) if need <= label else math.inf
                for label in tried
            }
        else:
            low, high = (costs(Dz(dz.bits << 1 | bit, dz.length + 1)) for bit in (0, 1))
            found = {label: low[label] + high[label] for label in tried}
        own = min(found.values()) + price
        return {label: min(cost, own) for label, cost in found.items()}

    return costs(WHOLE_SPACE)[frozenset()]


def _behind(compiler: Compiler, switch: str, port: int) -> frozenset[str]:
    if port > len(compiler.topology.neighbours(switch)):
        return frozenset()
    return endpoints_behind(compiler.topology, compiler.trees.trees[0], switch, port)


def test_more_room_never_costs_more() -> None:
    compiler = star_compiler(3, subscriptions=40)
    switch = fullest(compiler)
    wastes = [coarsened(compiler, switch, limit, BY_VOLUME).waste for limit in (1, 2, 4, 8, 16)]
    assert wastes == sorted(wastes, reverse=True)
    assert wastes[0] > wastes[-1]


def test_room_is_spent_where_the_events_are() -> None:
    topology = line(3)
    compiler = Compiler(topology, TreeMap.single(center_tree(topology)))
    compiler.change("h0", Side.PUBLISHER, DzSet([WHOLE_SPACE]), adding=True)
    for i in range(16):
        host = "h1" if i % 2 else "h2"
        compiler.change(host, Side.SUBSCRIBER, DzSet([Dz(i, 4)]), adding=True)
    compiler.update()
    schema = Schema.parse({"level": {"type": "int", "min": 0, "max": 15}})
    events = EventBatch.from_events(schema, "h0", [{"level": 6}] * 100)  # all in 0110, which h2 wants
    sample = EventSample.of(RegularPlan.make(schema), events)
    coarse = coarsened(compiler, "s1", 4, Weights.of(sample=sample))
    assert labels(coarse.table)[Dz(0b011000, 6)] == {topology.port("s1", "s2")}


def test_interests_hint_at_where_events_fall_until_a_sample_tells() -> None:
    weights = Weights.of([DzSet.of("00")])
    inside = weights.mass[-1] - weights.mass[1]
    assert inside > 0.9 * weights.mass[-1]
    assert BY_VOLUME.mass[-1] > 0


def test_a_table_that_needs_less_again_is_exact_again() -> None:
    topology = line(2)
    tables = FittedTables(Compiler(topology, TreeMap.single(center_tree(topology))), capacity=4)
    compiler = tables.compiler
    compiler.change("h0", Side.PUBLISHER, DzSet([WHOLE_SPACE]), adding=True)
    cells = [DzSet([Dz(i, 4)]) for i in (1, 4, 6, 9, 12)]
    for dz in cells:
        compiler.change("h1", Side.SUBSCRIBER, dz, adding=True)
    tables.update()
    assert tables.waste()
    assert all(tables.size(switch) == len(tables.table(switch)) <= room(4) for switch in topology.switches)
    for dz in cells[1:]:
        compiler.change("h1", Side.SUBSCRIBER, dz, adding=False)
    tables.update()
    assert tables.waste() == {}
    assert tables.table("s0") == compiler.table("s0") == {Dz(1, 4): (1,)}
    assert tables.size("s0") == 1


def test_what_cannot_fit_at_all_is_refused_and_can_be_taken_back() -> None:
    topology = line(2)
    tables = FittedTables(Compiler(topology, TreeMap.single(center_tree(topology))), capacity=0)
    compiler = tables.compiler
    compiler.change("h0", Side.PUBLISHER, DzSet([WHOLE_SPACE]), adding=True)
    assert tables.update() == {}
    compiler.change("h1", Side.SUBSCRIBER, DzSet.of("01"), adding=True)
    with pytest.raises(TableFull, match="has room for 0"):
        tables.update()
    assert tables.size("s0") == len(tables.table("s0")) == 0
    compiler.change("h1", Side.SUBSCRIBER, DzSet.of("01"), adding=False)
    assert tables.update() == {}
    assert tables.table("s0") == {}


def test_a_table_that_was_cut_is_whole_again_when_there_is_room_for_any_number() -> None:
    topology = line(2)
    tables = FittedTables(Compiler(topology, TreeMap.single(center_tree(topology))))
    compiler = tables.compiler
    compiler.change("h0", Side.PUBLISHER, DzSet([WHOLE_SPACE]), adding=True)
    compiler.change("h1", Side.SUBSCRIBER, DzSet.of("000", "010", "100", "110"), adding=True)
    tables.update()
    exact = tables.table("s0")
    tables.bound("s0", 2)
    assert tables.update().keys() == {"s0"}
    assert len(tables.table("s0")) == 1
    tables.bound("s0", None)
    changes = tables.update()
    assert tables.table("s0") == exact
    cut = {change.dz: change.old for change in changes["s0"] if change.old is not None}
    apply_changes(cut, changes["s0"])
    assert cut == exact
    assert (tables.waste(), tables.update()) == ({}, {})


def test_where_the_coarsest_table_has_no_room_it_is_aimed_at_anyway_and_the_bound_stays() -> None:
    topology = line(2)
    parts = [Dz.parse(text) for text in ("00", "01", "10", "11")]
    tables = FittedTables(Compiler(topology, TreeMap.over(topology, parts)))
    first, second = topology.hosts
    tables.add([(Interest("p", first, None, WHOLE), Side.PUBLISHER)])
    tables.add([(Interest("s", second, None, DzSet.of("0001", "0010", "01", "10")), Side.SUBSCRIBER)])
    tables.update()
    switch = topology.hosts[first]
    assert tables.size(switch) == 4
    tables.bound(switch, 2)
    with pytest.raises(TableFull):
        tables.update()
    tables.update(anyway=True)
    assert sorted(map(str, tables.table(switch))) == ["00", "01", "10"]  # an entry for each partition
    assert tables.capacity[switch] == 2
    more = Interest("t", second, None, DzSet.of("11"))
    tables.change(more, Side.SUBSCRIBER, adding=True)
    with pytest.raises(TableFull):
        tables.update()
    tables.change(more, Side.SUBSCRIBER, adding=False)
    assert tables.update(anyway=True) == {}
    tables.bound(switch, 100)
    tables.update()
    assert tables.size(switch) == 4  # it is refined as soon as there is room
