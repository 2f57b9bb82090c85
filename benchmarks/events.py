"""Events encoded and events delivered per second and core."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.bench import Goal, Result, at_least, rounded, seconds
from benchmarks.loads import Load, schema_of, zipf
from benchmarks.network import controlled
from flowsieve.client.batch_packets import packets_of
from flowsieve.index.plans.regular import RegularPlan

ENCODED, DELIVERED, ROUNDS = 2_000_000, 500_000, 5


def encoding() -> dict[str, float]:
    rng = np.random.default_rng(1)
    schema = schema_of(8)
    points = rng.integers(0, 1024, (ENCODED, 8))
    events = Load(schema, np.zeros((0, 8, 2), np.int64), points).events()
    plan = RegularPlan.make(schema, bits=23)
    plan.encode_batch(events)
    spent = min(seconds(lambda: plan.encode_batch(events)) for _ in range(ROUNDS))
    few = events.take(np.arange(2_000))
    one_by_one = seconds(lambda: [plan.encode(few.event(row)) for row in range(len(few))])
    return {"per_second": rounded(ENCODED / spent), "one_by_one_per_second": rounded(len(few) / one_by_one)}


def delivery() -> dict[str, float]:
    load = zipf(1_000, DELIVERED)
    controller, network = controlled(load, 64, 16)
    events = load.events()
    packets = packets_of(events, controller.state.plan, controller.encoding)
    publishers = np.arange(len(events)) % 16 * 4
    network.deliver(publishers, packets.hi, packets.lo)
    spent = min(seconds(lambda: network.deliver(publishers, packets.hi, packets.lo)) for _ in range(ROUNDS))
    copies = len(network.deliver(publishers, packets.hi, packets.lo).event)
    return {"per_second": rounded(DELIVERED / spent), "copies_per_event": rounded(copies / DELIVERED)}


def run() -> Result:
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    figures: dict[str, Any] = {
        "encoding, 8 attributes, 23 bits": encoding(),
        "delivery, 20 switches, 1,000 subscriptions": delivery(),
    }
    goals: dict[str, Goal] = {
        "events encoded per second and core": at_least(
            figures["encoding, 8 attributes, 23 bits"]["per_second"], 5e6
        ),
        "events delivered per second and core": at_least(
            figures["delivery, 20 switches, 1,000 subscriptions"]["per_second"], 300e3
        ),
    }
    return Result("events", figures, goals=goals)
