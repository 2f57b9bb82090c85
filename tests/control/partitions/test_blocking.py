"""Configurators as processes for one caller that waits: they may be killed, and what is decided is the same."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Mapping

import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.partitions import blocking
from flowsieve.control.partitions.blocking import ConfiguratorProcesses
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import FlowsieveError
from flowsieve.flow.diff import Change, Ports
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import ring

PLAN = RegularPlan.make(Schema.parse({"a": {"type": "int", "min": 0, "max": 255}}))
RING = ring(4)
TREES = partition_trees(RING, 5)


class Both:
    """A state for which processes decide, one that decides by itself, and tables that follow the first."""

    def __init__(self, deciders: ConfiguratorProcesses, capacity: int | None = None) -> None:
        self.alone = ControlState(RING, PLAN, TREES, Settings(capacity=capacity))
        self.state = ControlState(RING, PLAN, TREES, Settings(capacity=capacity, elsewhere=True))
        self.tables: dict[str, dict[Dz, Ports]] = {switch: {} for switch in RING.switches}
        assert self.state.elsewhere is not None
        self.state.elsewhere.deciders = deciders
        deciders.begin(RING, TREES, self.state.elsewhere.capacity, [])
        self.asked = 0
        self._random = random.Random(7)

    def requests(self, n: int) -> list[Request]:
        def cell() -> Dz:
            length = self._random.randint(1, 7)
            return Dz(self._random.getrandbits(length), length)

        made = []
        for _ in range(n):
            self.asked += 1
            op = Op.ADVERTISE if self.asked % 5 == 1 else Op.SUBSCRIBE
            host = self._random.choice(list(RING.hosts))
            made.append(Request(op, f"r{self.asked}", host, dz=DzSet.of(cell(), cell(), cell())))
        return made

    def ask(self, requests: list[Request]) -> list[str]:
        """Ask both for the same; what was refused where processes decide."""
        self.alone.step(requests)
        outcome = self.state.step(requests)
        self.follow(outcome.changes)
        return [request.id for request, _ in outcome.refused]

    def follow(self, changes: Mapping[str, list[Change]]) -> None:
        for switch, some in changes.items():
            for change in some:
                assert self.tables[switch].get(change.dz) == change.old
                if change.new is None:
                    del self.tables[switch][change.dz]
                else:
                    self.tables[switch][change.dz] = change.new

    def check(self) -> None:
        for switch in RING.switches:
            assert self.tables[switch] == self.state.table(switch) == self.alone.table(switch)
            assert self.state.size(switch) == len(self.tables[switch])


@pytest.fixture
def processes() -> Iterator[ConfiguratorProcesses]:
    with ConfiguratorProcesses(2, slice_size=4) as found:
        yield found


def kill(processes: ConfiguratorProcesses, which: int = 0, number: int = signal.SIGKILL) -> int:
    pid = list(processes.connections)[which]
    os.kill(pid, number)
    return pid


def test_one_that_is_killed_is_replaced_and_what_is_decided_is_the_same(
    processes: ConfiguratorProcesses,
) -> None:
    both = Both(processes)
    assert not both.ask(both.requests(20))
    both.check()
    killed = kill(processes)
    requests = both.requests(30)
    assert not both.ask(requests)
    both.check()
    assert killed not in processes.connections
    assert len(processes.connections) == 2
    ended = [Request(each.op.reverse, each.id, each.endpoint) for each in requests[::2]]
    assert not both.ask(ended)
    both.check()


def test_what_is_refused_is_so_alone_and_tables_are_never_too_full(processes: ConfiguratorProcesses) -> None:
    both = Both(processes, capacity=6)
    refused = [id for _ in range(6) for id in both.ask(both.requests(6))]
    assert refused
    assert both.state.subscriptions.keys().isdisjoint(refused)
    for switch in RING.switches:
        assert both.tables[switch] == both.state.table(switch)
        assert len(both.tables[switch]) <= 6


def test_trees_that_are_mended_are_followed_by_all(processes: ConfiguratorProcesses) -> None:
    both = Both(processes)
    both.ask(both.requests(20))
    down = [frozenset((RING.links[0].a, RING.links[0].b))]
    both.alone.rewire(down)
    both.follow(both.state.rewire(down).changes)
    both.check()


def test_if_they_die_again_and_again_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "MODULE", "flowsieve.no_such_module")
    processes = ConfiguratorProcesses(1)
    with processes, pytest.raises(FlowsieveError, match="die again and again"):
        Both(processes)
    assert not processes.connections


def test_none_is_left_when_the_block_ends() -> None:
    with ConfiguratorProcesses(1) as processes:
        (pid,) = processes.connections
    assert not processes.connections
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_neither_side_waits_for_the_other_to_read_when_messages_are_large() -> None:
    def many(op: Op, number: int) -> Request:
        cells = [Dz(some.getrandbits(40), 40) for _ in range(120)]
        return Request(op, f"{op.value}{number}", hosts[number % 4], dz=DzSet.of(*cells))

    def give_up(number: int, frame: object) -> None:
        pytest.fail("each waits for the other")

    some, hosts = random.Random(1), list(RING.hosts)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        with ConfiguratorProcesses(1, slice_size=1000) as processes:
            both = Both(processes)
            everything = [Request(Op.ADVERTISE, host, host, dz=DzSet.of("")) for host in hosts]
            both.state.step([*everything, *(many(Op.SUBSCRIBE, number) for number in range(400))])
            assert processes.pool.idle
            assert both.state.size(RING.switches[0]) > 10_000
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
