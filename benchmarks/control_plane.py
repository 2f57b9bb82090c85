"""A ring of 20 real switches: until tables are in place, and until a subscription is acknowledged everywhere.

The peer sends one flow-mod and a barrier to each switch on the subscription's path, one switch after the other, over
sockets of the same kind. A subscription takes several entries a switch; in a second arm it also waits until packets
meet them, which no barrier tells.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.bench import Result, at_most, rounded
from benchmarks.flowmods import RawSwitch
from benchmarks.loads import narrow
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp, Kind
from flowsieve.flow.entry import content_flow
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.regular import RegularPlan
from flowsieve.lab.lab import Lab, down, running, up
from flowsieve.network.generators import ring
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.switches import OpenFlowSwitches

SWITCHES, ENTRIES = 20, 1_000  # at least so many content flows on every switch
STARTS, ROUNDS, WARM_ROUNDS = 5, 40, 5
TAG, ASIDE = POOLS["ipv6"][0], POOLS["ipv6"][-1]
OURS, FOLLOWED, PEER = "acknowledged", "acknowledged and met by packets", "one flow-mod and barrier, in turn"


@dataclass(frozen=True)
class Work:
    """What the control plane is asked: the requests that are there, and those that come one by one."""

    topology: Topology
    plan: RegularPlan
    there: list[Request]
    later: list[Request]

    @classmethod
    def make(cls) -> Work:
        """Every host publishes anything, and subscriptions come until every switch has its entries."""
        topology = ring(SWITCHES)
        load = narrow(2_000, 0)
        plan = RegularPlan.make(load.schema, room=TAG.room)
        hosts, everything = list(topology.hosts), Filter.parse("True", load.schema)
        there = [Request(Op.ADVERTISE, f"a-{host}", host, everything) for host in hosts]
        state = ControlState(topology, plan)
        state.step(there)
        filters = iter(enumerate(load.filters()))
        for i, filter in filters:
            request = Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % SWITCHES], filter)
            there.append(request)
            state.step([request])
            if i % 5 == 0 and min(len(state.table(switch)) for switch in topology.switches) >= ENTRIES:
                break
        farthest = _leaf(topology)
        later = [
            Request(Op.SUBSCRIBE, f"s{i}", farthest, filter)
            for (i, filter), _ in zip(filters, range(ROUNDS + WARM_ROUNDS), strict=False)
        ]
        return cls(topology, plan, there, later)

    def controller(self, switches: OpenFlowSwitches) -> Controller:
        return Controller(ControlState(self.topology, self.plan), switches, TAG)


def _leaf(topology: Topology) -> str:
    """A host at an end of the tree, which is the ring without one link."""
    tree = center_tree(topology)
    near = dict.fromkeys(topology.switches, 0)
    for a, b in tree.edges:
        near[a] += 1
        near[b] += 1
    return next(host for host, switch in topology.hosts.items() if near[switch] == 1)


def connections(lab: Lab, follow: bool) -> OpenFlowSwitches:
    """Connections to all switches; with `follow`, their datapath is asked when it has followed a change."""
    addresses = {switch: f"unix:{lab.management(switch)}" for switch in lab.topology.switches}
    return OpenFlowSwitches(addresses, control=f"unix:{lab.control}" if follow else None)


def started(work: Work) -> tuple[float, float, float]:
    """Seconds until the lab is up, until the switches are connected, and until their tables are in place."""
    begin = time.perf_counter()
    lab = up(work.topology)
    try:
        there = time.perf_counter()
        with connections(lab, follow=True) as switches:
            switches.wait_connected(30)
            connected = time.perf_counter()
            controller = work.controller(switches)
            controller.submit(work.there)
            ready = time.perf_counter()
            fewest = min(map(len, controller.tables().values()))  # as the switches themselves tell
        if fewest < ENTRIES:
            raise RuntimeError(f"a switch has {fewest} entries, not {ENTRIES}")
    finally:
        down(lab)
    return there - begin, connected - there, ready - there


@contextmanager
def raw_switches(lab: Lab) -> Iterator[dict[str, RawSwitch]]:
    with ExitStack() as stack:
        raw = {switch: RawSwitch(lab.management(switch)) for switch in lab.topology.switches}
        for each in raw.values():
            stack.callback(each.close)
        yield raw


def subscribed(work: Work) -> tuple[dict[str, list[float]], list[int], list[int]]:
    """Seconds of each arm, round by round; switches on the path and operations of each subscription."""
    aside = content_flow(ASIDE, Dz(0, 0), (1,))
    install, remove = (Packer().pack(1, [FlowOp(kind, aside)]) for kind in (Kind.INSTALL, Kind.REMOVE))
    took: dict[str, list[float]] = {OURS: [], FOLLOWED: [], PEER: []}
    lengths, operations = [], []
    with (
        running(work.topology) as lab,
        connections(lab, follow=False) as plain,
        connections(lab, follow=True) as following,
        raw_switches(lab) as raw,
    ):
        plain.wait_connected(30)
        following.wait_connected(30)
        controller = work.controller(plain)
        controller.submit(work.there)
        for number, request in enumerate(work.later):
            end = Request(Op.UNSUBSCRIBE, request.id, request.host)
            spent: dict[str, float] = {}
            for name, switches in ((OURS, plain), (FOLLOWED, following)):
                controller.switches = switches
                begin = time.perf_counter()
                outcome = controller.submit([request])
                spent[name] = time.perf_counter() - begin
                controller.submit([end])  # untimed: each arm begins with the same tables
            path = list(outcome.changes)
            begin = time.perf_counter()
            for switch in path:
                raw[switch].take(install)
            spent[PEER] = time.perf_counter() - begin
            for switch in path:
                raw[switch].take(remove)
            if path and number >= WARM_ROUNDS:
                for name, figure in spent.items():
                    took[name].append(figure)
                lengths.append(len(path))
                operations.append(outcome.operations)
    return took, lengths, operations


def run() -> Result:
    work = Work.make()
    ups, connects, readies = zip(*(started(work) for _ in range(STARTS)), strict=True)
    took, lengths, operations = subscribed(work)

    def ratio(name: str) -> float:
        return statistics.median(ours / peer for ours, peer in zip(took[name], took[PEER], strict=True))

    def median_ms(name: str) -> float:
        return rounded(1e3 * statistics.median(took[name]))

    return Result(
        "control_plane",
        {
            "lab up, seconds": rounded(statistics.median(ups)),
            "connected, seconds": rounded(statistics.median(connects)),
            "connected and tables in place, seconds": rounded(statistics.median(readies)),
            "entries per switch, at least": ENTRIES,
            "subscriptions there": len(work.there) - SWITCHES,
            "a subscription": {
                "rounds": len(lengths),
                "switches on its path": statistics.median(lengths),
                "operations": statistics.median(operations),
                f"{OURS}, ms": median_ms(OURS),
                f"{FOLLOWED}, ms": median_ms(FOLLOWED),
                f"{FOLLOWED}, against the peer": rounded(ratio(FOLLOWED)),
            },
        },
        {PEER: {"ms": median_ms(PEER)}},
        {
            "seconds until 20 switches are up": at_most(statistics.median(ups), 1),
            "seconds until they are connected and have their tables": at_most(statistics.median(readies), 3),
            "a subscription, against one flow-mod and barrier per switch on its path in turn": at_most(
                ratio(OURS), 5
            ),
        },
    )
