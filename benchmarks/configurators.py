"""Configurators as processes: what two decide on against one, and what the dispatcher has to do with each request.

The network is the fat-tree of 20 switches with 64 hosts; requests are subscriptions and their ends in turn, with 1,000
in force. *From queues that were dispatched before*, orders lie ready as bytes, and answers are only counted: that is
what configurators can do. *Dispatched*, this process cuts each request, sends its parts, and has all aims follow: that
is what they do for a controller. What it takes to bring the changes to switches comes on top (`service`, `flowmods`).
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench import Goal, Result, at_least, rounded
from benchmarks.loads import LOADS
from benchmarks.network import dz_of, small_fat_tree
from flowsieve.control.partitions.assignment import by_load
from flowsieve.control.partitions.blocking import ConfiguratorProcesses
from flowsieve.control.partitions.configurator import Configurator
from flowsieve.control.partitions.division import Division, partition_trees
from flowsieve.control.partitions.orders import (
    Begin,
    Order,
    Own,
    RequestPart,
    Take,
    answer_from_bytes,
    order_to_bytes,
)
from flowsieve.control.partitions.wire import SIZE, length_of
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology

ACTIVE, ADVERTISERS, PARTITIONS = 1_000, 16, 64
REQUESTS = {"zipf": 12_000, "narrow": 4_000}
SLICE, TOGETHER, UNDER_WAY = (
    50,
    25,
    400,
)  # parts decided as one difference; requests that come at once; parts waiting
ROUNDS = 3
TICK = os.sysconf("SC_CLK_TCK")

Asked = tuple[bool, Side, Interest]


@dataclass(frozen=True)
class Story:
    """What is in force when it begins, and the requests that come then."""

    topology: Topology
    before: list[Asked]
    requests: list[Asked]


def story(load: str) -> Story:
    dice, topology = random.Random(3), small_fat_tree()
    hosts, count = list(topology.hosts), REQUESTS[load]
    dz = dz_of(LOADS[load](ACTIVE + count // 2, 0))
    everything = DzSet.of("")
    before: list[Asked] = [
        (True, Side.PUBLISHER, Interest(f"a{i}", host, None, everything))
        for i, host in enumerate(dice.sample(hosts, ADVERTISERS))
    ]
    there = [Interest(f"s{i}", dice.choice(hosts), None, one) for i, one in enumerate(dz)]
    before += [(True, Side.SUBSCRIBER, each) for each in there[:ACTIVE]]
    requests: list[Asked] = []
    held = there[:ACTIVE]
    for each in there[ACTIVE:]:
        held.append(each)
        requests.append((True, Side.SUBSCRIBER, each))
        requests.append((False, Side.SUBSCRIBER, held.pop(dice.randrange(len(held)))))
    return Story(topology, before, requests)


def parts_of(asked: Sequence[Asked], division: Division) -> Iterator[RequestPart]:
    for adding, side, each in asked:
        for dz, cut in division.cut(each.dz):
            yield RequestPart(adding, side, each.id, each.endpoint, dz, cut)


def orders_for(told: Story, configurators: int) -> tuple[list[list[Order]], list[list[Order]]]:
    """What each configurator has to hear before, and the slices that are waiting for it; partitions go by load."""
    trees = partition_trees(told.topology, PARTITIONS)
    division = Division(tuple(dz for dz, _ in trees))
    parts = list(parts_of(told.requests, division))
    loads = dict.fromkeys(division.partitions, 0.0)
    for part in parts:
        loads[part.partition] += 1
    names = [str(n) for n in range(configurators)]
    owner = {dz: int(name) for dz, name in by_load(loads, names).items()}
    held: list[list[RequestPart]] = [[] for _ in names]
    for part in parts_of(told.before, division):
        held[owner[part.partition]].append(part)
    queues: list[list[RequestPart]] = [[] for _ in names]
    for part in parts:
        queues[owner[part.partition]].append(part)
    first: list[list[Order]] = []
    slices: list[list[Order]] = []
    for number, own in enumerate(held):
        numbers = {dz: 1 for dz, each in owner.items() if each == number}
        first.append([Begin(told.topology, trees), Own(numbers, own)])
        queue = queues[number]
        slices.append([_take(queue[at : at + SLICE]) for at in range(0, len(queue), SLICE)])
    return first, slices


def _take(parts: list[RequestPart]) -> Take:
    numbers: dict[Dz, int] = dict.fromkeys((part.partition for part in parts), 1)
    return Take(numbers, parts)


def processor_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def _exchange(connection: socket.socket, messages: Sequence[bytes]) -> list[bytes]:
    """Send messages while answers come; all answers."""
    connection.setblocking(True)
    sending = threading.Thread(target=connection.sendall, args=(b"".join(messages),))
    sending.start()
    answers, received = list[bytes](), bytearray()
    while len(answers) < len(messages):
        received += connection.recv(1 << 20)
        at = 0
        while len(received) - at >= SIZE and len(received) - at >= SIZE + (
            size := length_of(received[at : at + SIZE])
        ):
            answers.append(bytes(received[at + SIZE : at + SIZE + size]))
            at += SIZE + size
        del received[:at]
    sending.join()
    return answers


def from_queues(told: Story, configurators: int) -> dict[str, float]:
    """How fast so many processes work off what waits for them."""
    first, slices = orders_for(told, configurators)
    with ConfiguratorProcesses(configurators) as made:
        pids, connections = zip(*made.connections.items(), strict=True)
        for each, orders in zip(connections, first, strict=True):
            _exchange(each, [order_to_bytes(n, order) for n, order in enumerate(orders, 1)])
        ready = [[order_to_bytes(n, order) for n, order in enumerate(own, 3)] for own in slices]
        before = sum(map(processor_seconds, pids))
        answers: list[list[bytes]] = [[] for _ in pids]

        def work(n: int) -> None:
            answers[n] = _exchange(connections[n], ready[n])

        start = time.perf_counter()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(configurators)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - start
        spent = sum(map(processor_seconds, pids)) - before
    found = [answer_from_bytes(each)[1] for own in answers for each in own]
    n = len(told.requests)
    return {
        "requests per second": rounded(n / took),
        "processor us each": rounded(1e6 * spent / n),
        "visits each": rounded(sum(each.visits for each in found) / n),
        "operations each": rounded(sum(len(each.rows) for each in found) / n),
    }


def dispatched(told: Story, configurators: int) -> dict[str, float]:
    """The same with the dispatcher at work: requests are cut, sent, answered, and aims follow."""
    trees = partition_trees(told.topology, PARTITIONS)
    with ConfiguratorProcesses(configurators, slice_size=SLICE) as made:
        made.begin(told.topology, trees, {}, [(side, each) for _, side, each in told.before])
        pids = list(made.connections)
        before, own = sum(map(processor_seconds, pids)), time.process_time()
        start, asked = time.perf_counter(), dict[object, float]()
        waits: list[float] = []
        for at in range(0, len(told.requests) + 1, TOGETHER):
            now, some = time.perf_counter(), told.requests[at : at + TOGETHER]
            asked |= {(side, each.id): now for _, side, each in some}
            made.pool.take(some)
            made.work(UNDER_WAY if some else 0)
            made.pool.change_rows()
            now = time.perf_counter()
            waits += [now - asked.pop(key) for key, _ in made.pool.decided() if key in asked]
        took = time.perf_counter() - start
        spent, own = sum(map(processor_seconds, pids)) - before, time.process_time() - own
    n = len(told.requests)
    return {
        "requests per second": rounded(n / took),
        "dispatcher's processor us each": rounded(1e6 * own / n),
        "configurators' processor us each": rounded(1e6 * spent / n),
        "ms until a request is decided, mean": rounded(1e3 * sum(waits) / len(waits)),
        "ms until a request is decided, p99": rounded(1e3 * sorted(waits)[int(0.99 * len(waits))]),
    }


def in_this_process(told: Story) -> float:
    """Requests a second of one configurator without sockets, slice by slice."""
    (first,), (slices,) = orders_for(told, 1)
    one = Configurator()
    for order in first:
        one.handle(order)
    start = time.perf_counter()
    for order in slices:
        one.handle(order)
    return rounded(len(told.requests) / (time.perf_counter() - start))


def run() -> Result:
    figures: dict[str, Any] = {}
    peers: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    for load in REQUESTS:
        told = story(load)
        peers[f"{load}, in this process"] = {"requests per second": in_this_process(told)}
        rounds = [{n: from_queues(told, n) for n in (1, 2)} for _ in range(ROUNDS)]
        gains = sorted(each[2]["requests per second"] / each[1]["requests per second"] for each in rounds)
        last = rounds[-1]
        figures[f"{load}, from queues"] = {
            **{f"{n} configurators": last[n] for n in (1, 2)},
            "two against one, each round": [rounded(gain) for gain in gains],
        }
        figures[f"{load}, dispatched"] = {f"{n} configurators": dispatched(told, n) for n in (1, 2, 4)}
        middle = gains[len(gains) // 2]
        goals[f"{load}: two configurators against one, from queues"] = at_least(middle, 1.6)
    return Result("configurators", figures, peers, goals)
