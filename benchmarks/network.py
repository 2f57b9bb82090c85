"""The networks that the figures are taken on, and requests on them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.loads import Load
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.tables.compiler import Compiler, Side, Tables
from flowsieve.flow.tables.table_update import TableUpdate
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import fat_tree
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

BUDGET = 32


def dz_of(load: Load, bits: int | None = None) -> list[DzSet]:
    """The boxes' dz, 32 each at the most."""
    plan = RegularPlan.make(load.schema, bits=bits)
    return [plan.cover(filter, BUDGET) for filter in load.filters()]


def controlled(
    load: Load, hosts: int, publishers: int, settings: Settings | None = None, **network: Any
) -> tuple[Controller, EmbeddedNetwork]:
    """A fat-tree on which some hosts publish anything and the load's boxes are subscribed to, over all hosts."""
    topology, encoding = small_fat_tree(hosts), encoding_of("ipv6")
    switches = EmbeddedNetwork(topology, **network)
    plan = RegularPlan.make(load.schema, room=encoding.room)
    controller = Controller(ControlState(topology, plan, settings=settings), switches, encoding)
    names, everything = list(topology.hosts), Filter.parse("True", load.schema)
    requests = [
        Request(Op.ADVERTISE, f"a{i}", names[i * hosts // publishers], everything) for i in range(publishers)
    ]
    requests += subscriptions(load.filters(), names)
    controller.submit(requests)
    return controller, switches


def subscriptions(filters: Sequence[Filter], hosts: Sequence[str], first: int = 0) -> list[Request]:
    return [
        Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % len(hosts)], filter)
        for i, filter in enumerate(filters, first)
    ]


def two_level(switches: int, hosts: int) -> Topology:
    """A leaf-spine network: one switch in eight is a spine that every leaf is linked with."""
    spines = switches // 8
    links = [(f"leaf{leaf}", f"spine{leaf % spines}") for leaf in range(switches - spines)]
    links += [(f"leaf{leaf}", f"spine{(leaf + 1) % spines}") for leaf in range(switches - spines)]
    return Topology.make(links, {f"h{i}": f"leaf{i % (switches - spines)}" for i in range(hosts)})


@dataclass
class Churn:
    """A compiler with so many active subscriptions, of which one is added and one ended in turn."""

    topology: Topology
    dz: Sequence[DzSet]
    active: int
    advertisers: int
    tables: Tables = Tables.OVERLAY
    seed: int = 1
    partitions: int = 1
    compiler: Compiler = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._hosts = list(self.topology.hosts)
        trees = partition_trees(self.topology, self.partitions)
        self.compiler = Compiler(self.topology, trees, self.tables)
        for host in self._random.sample(self._hosts, self.advertisers):
            self.compiler.change(host, Side.PUBLISHER, DzSet.of(""), adding=True)
        self._there: list[tuple[str, DzSet]] = []
        self._served = 0
        for dz in self.dz[: self.active]:
            self._subscribe(dz)
        self.compiler.update()

    def _subscribe(self, dz: DzSet) -> None:
        host = self._random.choice(self._hosts)
        self._there.append((host, dz))
        self.compiler.change(host, Side.SUBSCRIBER, dz, adding=True)

    def requests(self, n: int) -> Iterator[TableUpdate]:
        """Half subscriptions, half their ends; the update of the tables after each."""
        for i in range(n):
            if i % 2 == 0:
                self._subscribe(self.dz[self.active + self._served])
                self._served += 1
            else:
                host, dz = self._there.pop(self._random.randrange(len(self._there)))
                self.compiler.change(host, Side.SUBSCRIBER, dz, adding=False)
            yield self.compiler.update()

    def entries(self) -> int:
        return sum(self.compiler.entries(switch) for switch in self.topology.switches)


def small_fat_tree(hosts: int = 64) -> Topology:
    return fat_tree(4, hosts=hosts)
