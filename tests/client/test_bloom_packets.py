"""Publishers that send the bits of what events match: how often these are for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from flowsieve.client.bloom_packets import BloomPackets, bloom_packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.request import Op, Request
from flowsieve.flow.deceived import deceived
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 999} for name in "ab"})
HOSTS = [f"h{n}" for n in range(24)]
SWITCHES = [f"s{n}" for n in range(4)]
EVENTS = 300
FEW_BITS = BloomLabels(2)


def network() -> Topology:
    """Switches in a line, with hosts that want something and one that publishes."""
    hosts = {host: SWITCHES[n % len(SWITCHES)] for n, host in enumerate(HOSTS)}
    return Topology.make(list(pairwise(SWITCHES)), hosts | {"p": "s0"}, SWITCHES)


def boxes(random: Random, widths: Iterable[tuple[int, int]]) -> list[Request]:
    """Boxes of such widths, one after the other, at one host after the other."""
    found = [Request(Op.ADVERTISE, "all", "p", Filter.parse("True", SCHEMA))]
    for n, (wide, high) in enumerate(widths):
        a, b = random.randrange(1000 - wide), random.randrange(1000 - high)
        text = f"{a} <= a < {a + wide} and {b} <= b < {b + high}"
        found.append(Request(Op.SUBSCRIBE, f"s{n}", HOSTS[n % len(HOSTS)], Filter.parse(text, SCHEMA)))
    return found


def overlapping(random: Random) -> list[Request]:
    """Boxes of which few cover each other; an event is in a dozen of them or so."""
    return boxes(
        random, [(random.randint(150, 250), random.randint(150, 250)) for _ in range(12 * len(HOSTS))]
    )


def nested(random: Random) -> list[Request]:
    """Boxes of all sizes, so that many cover others, which are not in all tables on the way."""
    sides = [random.choice([20, 60, 150, 400]) for _ in range(12 * len(HOSTS))]
    return boxes(random, [(side, side + random.randint(0, 20)) for side in sides])


def narrow(random: Random) -> list[Request]:
    """Boxes of which events match few: packets are for some hosts only, and are stopped early elsewhere."""
    return boxes(random, [(random.randint(60, 120), random.randint(60, 120)) for _ in range(25 * len(HOSTS))])


def events(random: Random) -> EventBatch:
    columns = {name: np.array([random.randrange(1000) for _ in range(EVENTS)], float) for name in "ab"}
    ids = np.array([str(n) for n in range(EVENTS)], dtype=object)
    return EventBatch(SCHEMA, ids, np.full(EVENTS, "p", dtype=object), columns)


@dataclass(frozen=True)
class Played:
    """What was sent, how many hosts were expected to get an event for nothing and did, and how many lacked one."""

    sent: BloomPackets
    predicted: float
    unwanted: int
    lost: int


def played(
    shares: Shares,
    seed: int,
    asked: Callable[[Random], list[Request]] = overlapping,
    labels: BloomLabels | None = None,
    capacity: int | None = None,
) -> Played:
    random, topology = Random(seed), network()
    switches = EmbeddedNetwork(topology)
    labelling = BloomLabelling.make(topology, labels or BloomLabels.tuned(shares.filters))
    controller = BloomController(labelling, shares, SCHEMA, switches, capacity)
    controller.repair()
    assert not controller.submit(asked(random)).refused
    batch = events(random)
    sent = bloom_packets(batch, controller.held, labelling.labels, shares)
    expected = deceived(sent.sent(batch), EVENTS, labelling, controller.held, controller.ports.entries)
    packets = sent.packets()
    got = np.zeros((len(topology.hosts), EVENTS), np.bool_)
    wanted = np.zeros_like(got)
    arrived = switches.deliver(
        ["p"] * len(packets.rows), packets.hi, packets.lo, packets.family, packets.sources
    )
    got[arrived.host, packets.rows[arrived.event]] = True
    number = {host: n for n, host in enumerate(topology.hosts)}
    for each in controller.subscriptions.values():
        assert each.filter is not None
        wanted[number[each.endpoint]] |= each.filter.matches_batch(batch)
    return Played(sent, float(expected.sum()), int((got & ~wanted).sum()), int((wanted & ~got).sum()))


@pytest.mark.parametrize("asked, runs", [(overlapping, 12), (nested, 12), (narrow, 6)])
@pytest.mark.parametrize("shares", [Shares(12, 1), Shares(8)])
def test_what_is_predicted_is_what_comes_for_nothing(
    shares: Shares, asked: Callable[[Random], list[Request]], runs: int
) -> None:
    """With so few bits a filter that much does, and over several sets of filters: in one of them a few that deceive
    each other, or none, weigh much."""
    all_runs = [played(shares, seed, asked, FEW_BITS) for seed in range(runs)]
    assert sum(run.lost for run in all_runs) == 0
    unwanted = sum(run.unwanted for run in all_runs)
    assert unwanted > 500
    assert sum(run.predicted for run in all_runs) == pytest.approx(unwanted, rel=0.1)


def test_fewer_filters_a_packet_deceive_less_and_take_more_packets() -> None:
    by_filters = [played(Shares(filters), 5) for filters in (4, 8, 16)]
    counts = [len(run.sent.rows) for run in by_filters]
    unwanted = [run.unwanted for run in by_filters]
    assert counts == sorted(counts, reverse=True)
    assert unwanted == sorted(unwanted)
    assert [run.lost for run in by_filters] == [0, 0, 0]


def test_the_fewer_entries_are_left_the_more_comes_for_nothing() -> None:
    by_capacity = [played(Shares(12), 5, capacity=capacity) for capacity in (None, 200, 100, 30)]
    unwanted = [run.unwanted for run in by_capacity]
    assert unwanted == sorted(unwanted)
    assert [run.lost for run in by_capacity] == [0, 0, 0, 0]
