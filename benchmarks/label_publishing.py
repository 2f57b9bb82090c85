"""What a publisher pays for labels: events matched and sent, beside dz, by how much is subscribed.

An application publishes on a host of a lab, under a controller that is a process of its own and knows of so many
subscriptions on the other hosts. With labels, the host's matcher, a process too, holds all of them. Counted are events
a second and the processor time of each, of the application and of the matcher; the matcher's memory; the time until the
application may publish first, in which the matcher learns all filters; and that of one more subscription.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Result, rounded
from benchmarks.campus import SCHEMA, topology
from benchmarks.control_plane import squares
from benchmarks.daemon import ControllerProcess, controller_of
from benchmarks.label_service import HEADERS
from flowsieve.client.matcher_socket import found, process_of
from flowsieve.client.session import connect
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.lab.lab import Lab, running
from flowsieve.serving.calls.tokens import Tokens

# Subscriptions; tables for dz and for filters take their time.
COUNTS, COUNTS_OF_BLOOM, COUNTS_OF_DZ = (1_000, 10_000, 100_000), (1_000, 10_000), (1_000,)
EVENTS, TURN, MORE = 10_000, 64, 10
TICK = os.sysconf("SC_CLK_TCK")


def matcher_of(controller: ControllerProcess, host: str) -> int:
    """The process that matches for a host."""
    lab, secret = controller.lab, (controller.folder / "state" / "secret").read_bytes()
    with lab.inside(host):
        peer = found(Tokens(secret, lab.topology).network, host)
    assert peer is not None, "it was started"
    with peer:
        return process_of(peer)[0]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def published(controller: ControllerProcess, header: str) -> dict[str, Any]:
    lab, dice = controller.lab, random.Random(1)
    publisher, *others = lab.topology.hosts
    events = [{"a0": dice.randrange(1024), "a1": dice.randrange(1024)} for _ in range(EVENTS)]
    control, figures = f"unix:{lab.requests}", dict[str, Any]()
    async with (
        connect(
            control, publisher, controller.token(publisher), inside=partial(lab.inside, publisher)
        ) as client,
        connect(
            control, others[0], controller.token(others[0]), inside=partial(lab.inside, others[0])
        ) as other,
    ):
        begin = time.perf_counter()
        await client.advertise()
        figures["seconds until it may publish"] = rounded(time.perf_counter() - begin)
        pid = None if header == "dz" else matcher_of(controller, publisher)
        matching = processor_seconds(pid) if pid is not None else 0.0
        begin, own = time.perf_counter(), time.thread_time()
        for number, event in enumerate(events, 1):
            if number % TURN:
                client.publish_nowait(event)
            else:
                await client.publish(event)
        own, seconds = time.thread_time() - own, time.perf_counter() - begin
        figures["events a second"] = rounded(EVENTS / seconds)
        figures["application, processor us an event"] = rounded(1e6 * own / EVENTS)
        if pid is not None:
            matching = processor_seconds(pid) - matching
            figures["matcher, processor us an event"] = rounded(1e6 * matching / EVENTS)
            figures["matcher, MB"] = rounded(memory_mb(pid))
        begin = time.perf_counter()
        for number in range(MORE):
            await other.subscribe(f"a0 == {number}")
        figures["ms of one more subscription"] = rounded(1e3 * (time.perf_counter() - begin) / MORE)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
    return figures


async def measured(lab: Lab, header: str, count: int) -> dict[str, Any]:
    _, *others = lab.topology.hosts
    requests = [
        Request(Op.SUBSCRIBE, f"s{n}", others[n % len(others)], Filter.known(text, SCHEMA))
        for n, text in enumerate(squares(count).texts())
    ]
    async with controller_of(lab, SCHEMA, HEADERS[header]) as controller:
        await controller.remember(requests)
        await controller.start()
        try:
            return await published(controller, header)
        finally:
            await controller.end(signal.SIGTERM)


def run() -> Result:
    figures, peers = dict[str, Any](), dict[str, Any]()
    with running(topology()) as lab:
        for count in COUNTS:
            figures[f"receivers, {count:,} subscriptions"] = asyncio.run(measured(lab, "receivers", count))
        for count in COUNTS_OF_BLOOM:
            figures[f"bloom, {count:,} subscriptions"] = asyncio.run(measured(lab, "bloom", count))
        for count in COUNTS_OF_DZ:
            peers[f"dz, {count:,} subscriptions"] = asyncio.run(measured(lab, "dz", count))
    return Result("label_publishing", figures, peers, {})
