"""Laws of the control plane: whatever is asked, and however small the tables, nothing served is lost."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import key_of
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.tables.compiler import Tables
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Ticket

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}, "b": {"type": "int", "min": 0, "max": 7}})
PLAN = RegularPlan.make(SCHEMA, bits=6)
ENCODING = encoding_of("ipv6")
CELLS = [Dz(bits, PLAN.bits) for bits in range(1 << PLAN.bits)]
END = {Op.SUBSCRIBE: Op.UNSUBSCRIBE, Op.ADVERTISE: Op.UNADVERTISE}

# Networks are drawn by seed: Hypothesis' own choices lean towards the simplest, where nothing goes wrong.
seeds = st.integers(0, 2**32 - 1).map(Random)


def a_topology(random: Random) -> Topology:
    """A connected network with a few links more than a tree."""
    names = [f"s{i}" for i in range(random.randint(1, 6))]
    links = [(names[random.randrange(i)], names[i]) for i in range(1, len(names))]
    spare = [pair for pair in combinations(names, 2) if pair not in links]
    links += random.sample(spare, min(len(spare), random.randint(0, 4)))
    hosts = {f"h{i}": random.choice(names) for i in range(random.randint(2, 6))}
    return Topology.make(links, hosts, switches=names)


def a_filter(random: Random) -> Filter:
    low, high = sorted(random.choices(range(16), k=2))
    text = f"{low} <= a <= {high}"
    if random.random() < 0.5:
        text += f" and b {random.choice(['==', '<=', '!='])} {random.randrange(7)}"
    return Filter.parse(text, SCHEMA)


@dataclass
class Crowd:
    """Hosts that ask for this and that; `active` has what they asked for and did not end."""

    random: Random
    hosts: list[str]
    active: dict[str, tuple[Op, str]] = field(default_factory=dict)
    asked: int = 0

    def slice(self, most: int = 6) -> list[Request]:
        return [self.request() for _ in range(self.random.randint(1, most))]

    def request(self) -> Request:
        if self.active and self.random.random() < 0.35:
            id = self.random.choice(list(self.active))
            op, host = self.active.pop(id)
            return Request(END[op], id, host)
        self.asked += 1
        id, op, host = f"r{self.asked}", self.random.choice(list(END)), self.random.choice(self.hosts)
        self.active[id] = op, host
        return Request(op, id, host, a_filter(self.random))

    def is_told(self, refused: Iterable[Request]) -> None:
        for request in refused:
            self.active.pop(request.id, None)


def a_state(random: Random, topology: Topology) -> ControlState:
    trees = random.choice([1, 1, 2, 4])
    settings = Settings(
        budget=random.choice([0, 0, 2, 8]),
        capacity=random.choice([None, 0, 1, 2, 3, 4, 5, 6, 8, 12]),
        tables=random.choice(list(Tables)),
    )
    return ControlState(topology, PLAN, TreeMap.spread(topology, trees) if trees > 1 else None, settings)


def tables_of(network: EmbeddedNetwork) -> dict[str, tuple[Flow, ...]]:
    return {switch: network.read(switch) for switch in network.topology.switches}


def check_tables(controller: Controller, network: EmbeddedNetwork) -> None:
    """What the switches hold is what is believed and wanted, has room, and serves all that is asked for."""
    state = controller.state
    for switch, flows in tables_of(network).items():
        held = {ENCODING.dz_of(flow.match): flow.ports for flow in flows}
        assert held == controller.believed(switch) == state.table(switch)
        if state.settings.capacity is not None:
            assert network.peak(switch) <= state.settings.capacity
    offers, wants = list(state.advertisements.values()), list(state.subscriptions.values())
    verdict = verify(NetworkView(state.topology, PLAN, ENCODING, tables_of(network), offers, wants))
    assert verdict.holds, verdict.witness


@settings(max_examples=60)
@given(seeds)
def test_after_every_slice_the_tables_hold_are_as_believed_and_were_never_too_full(random):
    topology = a_topology(random)
    state = a_state(random, topology)
    network = EmbeddedNetwork(topology, state.settings.capacity)
    controller = Controller(state, network, ENCODING)
    crowd = Crowd(random, list(topology.hosts))
    for _ in range(random.randint(1, 6)):
        outcome = controller.submit(crowd.slice())
        crowd.is_told(request for request, _ in outcome.refused)
        assert all(request.op.adding for request, _ in outcome.refused)
        assert state.subscriptions.keys() | state.advertisements.keys() == crowd.active.keys()
        check_tables(controller, network)


@settings(max_examples=40)
@given(seeds)
def test_coarse_tables_that_are_free_where_nothing_arrives_keep_up_with_what_does(random):
    topology = a_topology(random)
    state = ControlState(
        topology, PLAN, settings=Settings(budget=0, capacity=random.randint(3, 5), tables=Tables.FREE)
    )
    network = EmbeddedNetwork(topology, state.settings.capacity)
    controller = Controller(state, network, ENCODING)
    crowd = Crowd(random, list(topology.hosts))
    for _ in range(25):
        controller.submit(crowd.slice(most=2))
        check_tables(controller, network)


class Watched:
    """Switches that get round to their operations in any order, and are watched after each single one."""

    def __init__(self, network: EmbeddedNetwork, random: Random) -> None:
        self.network = network
        self.moments: list[dict[tuple[str, Dz], list[str]]] = []
        self._random = random
        self._waiting: list[tuple[Ticket, list[FlowOp]]] = []

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        self._waiting.append((Ticket(switch), list(ops)))
        return self._waiting[-1][0]

    def read(self, switch: str) -> tuple[Flow, ...]:
        return self.network.read(switch)

    def settle(self) -> None:
        while self._waiting:
            ticket, ops = self._random.choice(self._waiting)
            if ticket.done < len(ops):
                self.network.apply(ticket.switch, [ops[ticket.done]])
                ticket.done += 1
                self.moments.append(self.who_gets_what())
            else:
                ticket.done_at = self.network.now
                self._waiting.remove((ticket, ops))

    def who_gets_what(self) -> dict[tuple[str, Dz], list[str]]:
        """The hosts that a packet from each host in each cell reaches, once for each copy."""
        hosts = list(self.network.topology.hosts)
        pairs = [(host, cell) for host in hosts for cell in CELLS]
        keys = np.array([key_of(6, ENCODING.address_of(cell)) for _, cell in pairs], np.uint64)
        batch = self.network.deliver([host for host, _ in pairs], keys[:, 0].copy(), keys[:, 1].copy())
        ends = batch.rows.tolist()
        got = [hosts[number] for number in batch.host]
        return {pair: got[ends[i] : ends[i + 1]] for i, pair in enumerate(pairs)}


def promised(state: ControlState) -> set[tuple[str, Dz, str]]:
    """Publisher, cell and host, wherever one may publish what the other wants."""
    return {
        (offer.endpoint, cell, want.endpoint)
        for offer in state.advertisements.values()
        for want in state.subscriptions.values()
        if offer.endpoint != want.endpoint
        for cell in CELLS
        if offer.dz.covers(cell) and want.dz.covers(cell)
    }


def offered(state: ControlState) -> set[tuple[str, Dz]]:
    return {
        (offer.endpoint, cell)
        for offer in state.advertisements.values()
        for cell in CELLS
        if offer.dz.covers(cell)
    }


@settings(max_examples=60)
@given(seeds)
def test_nothing_served_before_and_after_is_lost_or_doubled_at_any_moment_between(random):
    topology = a_topology(random)
    state = a_state(random, topology)
    watched = Watched(EmbeddedNetwork(topology, state.settings.capacity), random)
    controller = Controller(state, watched, ENCODING)
    crowd = Crowd(random, list(topology.hosts))
    for _ in range(3):
        before, may_send = promised(state), offered(state)
        watched.moments.clear()
        outcome = controller.submit(crowd.slice())
        crowd.is_told(request for request, _ in outcome.refused)
        steady, may_send = before & promised(state), may_send | offered(state)
        for got in watched.moments:
            assert all(host in got[publisher, cell] for publisher, cell, host in steady)
            assert all(len(set(got[pair])) == len(got[pair]) for pair in may_send)
