"""Requests to a controller, a process of its own over a fat-tree of 20 real switches, until they are acknowledged.

They come over HTTP and in band, as many as can be had from 40 clients. The peers take the same requests: a dispatcher
in this process over the same switches, without service and journal, and the core alone, which only decides. Then one
control packet in ten is lost, on the way to the controller or back: every request is to be answered once, in time.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

from benchmarks.bench import Result, at_most, rounded
from benchmarks.campus import (
    BUDGET,
    CLIENTS,
    FILTERS,
    SCHEMA,
    Way,
    advertisements,
    campus,
    clients,
    in_band,
    over_http,
    topology,
)
from benchmarks.churning import DEADLINE, Churner, LossyWire, Tally, as_fast, inband
from benchmarks.daemon import ControllerProcess
from benchmarks.served import ENCODING
from flowsieve.client.control_session import Transport
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab
from flowsieve.testing.lab_control import controlled

SECONDS = 6.0
LOSS, LOSSY_REQUESTS = 0.1, 800
HELD = 10  # subscriptions of a client, before one ends for each that comes
WAYS: dict[str, Way] = {"HTTP": over_http, "in band": in_band}
DISPATCHER, CORE = "dispatcher alone, same switches", "core alone"


def fresh() -> ControlState:
    network, plan = topology(), RegularPlan.make(SCHEMA, room=ENCODING.room)
    state = ControlState(network, plan, settings=Settings(budget=BUDGET))
    state.step(advertisements(list(network.hosts)))
    return state


async def asked(controller: ControllerProcess, way: Way) -> dict[str, float]:
    """As many requests as can be had, and what each takes of the controller's core."""
    tally = Tally()
    async with clients(controller, tally, way) as some:
        before = controller.processor_seconds()
        await as_fast(some, tally, SECONDS)
        spent = controller.processor_seconds() - before
    return tally.figures() | {"processor ms each": rounded(1e3 * spent / max(1, len(tally.seconds)))}


class Plan:
    """The requests of one client to a peer: subscribe, and from some number on end the oldest in turn."""

    def __init__(self, number: int, filters: list[Filter], hosts: list[str]) -> None:
        self._number, self._filters, self._host = number, filters, hosts[number % len(hosts)]
        self._first = self._next = 0

    def request(self) -> Request:
        if self._next - self._first >= HELD:
            self._first += 1
            return Request(Op.UNSUBSCRIBE, f"{self._number}-{self._first - 1}", self._host)
        self._next += 1
        wanted = self._filters[(97 * self._number + self._next) % len(self._filters)]
        return Request(Op.SUBSCRIBE, f"{self._number}-{self._next - 1}", self._host, wanted)


async def by_dispatcher(lab: Lab) -> dict[str, float]:
    tally, filters = Tally(), [Filter.parse(text, SCHEMA) for text in FILTERS]
    async with controlled(lab, fresh(), ENCODING) as dispatcher:
        await dispatcher.settled()
        end = time.perf_counter() + SECONDS

        async def work(number: int) -> None:
            plan = Plan(number, filters, list(lab.topology.hosts))
            while time.perf_counter() < end:
                request, begin = plan.request(), time.perf_counter()
                await dispatcher.submit(request)
                tally.seconds.append(time.perf_counter() - begin)

        tally.begin = time.perf_counter()
        await asyncio.gather(*map(work, range(CLIENTS)))
        tally.end = time.perf_counter()
    return tally.figures()


def by_core() -> dict[str, float]:
    """One request after the other; nobody follows."""
    state, tally, begun = fresh(), Tally(), time.process_time()
    filters = [Filter.parse(text, SCHEMA) for text in FILTERS]
    plans = [Plan(number, filters, list(state.topology.hosts)) for number in range(CLIENTS)]
    for number in range(3_000):
        if number == 500:  # warm
            tally, begun = Tally(), time.process_time()
        request, begin = plans[number % CLIENTS].request(), time.perf_counter()
        state.step([request])
        tally.seconds.append(time.perf_counter() - begin)
    tally.end = time.perf_counter()
    spent = time.process_time() - begun
    return tally.figures() | {"processor ms each": rounded(1e3 * spent / len(tally.seconds))}


async def lossy(controller: ControllerProcess) -> dict[str, Any]:
    """Clients whose sockets lose packets; in the end they hold what the controller says that they hold."""
    tally, wires = Tally(), list[LossyWire]()

    def losing(lab: Lab, host: str, number: int) -> Transport:
        with lab.inside(host):
            transport, wire = inband(HOST_INTERFACE, LOSS, number)
        wires.append(wire)
        return transport

    async def work(churner: Churner) -> None:
        for _ in range(LOSSY_REQUESTS // CLIENTS):
            await churner.turn()

    async with clients(controller, tally, losing) as some:
        await asyncio.gather(*map(work, some))
        tally.end = time.perf_counter()
        there = {row["id"] for row in await controller.ask("/v1/subscriptions")}
        held = {id for churner in some for id in churner.held}
    lost, carried = sum(wire.lost for wire in wires), sum(wire.carried for wire in wires)
    return tally.figures() | {
        "packets lost": lost,
        "share lost": rounded(lost / (lost + carried)),
        "done twice, or not though acknowledged": len(there ^ held),
        "slowest, seconds": rounded(max(tally.seconds)),
        "deadline, seconds": DEADLINE,
    }


async def measured() -> tuple[dict[str, Any], dict[str, Any]]:
    async with campus() as controller:
        figures = {name: await asked(controller, way) for name, way in WAYS.items()}
        figures["one control packet in ten lost"] = await lossy(controller)
        await controller.end(signal.SIGTERM)
        return figures, {DISPATCHER: await by_dispatcher(controller.lab), CORE: by_core()}


def run() -> Result:
    figures, peers = asyncio.run(measured())
    lossy = figures["one control packet in ten lost"]
    for name in WAYS:
        for peer, found in peers.items():
            share = figures[name]["per second"] / found["per second"]
            figures[name][f"against {peer}"] = rounded(share)
        spent = figures[name]["processor ms each"] / peers[CORE]["processor ms each"]
        figures[name]["processor time against core alone"] = rounded(spent)
    return Result(
        "service",
        figures,
        peers,
        {
            "processor time of a request over HTTP against the core alone": at_most(
                figures["HTTP"]["processor time against core alone"], 3
            ),
            "requests that were not answered in time, of those whose packets got lost": at_most(
                lossy["not answered"] + lossy["not served"], 0
            ),
            "requests done twice, or not though acknowledged": at_most(
                lossy["done twice, or not though acknowledged"], 0
            ),
            "slowest answer against its deadline": at_most(lossy["slowest, seconds"] / DEADLINE, 1),
        },
    )
