"""Entries for labels that are Bloom filters, merged to fit: which of them, and what becomes of them."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.request import Op, Request
from flowsieve.flow.capacity.pattern_merging import PacketSample, merged
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

TOPOLOGY = Topology.make([("s1", "s2")], {"p": "s1", "a": "s2", "b": "s2"})
LABELLING = BloomLabelling.make(TOPOLOGY, BloomLabels(3))
(TO_HOSTS,) = [each for each in LABELLING.ports if each.port.hosts == {"a", "b"}]
TO_A, TO_B = (each for host in "ab" for each in LABELLING.ports if each.port.hosts == {host})
SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 999}})


def sample(*packets: int) -> PacketSample:
    """Packets that p sends."""
    return PacketSample.of(LABELLING.labels.m, packets, ("p",), np.ones((len(packets), 1), np.bool_))


@given(
    st.lists(st.integers(1, 2**10 - 1), min_size=2, max_size=12, unique=True), st.integers(2, 8), st.data()
)
def test_what_is_merged_fits_and_sends_all_that_was_sent(
    entries: list[int], most: int, data: st.DataObject
) -> None:
    packets = data.draw(st.lists(st.integers(0, 2**10 - 1), max_size=10))
    middle = data.draw(st.integers(1, len(entries) - 1))
    tables = {TO_A: entries[:middle], TO_B: entries[middle:]}
    found = merged(tables, most, sample(*packets))
    assert sum(map(len, found.values())) <= most
    for where, some in tables.items():
        assert all(any(not left & ~bits for left in found[where]) for bits in some)


def test_those_are_merged_that_send_least_besides() -> None:
    """Of two pairs that are equally alike, packets have what those of the first share."""
    first, second = [0b0011_1, 0b1100_1], [0b0011_1 << 8, 0b1100_1 << 8]
    assert merged({TO_A: first + second}, 3, sample(0b1, 0b1, 0b10)) == {TO_A: {*first, 1 << 8}}
    assert merged({TO_A: first + second}, 3, sample(1 << 8, 1 << 8)) == {TO_A: {1, *second}}


def test_what_comes_from_behind_a_port_does_not_count() -> None:
    """Packets of a host are not sent back to it."""
    first, second = [0b0011_1, 0b1100_1], [0b0011_1 << 8, 0b1100_1 << 8]
    by_whom = np.array([[True, False], [True, False], [False, True]])
    packets = PacketSample.of(LABELLING.labels.m, [1, 1, 1 << 8], ("a", "b"), by_whom)
    assert merged({TO_A: first + second}, 3, packets) == {TO_A: {1, *second}}
    assert merged({TO_B: first + second}, 3, packets) == {TO_B: {*first, 1 << 8}}


def test_merged_entries_are_taken_apart_when_there_is_room_again() -> None:
    labelling, network = BloomLabelling.make(TOPOLOGY, BloomLabels.tuned(4)), EmbeddedNetwork(TOPOLOGY, 40)
    controller = BloomController(labelling, Shares(4), SCHEMA, network, 40)
    controller.repair()
    asked = [Request(Op.ADVERTISE, "all", "p", Filter.parse("True", SCHEMA))]
    for n in range(60):
        text = f"{n * 10} <= price < {n * 10 + 15}"
        asked.append(Request(Op.SUBSCRIBE, f"s{n}", "ab"[n % 2], Filter.parse(text, SCHEMA)))
    for request in asked:
        assert not controller.submit([request]).refused
    assert controller.ports.merged > 0
    gone = Random(1).sample(asked[1:], 50)
    for request in gone:
        controller.submit([Request(Op.UNSUBSCRIBE, request.id, request.endpoint)])
        assert controller.verify().holds
    assert controller.ports.merged == 0
    assert controller.ports.entries == controller.ports.needed
    assert len(controller.ports.entries[TO_HOSTS]) == 10
