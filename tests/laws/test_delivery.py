"""Laws of the tables and of the network that walks them: every fast path is its plain twin."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import CONTENT_TABLE, Flow, Output
from flowsieve.flow.flat import FlowColumns, address_of, flatten, key_of, look_up
from flowsieve.flow.table_chain import met
from flowsieve.flow.wiring import Wiring
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import Masked, MaskedMatch, Match, PrefixMatch, match_on
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded import masked_walk
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.embedded.plain_walk import walk_plainly
from flowsieve.southbound.embedded.switch import Switch

PORTS = 70


@st.composite
def prefixes(draw: st.DrawFn) -> Prefix:
    """Prefixes that often nest, touch, and reach the ends of the space."""
    family = draw(st.sampled_from([4, 6]))
    length = draw(
        st.integers(0, 6)
        | st.integers(WIDTH[family] - 2, WIDTH[family])
        | st.integers(63, 66).filter(WIDTH[family].__ge__)
    )
    return Prefix(
        family,
        draw(st.sampled_from([0, 1, (1 << length) - 1]) | st.integers(0, 63)) & ((1 << length) - 1),
        length,
    )


def masked(family: int) -> st.SearchStrategy[Masked]:
    """A few bits at the ends of the address, so that they often overlap and seldom make a prefix."""
    ends = st.tuples(st.integers(0, 7), st.integers(0, 3)).map(lambda n: n[0] << (WIDTH[family] - 3) | n[1])
    return st.builds(lambda value, mask: Masked(family, value & mask, mask), ends, ends)


@st.composite
def masked_matches(draw: st.DrawFn, families: tuple[int, ...] = (4, 6)) -> Match:
    family = draw(st.sampled_from(families))
    return match_on(draw(st.none() | masked(family)), draw(masked(family)))


def flows(
    ports: int = PORTS, matches: st.SearchStrategy[Match] | None = None, priorities: int = 4
) -> st.SearchStrategy[Flow]:
    outputs = st.lists(st.integers(1, ports), unique=True, max_size=3).map(
        lambda row: tuple(map(Output, row))
    )
    matches = st.builds(PrefixMatch, prefixes()) if matches is None else matches
    return st.builds(Flow, matches, st.integers(1000, 999 + priorities), outputs)


@st.composite
def placed(draw: st.DrawFn, flow: st.SearchStrategy[Flow]) -> Flow:
    """An entry of one of some tables, which may let packets go on in a later one."""
    tables = (CONTENT_TABLE, 16, 17, 20)
    at = draw(st.integers(0, 3))
    onward = draw(st.sampled_from((*tables[at + 1 :], None)))
    return replace(draw(flow), table=tables[at], onward=onward)


@given(st.lists(flows()), st.sampled_from([4, 6]))
def test_the_flat_table_is_the_table(table, family):
    columns = FlowColumns.of(table, PORTS)
    flat = flatten(columns, family)
    starts = [address_of(family, hi, lo) for hi, lo in zip(flat.hi, flat.lo, strict=True)]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    ends = [*(start - 1 for start in starts[1:]), (1 << WIDTH[family]) - 1]
    for start, end, entry, words in zip(starts, ends, flat.entry, flat.ports, strict=True):
        for address in (start, (start + end) // 2, end):
            assert (None if entry < 0 else table[entry]) == look_up(table, family, address)
        bits = sum(int(word) << (64 * i) for i, word in enumerate(words))
        assert bits == sum(1 << (port - 1) for port in (table[entry].ports if entry >= 0 else ()))


@given(st.lists(flows()), st.sampled_from([4, 6]))
def test_no_interval_of_the_flat_table_could_be_joined_with_the_next(table, family):
    entry = flatten(FlowColumns.of(table, PORTS), family).entry
    assert (entry[1:] != entry[:-1]).all()


@given(st.lists(st.tuples(st.sampled_from(OpKind), flows())), st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_a_switch_finds_what_a_look_up_in_its_entries_finds(ops, addresses):
    switch = switch_after(ops)
    for number in addresses:
        for family, address in ((4, number), (6, number << 96), (6, number)):
            assert switch.look_up(family, address) == look_up(switch.flows, family, address)


@given(
    st.lists(st.tuples(st.sampled_from(OpKind), flows() | flows(matches=masked_matches())), max_size=30),
    st.lists(st.tuples(*[st.integers(0, 7), st.integers(0, 3)] * 2), min_size=1),
)
def test_a_switch_with_masked_entries_finds_what_a_look_up_finds(ops, packets):
    switch = switch_after(ops)
    for *source, high, low in packets:
        for family, width in WIDTH.items():
            to, by = high << (width - 3) | low, source[0] << (width - 3) | source[1]
            assert switch.look_up(family, to, by) == look_up(switch.flows, family, to, by)
            flat = switch.flat(family)
            masks = any(isinstance(flow.match, MaskedMatch) for flow in switch.flows)
            assert (flat is None) == masks


@given(
    st.lists(st.tuples(st.sampled_from(OpKind), placed(flows(matches=masked_matches((6,))))), max_size=30),
    st.lists(st.integers(0, 7), min_size=1),
)
def test_a_switch_passes_a_packet_on_from_table_to_table_as_its_entries_say(ops, packets):
    switch = switch_after(ops)
    several = any((flow.table, flow.onward) != (CONTENT_TABLE, None) for flow in switch.flows)
    masks = any(isinstance(flow.match, MaskedMatch) for flow in switch.flows)
    assert (switch.flat(6) is None) == (several or masks)
    for packet in packets:
        assert switch.met(6, packet << 125) == [*met(switch.flows, 6, packet << 125)]


def switch_after(ops: list[tuple[OpKind, Flow]]) -> Switch:
    switch, model = Switch("s1", PORTS), {}
    for kind, flow in ops:
        switch.carry_out(FlowOp(kind, flow))
        if kind is OpKind.REMOVE:
            model.pop(flow.key, None)
        elif kind is OpKind.INSTALL or flow.key in model:
            model[flow.key] = flow
    assert switch.flows == tuple(model.values())
    return switch


@st.composite
def networks(draw: st.DrawFn, masks: bool = False, tables: bool = False) -> EmbeddedNetwork:
    """Small networks with cycles and random tables: packets are lost, doubled, and go round in loops."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    pairs = [(a, b) for a in names for b in names if a < b]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    hosts = {f"h{i}": draw(st.sampled_from(names)) for i in range(draw(st.integers(1, 5)))}
    network = EmbeddedNetwork(Topology.make(links, hosts, switches=names), hop_limit=7)
    for switch in names:
        ports = len(network.topology.neighbours(switch))
        if ports:
            short = st.integers(0, 3).flatmap(
                lambda n: st.builds(Prefix, st.just(6), st.integers(0, (1 << n) - 1), st.just(n))
            )
            matches = st.builds(PrefixMatch, short)
            matches = matches | masked_matches((6,)) if masks else matches
            entries = flows(ports, matches, 3)
            table = st.lists(placed(entries) if tables else entries, max_size=6)
            network.apply(switch, [FlowOp(OpKind.INSTALL, flow) for flow in draw(table)])
    return network


