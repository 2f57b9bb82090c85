"""Laws of labels that name receivers: on any network each event reaches exactly those who want it, once.

A proof is compared with what every switch does to every label there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import topologies
from worlds import EVENTS, SCHEMA, a_filter

from flowsieve.client.label_packets import labelled_packets, receivers_of
from flowsieve.content.event import EventBatch
from flowsieve.control.label_controller import LabelController
from flowsieve.control.request import Op, Request
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import LABEL_TABLES, NOBODY, NOWHERE, Flow, Output
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.proof.label_verify import verify_labels
from flowsieve.flow.table_chain import met
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.match import Masked, match_on
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, endpoints_behind
from flowsieve.southbound.embedded.network import EmbeddedNetwork

seeds = st.integers(0, 2**32 - 1).map(Random)
Tables = Mapping[str, tuple[Flow, ...]]


def labelled(topology: Topology, random: Random) -> Labelling:
    """Labels of hosts that are put into small sets at random, with a tree for each, one for all, or some for any; they
    are readdressed at the last hop, or not."""

    def assign(topology: Topology, tree: SpanningTree, most: int) -> tuple[tuple[str, ...], ...]:
        hosts = random.sample(list(topology.hosts), len(topology.hosts))
        step = random.randint(1, len(hosts))
        return tuple(tuple(hosts[at : at + step]) for at in range(0, len(hosts), step))

    deliveries = random.choice([NOWHERE, deliveries_of(topology, 6)])
    chosen = assign if random.random() < 0.7 else None
    made = Labelling.make(topology, chosen, deliveries, partitions=random.randint(1, 4))
    if random.random() < 0.5:
        return made
    roots = random.choices(sorted(topology.main), k=random.randint(1, 3))
    return replace(made, trees=SetTrees(tuple(SpanningTree.of(topology, root) for root in roots)))


def requests(topology: Topology, random: Random) -> Iterator[Request]:
    hosts = list(topology.hosts)
    for n in range(random.randint(1, 8)):
        yield Request(Op.ADVERTISE, f"a{n}", random.choice(hosts), a_filter(random))
    for n in range(random.randint(0, 12)):
        yield Request(Op.SUBSCRIBE, f"s{n}", random.choice(hosts), a_filter(random))


def events_of(topology: Topology, random: Random) -> EventBatch:
    hosts = [random.choice(list(topology.hosts)) for _ in EVENTS]
    columns = {name: np.array([event[name] for event in EVENTS], float) for name in SCHEMA.names}
    ids = np.array([str(n) for n in range(len(EVENTS))], dtype=object)
    return EventBatch(SCHEMA, ids, np.array(hosts, dtype=object), columns)


@settings(max_examples=100)
@given(topologies(switches=6, hosts=7), seeds)
def test_an_event_reaches_those_who_want_it_once_and_nobody_else(topology: Topology, random: Random) -> None:
    network = EmbeddedNetwork(topology)
    controller = LabelController(labelled(topology, random), SCHEMA, network)
    made = controller.repair()
    asked = list(requests(topology, random))
    controller.submit(asked)
    gone = random.sample(asked, len(asked) // 3)
    controller.submit([Request(each.op.reverse, each.id, each.endpoint) for each in gone])
    assert controller.operations == made == sum(map(len, controller.tables().values()))
    offers, wants = (list(controller.interests(side).values()) for side in (Side.PUBLISHER, Side.SUBSCRIBER))
    events = events_of(topology, random)
    sent = [
        any(each.endpoint == host and each.holds(event, ()) for each in offers)
        for event, host in zip(EVENTS, events.hosts, strict=True)
    ]
    events = events.take(np.array(sent))
    mine = [event for event, good in zip(EVENTS, sent, strict=True) if good]
    packets = labelled_packets(events, offers, wants, controller.labelling.labels)
    batch = network.deliver(events.hosts[packets.rows].tolist(), packets.hi, packets.lo, packets.family)
    names = list(topology.hosts)
    got = Counter(
        (int(row), names[host])
        for row, host in zip(packets.rows[batch.event], batch.host.tolist(), strict=True)
    )
    right = {
        (row, each.endpoint)
        for row, (event, host) in enumerate(zip(mine, events.hosts, strict=True))
        for each in wants
        if each.endpoint != host and each.holds(event, ())
    }
    assert got == Counter(dict.fromkeys(right, 1))
    found = receivers_of(events, offers, wants)
    assert {(row, host) for host, rows in found.items() for row in np.flatnonzero(rows)} == right
    assert controller.verify().holds


def broken(tables: Tables, labelling: Labelling, random: Random) -> Tables:
    """Tables with some entries taken out, changed or added; masks look at bits of hosts alone."""
    labels, out = labelling.labels, {switch: list(table) for switch, table in tables.items()}
    bits = [bit for host in labels.hosts for bit in labels.masks([host]).values()]
    for _ in range(random.randint(0, 3)):
        switch = random.choice(list(out))
        ports = range(1, len(labelling.topology.neighbours(switch)) + 1)
        table = out[switch]
        kind = random.choice(["less", "ports", "address", "mask", "onward", "more"])
        if not table or not ports:
            continue
        at = random.randrange(len(table))
        flow = table[at]
        if kind == "less":
            del table[at]
        elif kind == "ports":
            chosen = random.sample(ports, random.randint(0, min(2, len(ports))))
            table[at] = replace(flow, actions=tuple(map(Output, chosen)))
        elif kind == "address":
            there = sorted(deliveries_of(labelling.topology, 6)[switch].values())
            table[at] = replace(
                flow, actions=tuple(replace(random.choice(there), port=p) for p in flow.ports if there)
            )
        elif kind == "mask":
            _, asked = flow.match.parts
            flip = random.choice(bits)
            mask = asked.mask ^ flip
            value = asked.value & mask | (flip & mask if random.random() < 0.3 else 0)
            table[at] = replace(flow, match=match_on(None, Masked(6, value, mask)))
        elif kind == "onward":
            later = [each for each in LABEL_TABLES[: len(ports) + 1] if each > flow.table]
            table[at] = replace(flow, onward=random.choice([None, *later]))
        else:
            number = random.choice(LABEL_TABLES[: len(ports)])
            more = replace(
                flow, priority=random.choice([1000, 1003]), actions=(Output(random.choice(ports)),)
            )
            if more.onward is None or more.onward > number:
                table.append(replace(more, table=number))
        unique = {each.key: each for each in table}
        out[switch] = list(unique.values())
    return {switch: tuple(table) for switch, table in out.items()}


def as_they_should(view: LabelView) -> bool:
    """Whether every switch sends every label out of the ports behind which somebody is whom it names, once, and to
    hosts under the address that each takes for an event's."""
    labels, topology = view.labels, view.topology
    for number in range(1 << labels.set_bits):
        tree = view.trees.of_set(number)
        row = labels.sets[number] if number < len(labels.sets) else ()
        for chosen in range(1 << len(row)):
            named = {host for i, host in enumerate(row) if chosen >> i & 1}
            address = labels.group(number).first | labels.masks(named).get(number, 0)
            for switch in topology.switches:
                own = view.deliveries.get(switch, NOBODY)
                out = [
                    action.port
                    for flow in met(view.tables[switch], 6, address)
                    for action in flow.actions
                    if action == own.get(action.port, Output(action.port))
                ]
                right = [
                    port
                    for port in range(1, len(topology.neighbours(switch)) + 1)
                    if switch in tree and endpoints_behind(topology, tree, switch, port) & named
                ]
                if sorted(out) != right:
                    return False
    return True


