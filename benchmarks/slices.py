"""Flow operations saved when requests are served in slices, each as one net difference."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Goal, Result, at_least, rounded
from benchmarks.loads import LOADS
from benchmarks.network import dz_of, small_fat_tree
from flowsieve.flow.tables.compiler import Compiler, Side, Tables
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree

SUBSCRIPTIONS, ADVERTISERS = 5_000, 16
SIZES = (1, 50, 100, 500)


def operations(topology: Topology, dz: list[DzSet], size: int, tables: Tables) -> tuple[int, object]:
    """All operations that it takes, and the tables at the end."""
    compiler = Compiler(topology, TreeMap.single(center_tree(topology)), tables)
    hosts = list(topology.hosts)
    for host in hosts[:ADVERTISERS]:
        compiler.change(host, Side.PUBLISHER, DzSet.of(""), adding=True)
    compiler.update()
    total = 0
    for i, one in enumerate(dz, 1):
        compiler.change(hosts[i * 7 % len(hosts)], Side.SUBSCRIBER, one, adding=True)
        if i % size == 0 or i == len(dz):
            total += len(compiler.update())
    return total, {switch: compiler.table(switch) for switch in topology.switches}


def run() -> Result:
    topology = small_fat_tree()
    figures: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    for name, load in LOADS.items():
        dz = dz_of(load(SUBSCRIPTIONS, 0))
        for tables in Tables:
            found = {size: operations(topology, dz, size, tables) for size in SIZES}
            alone, last = found[1]
            assert all(final == last for _, final in found.values()), "the final tables differ"
            saved = {str(size): rounded(1 - total / alone) for size, (total, _) in found.items() if size > 1}
            figures[f"{name}, {tables.value}"] = {
                "operations_one_by_one": alone,
                "share_saved_in_slices_of": saved,
            }
            if name == "zipf":
                goals[f"zipf, {tables.value}: share saved in slices of 500"] = at_least(saved["500"], 0.40)
    return Result("slices", figures, goals=goals)
