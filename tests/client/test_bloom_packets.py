"""Publishers that send the bits of what events match: how often these are for nothing."""

from __future__ import annotations

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
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 999} for name in "ab"})
HOSTS = [f"h{n}" for n in range(24)]
SWITCHES = [f"s{n}" for n in range(4)]
EVENTS = 1000


def network() -> Topology:
    """Switches in a line, with hosts that want something and one that publishes."""
    hosts = {host: SWITCHES[n % len(SWITCHES)] for n, host in enumerate(HOSTS)}
    return Topology.make(list(pairwise(SWITCHES)), hosts | {"p": "s0"}, SWITCHES)


def subscriptions(random: Random, each: int) -> list[Request]:
    """Boxes of which few cover each other; an event is in a dozen of them or so."""
    found = [Request(Op.ADVERTISE, "all", "p", Filter.parse("True", SCHEMA))]
    for n in range(each * len(HOSTS)):
        a, b = random.randrange(750), random.randrange(750)
        text = f"{a} <= a < {a + random.randint(150, 250)} and {b} <= b < {b + random.randint(150, 250)}"
        found.append(Request(Op.SUBSCRIBE, f"s{n}", HOSTS[n % len(HOSTS)], Filter.parse(text, SCHEMA)))
    return found


def events(random: Random) -> EventBatch:
    columns = {name: np.array([random.randrange(1000) for _ in range(EVENTS)], float) for name in "ab"}
    ids = np.array([str(n) for n in range(EVENTS)], dtype=object)
    return EventBatch(SCHEMA, ids, np.full(EVENTS, "p", dtype=object), columns)


def played(shares: Shares, seed: int) -> tuple[BloomPackets, int, int]:
    """What is sent for events, how many copies of them came for nothing, and how many hosts lacked one."""
    random, topology = Random(seed), network()
    switches = EmbeddedNetwork(topology)
    labelling = BloomLabelling.make(topology, BloomLabels.tuned(shares.filters))
    controller = BloomController(labelling, shares, SCHEMA, switches)
    controller.repair()
    controller.submit(subscriptions(random, 12))
    batch = events(random)
    sent = bloom_packets(batch, controller.held, labelling.labels, shares)
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
    return sent, int((got & ~wanted).sum()), int((wanted & ~got).sum())


@pytest.mark.parametrize(("shares", "off"), [(Shares(12, 1), 0.1), (Shares(24), 0.2)])
def test_what_is_predicted_is_what_comes_for_nothing(shares: Shares, off: float) -> None:
    """Over several sets of filters: in one of them a few that deceive each other, or none, weigh much.

    With several packets an event less comes than is predicted: more of them are stopped on the way.
    """
    runs = [played(shares, seed) for seed in range(8)]
    assert sum(lost for _, _, lost in runs) == 0
    unwanted = sum(came for _, came, _ in runs)
    assert unwanted > 100
    assert sum(sent.deceived.sum() for sent, _, _ in runs) == pytest.approx(unwanted, rel=off)


def test_fewer_filters_a_packet_deceive_less_and_take_more_packets() -> None:
    by_filters = [played(Shares(filters), 5) for filters in (4, 8, 16)]
    counts = [len(sent.rows) for sent, _, _ in by_filters]
    unwanted = [came for _, came, _ in by_filters]
    assert counts == sorted(counts, reverse=True)
    assert unwanted == sorted(unwanted)
    assert [lost for _, _, lost in by_filters] == [0, 0, 0]