def counted(network: EmbeddedNetwork) -> tuple[object, ...]:
    return (
        network.expired,
        network.link_packets,
        [network.packets(switch) for switch in network.topology.switches],
    )


@settings(max_examples=150)
@given(networks(), st.data())
def test_the_batch_path_does_what_packets_do_one_by_one(network, data):
    assert_same_in_a_batch(network, data)


@settings(max_examples=150)
@given(networks(masks=True), st.data())
def test_the_batch_path_does_so_with_masked_entries_too(network, data):
    assert_same_in_a_batch(network, data)


@settings(max_examples=150)
@given(networks(masks=True, tables=True), st.data())
def test_the_batch_path_does_so_with_several_tables_too(network, data):
    assert_same_in_a_batch(network, data)


@given(networks(masks=True, tables=True), st.data())
def test_packets_that_multiply_too_fast_for_a_batch_go_one_by_one(network, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masked_walk, "MOST_COPIES_AT_ONCE", 2)
        assert_same_in_a_batch(network, data)


@settings(max_examples=50)
@given(networks(), st.data())
def test_the_compiled_walk_is_the_plain_one(network, data):
    hosts = data.draw(st.lists(st.integers(0, len(network.topology.hosts) - 1), min_size=1, max_size=8))
    hi = np.array([data.draw(st.integers(0, 7)) << 61 for _ in hosts], np.uint64)
    wiring = Wiring.of(network.topology)
    switches = [Switch(name, 9) for name in wiring.switches]
    for switch in switches:
        for flow in network.read(switch.name):
            switch.carry_out(FlowOp(OpKind.INSTALL, flow))
    slots = np.zeros(wiring.slots, np.int64)
    packets = [(int(wiring.home[host]), 0, int(key) << 64) for host, key in zip(hosts, hi, strict=True)]
    plain = walk_plainly(wiring, switches, 6, packets, network.hop_limit, slots)
    batch = network.deliver(np.array(hosts), hi, np.zeros_like(hi))
    assert (batch.rows.tolist(), batch.host.tolist()) == (plain.rows.tolist(), plain.host.tolist())
    assert batch.expired == plain.expired


def assert_same_in_a_batch(network: EmbeddedNetwork, data: st.DataObject) -> None:
    hosts = list(network.topology.hosts)
    cells = st.integers(0, 7)
    events = data.draw(st.lists(st.tuples(st.sampled_from(hosts), cells, cells), min_size=1, max_size=8))
    twin = EmbeddedNetwork(network.topology, hop_limit=network.hop_limit)
    for switch in network.topology.switches:
        twin.apply(switch, [FlowOp(OpKind.INSTALL, flow) for flow in network.read(switch)])

    for number, (host, cell, source) in enumerate(events):
        network.send(host, cell << 125, payload=number, source=source << 125)
    network.settle()
    keys = np.array([key_of(6, cell << 125) for _, cell, _ in events], dtype=np.uint64)
    sources = [source << 125 for *_, source in events]
    batch = twin.deliver([host for host, *_ in events], keys[:, 0].copy(), keys[:, 1].copy(), sources=sources)

    assert batch.event.tolist() == sorted(batch.event.tolist())
    copies = Counter(
        (event, hosts[host]) for event, host in zip(batch.event.tolist(), batch.host, strict=True)
    )
    assert copies == Counter((delivery.payload, delivery.host) for delivery in network.deliveries)
    assert counted(twin) == counted(network)
