"""A ring of 20 real switches: until tables are in place, and until a subscription is acknowledged everywhere.

The peer sends one flow-mod and a barrier to each switch on the subscription's path, one switch after the other, over
sockets of the same kind, and waits for nothing else. A subscription is acknowledged when every switch has taken its
entries and packets meet them, which no barrier tells; in a second arm the barriers alone count.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.bench import Result, at_most, rounded
from benchmarks.flowmods import RawSwitch
from benchmarks.loads import TOP, Load, narrow, schema_of
from flowsieve.content.filter import Filter
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import content_flow
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.lab import Lab, down, running, up
from flowsieve.network.generators import ring
from flowsieve.network.topology import Topology
from flowsieve.network.tree import center_tree
from flowsieve.southbound.fabric import SwitchEvent
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.testing.lab_control import controlled

SWITCHES, ENTRIES = 20, 1_000  # at least so many content flows on every switch
STARTS, ROUNDS, WARM_ROUNDS = 5, 40, 5
PATIENCE_SECONDS = 60.0
ENCODING, ASIDE = (PrefixEncoding(POOLS["ipv6"][i]) for i in (0, -1))
ACKNOWLEDGED, BARRIERS = "acknowledged", "by barriers alone"
PEER = "one flow-mod and barrier per switch, in turn"
INSTALL, REMOVE = (
    Packer().pack(1, [FlowOp(kind, content_flow(ASIDE, Dz(0, 0), (1,)))])
    for kind in (OpKind.INSTALL, OpKind.REMOVE)
)
SMALL, LARGE = "range of 2 x 2 values", "range of 31 x 31 values"


@dataclass(frozen=True)
class Work:
    """What the control plane is asked: the requests that are there, and those that come one by one, by kind."""

    topology: Topology
    plan: RegularPlan
    there: list[Request]
    later: dict[str, list[Request]]

    @classmethod
    def make(cls) -> Work:
        """Every host publishes anything, and subscriptions come until every switch has its entries."""
        topology = ring(SWITCHES)
        load = narrow(2_000, 0)
        plan = RegularPlan.make(load.schema, room=ENCODING.room)
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
        later = {
            kind: [
                Request(Op.SUBSCRIBE, f"{kind} {i}", farthest, filter)
                for i, filter in enumerate(some[: ROUNDS + WARM_ROUNDS])
            ]
            for kind, some in (
                (SMALL, squares(ROUNDS + WARM_ROUNDS).filters()),
                (LARGE, [f for _, f in filters]),
            )
        }
        return cls(topology, plan, there, later)

    def state(self) -> ControlState:
        """The state that has decided on what is there."""
        state = ControlState(self.topology, self.plan)
        state.step(self.there)
        return state


def squares(count: int) -> Load:
    """Ranges of two values in both attributes, anywhere: 1, 2 or 4 dz each."""
    low = np.random.default_rng(3).integers(0, TOP, (count, 2))
    return Load(schema_of(2), np.stack((low, low + 1), axis=2), np.empty((0, 2), np.int64))


def _leaf(topology: Topology) -> str:
    """A host at an end of the tree, which is the ring without one link."""
    tree = center_tree(topology)
    near = dict.fromkeys(topology.switches, 0)
    for a, b in tree.edges:
        near[a] += 1
        near[b] += 1
    return next(host for host, switch in topology.hosts.items() if near[switch] == 1)


@asynccontextmanager
async def by_barriers(lab: Lab, state: ControlState) -> AsyncIterator[Dispatcher]:
    """A dispatcher that believes barriers, and does not wait until packets meet the tables."""

    def heard(event: SwitchEvent) -> None:
        dispatcher.heard(event)

    fabric = OpenFlowFabric(lab.switch_addresses, timing=Timing(lag=0.0), report=heard)
    dispatcher = Dispatcher(state, fabric, ENCODING, deliveries_of(lab.topology, ENCODING.family))
    async with dispatcher, fabric:
        yield dispatcher


async def started(work: Work) -> tuple[float, float]:
    """Seconds until the lab is up, and from there until all is connected, compiled and in place."""
    begin = time.perf_counter()
    lab = up(work.topology)
    try:
        there = time.perf_counter()
        async with asyncio.timeout(PATIENCE_SECONDS), controlled(lab, work.state(), ENCODING) as dispatcher:
            await dispatcher.settled()
            ready = time.perf_counter()
            fewest = min(map(len, (await dispatcher.tables()).values()))  # as the switches themselves tell
        if fewest < ENTRIES:
            raise RuntimeError(f"a switch has {fewest} entries, not {ENTRIES}")
    finally:
        down(lab)
    return there - begin, ready - there


@contextmanager
def raw_switches(lab: Lab) -> Iterator[dict[str, RawSwitch]]:
    with ExitStack() as stack:
        raw = {switch: RawSwitch(lab.management(switch)) for switch in lab.topology.switches}
        for each in raw.values():
            stack.callback(each.close)
        yield raw


@asynccontextmanager
async def arms(work: Work) -> AsyncIterator[tuple[dict[str, Dispatcher], dict[str, RawSwitch]]]:
    """Our two arms and the peer, each on a ring of its own with the same tables.

    On one ring the peer would disturb us: somebody else's changes make a controller read the table again.
    """
    async with AsyncExitStack() as stack:
        labs = [stack.enter_context(running(work.topology)) for _ in range(3)]
        async with controlled(labs[2], work.state(), ENCODING) as dispatcher:
            await dispatcher.settled()
        ours = {
            ACKNOWLEDGED: await stack.enter_async_context(controlled(labs[0], work.state(), ENCODING)),
            BARRIERS: await stack.enter_async_context(by_barriers(labs[1], work.state())),
        }
        for dispatcher in ours.values():
            await dispatcher.settled()
        yield ours, stack.enter_context(raw_switches(labs[2]))


@dataclass(frozen=True)
class Taken:
    """What one subscription took, in seconds by arm, and what it needed."""

    seconds: Mapping[str, float]
    path: int
    operations: int

    def against_peer(self, arm: str) -> float:
        return self.seconds[arm] / self.seconds[PEER]


async def subscribed(work: Work) -> dict[str, list[Taken]]:
    """Subscriptions of each kind, one by one; a round has each kind in each arm."""
    found: dict[str, list[Taken]] = {kind: [] for kind in work.later}
    async with asyncio.timeout(3 * PATIENCE_SECONDS), arms(work) as (ours, raw):
        for number in range(WARM_ROUNDS + ROUNDS):
            for kind, requests in work.later.items():
                taken = await one_round(ours, raw, requests[number])
                if taken is not None and number >= WARM_ROUNDS:
                    found[kind].append(taken)
    return found


async def one_round(
    ours: Mapping[str, Dispatcher], raw: Mapping[str, RawSwitch], request: Request
) -> Taken | None:
    """One subscription in each arm, then the peer on the same path, and all is as before.

    None if others on the host asked for all of it already.
    """
    spent: dict[str, float] = {}
    for name, dispatcher in ours.items():
        begin = time.perf_counter()
        outcome = await dispatcher.submit(request)
        spent[name] = time.perf_counter() - begin
        await dispatcher.submit(Request(Op.UNSUBSCRIBE, request.id, request.endpoint))
    path = list(outcome.changes)
    begin = time.perf_counter()
    for switch in path:
        raw[switch].take(INSTALL)
    spent[PEER] = time.perf_counter() - begin
    for switch in path:
        raw[switch].take(REMOVE)
    return Taken(spent, len(path), outcome.operations) if path else None


def run() -> Result:
    work = Work.make()
    ups, readies = zip(*(asyncio.run(started(work)) for _ in range(STARTS)), strict=True)
    found = asyncio.run(subscribed(work))
    return Result(
        "control_plane",
        {
            "lab up, seconds": rounded(statistics.median(ups)),
            "connected and tables in place, seconds": rounded(statistics.median(readies)),
            "entries per switch, at least": ENTRIES,
            "subscriptions there": len(work.there) - SWITCHES,
            "a subscription": {kind: _needed(taken) | _took(taken) for kind, taken in found.items()},
        },
        {PEER: {"ms": _median_ms(found[SMALL], PEER)}},
        {
            "seconds until 20 switches are up": at_most(statistics.median(ups), 1),
            "seconds until they are connected and have their tables": at_most(statistics.median(readies), 3),
            "a subscription acknowledged everywhere, "
            "against one flow-mod and barrier per switch on its path in turn": at_most(
                _ratio(found[SMALL], ACKNOWLEDGED), 5
            ),
        },
    )


def _needed(taken: list[Taken]) -> dict[str, float]:
    return {
        "rounds": len(taken),
        "switches on its path": statistics.median(each.path for each in taken),
        "operations per switch": rounded(statistics.median(each.operations / each.path for each in taken)),
    }


def _took(taken: list[Taken]) -> dict[str, dict[str, float]]:
    return {
        arm: {"ms": _median_ms(taken, arm), "against the peer": rounded(_ratio(taken, arm))}
        for arm in (ACKNOWLEDGED, BARRIERS)
    }


def _ratio(taken: list[Taken], arm: str) -> float:
    return statistics.median(each.against_peer(arm) for each in taken)


def _median_ms(taken: list[Taken], arm: str) -> float:
    return rounded(1e3 * statistics.median(each.seconds[arm] for each in taken))
