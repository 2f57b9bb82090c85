"""Laws of the tables and of the network that walks them: every fast path is its plain twin."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.flat import FlowColumns, address_of, flatten, key_of, look_up
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
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


def flows(ports: int = PORTS) -> st.SearchStrategy[Flow]:
    outputs = st.lists(st.integers(1, ports), unique=True, max_size=3).map(
        lambda row: tuple(map(Output, row))
    )
    return st.builds(Flow, st.builds(PrefixMatch, prefixes()), st.integers(1000, 1003), outputs)


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
    switch, model = Switch("s1", PORTS), {}
    for kind, flow in ops:
        switch.carry_out(FlowOp(kind, flow))
        if kind is OpKind.REMOVE:
            model.pop(flow.key, None)
        elif kind is OpKind.INSTALL or flow.key in model:
            model[flow.key] = flow
    assert switch.flows == tuple(model.values())
    for number in addresses:
        for family, address in ((4, number), (6, number << 96), (6, number)):
            assert switch.look_up(family, address) == look_up(switch.flows, family, address)


@st.composite
def networks(draw: st.DrawFn) -> EmbeddedNetwork:
    """Small networks with cycles and random tables: packets are lost, doubled, and go round in loops."""
    names = [f"s{i}" for i in range(draw(st.integers(1, 5)))]
    pairs = [(a, b) for a in names for b in names if a < b]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    hosts = {f"h{i}": draw(st.sampled_from(names)) for i in range(draw(st.integers(1, 5)))}
    network = EmbeddedNetwork(Topology.make(links, hosts, switches=names), hop_limit=7)
    for switch in names:
        ports = len(network.topology.neighbours(switch))
        if ports:
            outputs = st.lists(st.integers(1, ports), unique=True, max_size=3).map(
                lambda row: tuple(map(Output, row))
            )
            short = st.integers(0, 3).flatmap(
                lambda n: st.builds(Prefix, st.just(6), st.integers(0, (1 << n) - 1), st.just(n))
            )
            table = st.lists(
                st.builds(Flow, st.builds(PrefixMatch, short), st.integers(1000, 1002), outputs), max_size=6
            )
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
    hosts = list(network.topology.hosts)
    events = data.draw(st.lists(st.tuples(st.sampled_from(hosts), st.integers(0, 7)), min_size=1, max_size=8))
    twin = EmbeddedNetwork(network.topology, hop_limit=network.hop_limit)
    for switch in network.topology.switches:
        twin.apply(switch, [FlowOp(OpKind.INSTALL, flow) for flow in network.read(switch)])

    for number, (host, cell) in enumerate(events):
        network.send(host, cell << 125, payload=number)
    network.settle()
    keys = np.array([key_of(6, cell << 125) for _, cell in events], dtype=np.uint64)
    batch = twin.deliver([host for host, _ in events], keys[:, 0].copy(), keys[:, 1].copy())

    assert batch.event.tolist() == sorted(batch.event.tolist())
    copies = Counter(
        (event, hosts[host]) for event, host in zip(batch.event.tolist(), batch.host, strict=True)
    )
    assert copies == Counter((delivery.payload, delivery.host) for delivery in network.deliveries)
    assert counted(twin) == counted(network)