@settings(max_examples=300)
@given(topologies(switches=4, hosts=5), seeds)
def test_the_proof_is_what_every_switch_does_to_every_label(topology: Topology, random: Random) -> None:
    labelling = labelled(topology, random)
    tables = broken(labelling.tables(), labelling, random)
    controller = LabelController(labelling, SCHEMA, EmbeddedNetwork(topology))
    controller.submit(list(requests(topology, random)))
    view = controller.view(tables)
    verdict = verify_labels(view)
    assert verdict.holds == as_they_should(view)
    assert (verdict.witness is None) == verdict.holds
    if verdict.false_negatives:
        assert verdict.witness is not None and verdict.witness.event is not None


@given(topologies(switches=4, hosts=5), seeds)
def test_repair_makes_the_tables_what_they_should_be(topology: Topology, random: Random) -> None:
    labelling = labelled(topology, random)
    network = EmbeddedNetwork(topology)
    controller = LabelController(labelling, SCHEMA, network)
    controller.repair()
    before = controller.tables()
    other = broken(before, labelling, random)
    for switch in topology.switches:
        network.apply(switch, [FlowOp(OpKind.REMOVE, flow) for flow in before[switch]])
        for flow in other[switch]:
            network.apply(switch, [FlowOp(OpKind.INSTALL, flow)])
    repaired = controller.repair()
    after = controller.tables()
    assert {switch: set(table) for switch, table in after.items()} == {
        switch: set(table) for switch, table in before.items()
    }
    assert repaired == 0 or controller.repair() == 0
