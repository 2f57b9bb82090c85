"""Laws of labels that are Bloom filters: whoever wants an event gets it, at every moment and with however few bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from networks import topologies
from worlds import EVENTS, SCHEMA, a_filter

from flowsieve.client.bloom_packets import bloom_packets
from flowsieve.content.canonical import canonical
from flowsieve.content.event import EventBatch
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.request import Op, Request
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.covering import Covering
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import LABEL_TABLES, NOBODY, NOWHERE, Flow, Output
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.proof.bloom_verify import verify_bloom
from flowsieve.flow.shares import Shares
from flowsieve.flow.table_chain import met
from flowsieve.flow.tables.bloom_tables import BloomLabelling, PortTable
from flowsieve.header.address import Prefix
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.tag import Tag
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Ticket

seeds = st.integers(0, 2**32 - 1).map(Random)
Tables = Mapping[str, tuple[Flow, ...]]
FEW = BloomLabels(2, Tag(Prefix.parse("ff1d::/125")), Prefix.parse("fd1d::/125"))  # 6 bits in all


def some_labels(random: Random) -> BloomLabels:
    return random.choice([FEW, replace(FEW, k=1), BloomLabels(1), BloomLabels.tuned(4)])


def some_copies(random: Random) -> Shares:
    return Shares(random.randint(1, 4), random.choice([None, 1, 2, 3]))


ENDS = {Op.SUBSCRIBE: Op.UNSUBSCRIBE, Op.ADVERTISE: Op.UNADVERTISE}


def slices(topology: Topology, random: Random) -> Iterator[list[Request]]:
    """Advertisements, then subscriptions that come and go, and now and then an advertisement as well."""
    hosts = list(topology.hosts)
    first = [Request(Op.ADVERTISE, f"a{n}", random.choice(hosts), a_filter(random)) for n in range(5)]
    yield first
    there = {each.id: each for each in first}
    for part in range(random.randint(1, 4)):
        asked = []
        for name in random.sample(list(there), random.randint(0, len(there))):
            if there[name].op is Op.SUBSCRIBE or random.random() < 0.3:
                gone = there.pop(name)
                asked.append(Request(ENDS[gone.op], name, gone.endpoint))
        for n in range(random.randint(0, 6)):
            op = random.choice([Op.SUBSCRIBE] * 5 + [Op.ADVERTISE])
            new = Request(op, f"{op.value}{part}.{n}", random.choice(hosts), a_filter(random))
            there[new.id] = new
            asked.append(new)
        yield asked


def asked_for(controller: BloomController) -> dict[PortTable, set[int]]:
    """What tables without a bound ask for, in the plainest way: the filters that somebody behind a port wants and that
    somebody who is not behind it may publish, without those that another one of these covers."""
    found = {}
    for where in controller.labelling.ports:
        behind = where.port.hosts
        filters = {
            canonical(each.filter): each.filter
            for each in controller.subscriptions.values()
            if each.filter is not None
            and each.endpoint in behind
            and any(
                offer.endpoint not in behind
                and offer.filter is not None
                and offer.filter.overlaps(each.filter)
                for offer in controller.advertisements.values()
            )
        }
        found[where] = {
            controller.labelling.labels.pattern(text)
            for text, filter in filters.items()
            if not any(
                other.covers(filter) and not (filter.covers(other) and text < name)
                for name, other in filters.items()
                if name != text
            )
        }
    return found


def controller_of(topology: Topology, random: Random, capacity: int | None = None) -> BloomController:
    labelling = BloomLabelling.make(topology, some_labels(random))
    network = EmbeddedNetwork(topology)
    made = BloomController(labelling, some_copies(random), SCHEMA, network, capacity)
    made.repair()
    return made


def events_of(controller: BloomController, random: Random) -> tuple[EventBatch, list[dict[str, int]]]:
    """Events that their hosts have advertised, as a batch and one by one."""
    hosts = list(controller.labelling.topology.hosts)
    rows = [(event, random.choice(hosts)) for event in EVENTS]
    offers = controller.advertisements.values()
    rows = [
        (event, host)
        for event, host in rows
        if any(each.endpoint == host and each.holds(event, ()) for each in offers)
    ]
    columns = {name: np.array([event[name] for event, _ in rows], float) for name in SCHEMA.names}
    ids = np.array([str(n) for n in range(len(rows))], dtype=object)
    batch = EventBatch(SCHEMA, ids, np.array([host for _, host in rows], dtype=object), columns)
    return batch, [event for event, _ in rows]


def assert_all_get_what_they_want(controller: BloomController, random: Random) -> None:
    """Each event to all who want it, no packet twice to one; and in no more packets than it may take."""
    network, topology = controller.switches, controller.labelling.topology
    assert isinstance(network, EmbeddedNetwork)
    events, plain = events_of(controller, random)
    sent = bloom_packets(events, controller.held, controller.labelling.labels, controller.copies)
    packets = sent.packets()
    hosts = events.hosts[packets.rows].tolist()
    batch = network.deliver(hosts, packets.hi, packets.lo, packets.family, packets.sources)
    names = list(topology.hosts)
    copies = Counter(zip(batch.event.tolist(), batch.host.tolist(), strict=True))
    assert set(copies.values()) <= {1}
    got = {(int(packets.rows[packet]), names[host]) for packet, host in copies}
    wanted = {
        (row, each.endpoint)
        for row, (event, host) in enumerate(zip(plain, events.hosts, strict=True))
        for each in controller.subscriptions.values()
        if each.endpoint != host and each.holds(event, ())
    }
    assert wanted <= got
    if controller.copies.number is not None:
        assert max(Counter(packets.rows.tolist()).values(), default=0) <= controller.copies.number


@settings(max_examples=50)
@given(topologies(switches=6, hosts=7), seeds)
def test_whoever_wants_an_event_gets_it_and_no_packet_twice(topology: Topology, random: Random) -> None:
    controller = controller_of(topology, random)
    for asked in slices(topology, random):
        assert not controller.submit(asked).refused
        assert_all_get_what_they_want(controller, random)
        verdict = controller.verify()
        assert verdict.holds, verdict.witness
        right = controller.labelling.tables(asked_for(controller))
        assert {switch: set(table) for switch, table in controller.tables().items()} == {
            switch: set(table) for switch, table in right.items()
        }
    assert controller.repair() == 0


class Watched(EmbeddedNetwork):
    """A network that is looked at after each operation."""

    controller: BloomController | None = None

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        whole = Ticket(switch)
        for op in ops:
            ticket = super().apply(switch, [op])
            assert ticket.error is None
            whole.done += 1
            if self.controller is not None:
                assert verify_bloom(self.controller.view()).false_negatives == 0
        return whole


@settings(max_examples=25)
@given(topologies(switches=4, hosts=5), seeds)
def test_tables_know_what_publishers_send_after_each_operation(topology: Topology, random: Random) -> None:
    network = Watched(topology)
    labelling = BloomLabelling.make(topology, some_labels(random))
    fixed = max(map(len, labelling.tables({}).values()))
    capacity = random.choice([None, fixed + random.randint(1, 8)])
    controller = BloomController(labelling, some_copies(random), SCHEMA, network, capacity)
    controller.repair()
    network.controller = controller
    gone: set[str] = set()
    for asked in slices(topology, random):
        due = [each for each in asked if each.op.adding or each.id not in gone]
        gone |= {request.id for request, _ in controller.submit(due).refused}


def merged_to_the_utmost(controller: BloomController, request: Request) -> int:
    """How many entries the fullest switch has, at least, when a request is served as well: one a port, and one that is
    kept free."""
    wanted = BloomController(
        controller.labelling, controller.copies, SCHEMA, EmbeddedNetwork(controller.labelling.topology)
    )
    wanted.repair()
    for op, some in ((Op.ADVERTISE, controller.advertisements), (Op.SUBSCRIBE, controller.subscriptions)):
        wanted.submit([Request(op, each.id, each.endpoint, each.filter) for each in some.values()])
    wanted.submit([request])
    counts = Counter({switch: len(table) for switch, table in controller.labelling.tables({}).items()})
    counts.update(where.switch for where, some in wanted.ports.entries.items() if some)
    return max(counts.values()) + 1


@settings(max_examples=40)
@given(topologies(switches=4, hosts=5), seeds)
def test_entries_are_merged_to_fit_and_what_cannot_fit_is_refused(topology: Topology, random: Random) -> None:
    """No table exceeds its capacity at any moment, and what is served arrives."""
    free = BloomLabelling.make(topology, FEW).tables({})
    capacity = max(map(len, free.values())) + random.randint(0, 8)
    controller = controller_of(topology, random, capacity)
    network = controller.switches
    assert isinstance(network, EmbeddedNetwork)
    gone: set[str] = set()
    for asked in slices(topology, random):
        due = [each for each in asked if each.op.adding or each.id not in gone]
        for request, _ in controller.submit(due).refused:
            gone.add(request.id)
            assert request.op.adding
        assert max(map(network.peak, topology.switches)) <= capacity
        assert_all_get_what_they_want(controller, random)
        assert controller.verify().holds
        more = Request(Op.SUBSCRIBE, "more", random.choice(list(topology.hosts)), a_filter(random))
        if controller.submit([more]).refused:
            assert merged_to_the_utmost(controller, more) > capacity
        else:
            controller.submit([Request(Op.UNSUBSCRIBE, more.id, more.endpoint)])
    for each in list(controller.subscriptions.values()):
        controller.submit([Request(Op.UNSUBSCRIBE, each.id, each.endpoint)])
    assert not controller.leaving
    assert sum(map(len, controller.tables().values())) == sum(map(len, free.values()))


@settings(max_examples=30)
@given(topologies(switches=4, hosts=5), seeds)
def test_a_switch_with_less_room_than_was_said_refuses_and_nothing_is_lost(
    topology: Topology, random: Random
) -> None:
    """Whatever it has done before it refused: the controller goes by what it holds."""
    labelling = BloomLabelling.make(topology, some_labels(random))
    fixed = max(map(len, labelling.tables({}).values()))
    network = EmbeddedNetwork(topology, fixed + random.randint(0, 6))
    said = random.choice([None, fixed + random.randint(5, 12)])
    controller = BloomController(labelling, some_copies(random), SCHEMA, network, said)
    controller.repair()
    gone: set[str] = set()
    for asked in slices(topology, random):
        due = [each for each in asked if each.op.adding or each.id not in gone]
        gone |= {request.id for request, _ in controller.submit(due).refused}
        assert_all_get_what_they_want(controller, random)
        assert controller.verify().false_negatives == 0
        assert controller.repair() == 0


@given(st.lists(seeds, min_size=1, max_size=8), seeds)
def test_each_filter_is_covered_by_one_of_the_widest(randoms: list[Random], random: Random) -> None:
    """Whatever filters came and went before."""
    made = {canonical(each): each for each in map(a_filter, randoms)}
    covering = Covering()
    for _ in range(3):
        filters = {text: made[text] for text in random.sample(list(made), random.randint(1, len(made)))}
        for text in covering.filters.keys() - filters.keys():
            covering.discard(text)
        for text, filter in filters.items():
            covering.add(text, filter)
    widest = {text for text in filters if not covering.above(text)}
    for text, filter in filters.items():
        right = {other for other in filters if other != text and filters[other].covers(filter)}
        same = {other for other in right if filter.covers(filters[other]) and text < other}
        assert covering.above(text) == right - same
        assert covering.below(text) == {other for other in filters if text in covering.above(other)}
        assert text in widest or not widest.isdisjoint(covering.above(text))


def broken(tables: Tables, labelling: BloomLabelling, random: Random) -> Tables:
    """Tables with some entries taken out, changed or added."""
    out = {switch: list(table) for switch, table in tables.items()}
    for _ in range(random.randint(0, 3)):
        switch = random.choice(list(out))
        table, ports = out[switch], range(1, len(labelling.topology.neighbours(switch)) + 1)
        if not table or not ports:
            continue
        at = random.randrange(len(table))
        flow = table[at]
        kind = random.choice(["less", "ports", "bits", "onward", "more", "priority"])
        bits = random.getrandbits(6) & random.getrandbits(6)
        if kind == "less":
            del table[at]
        elif kind == "ports":
            chosen = random.sample(ports, random.randint(0, min(2, len(ports))))
            table[at] = replace(flow, actions=tuple(map(Output, chosen)))
        elif kind == "bits":
            table[at] = replace(flow, match=labelling.labels.match_of(bits))
        elif kind == "onward":
            later = [each for each in LABEL_TABLES[: len(ports) + 1] if each > flow.table]
            table[at] = replace(flow, onward=random.choice([None, *later]))
        elif kind == "priority":
            table[at] = replace(flow, priority=random.choice([999, 1000, 1001, 1002]))
        else:
            match = labelling.labels.match_of(bits)
            table.append(replace(flow, match=match, actions=(Output(random.choice(ports)),)))
        out[switch] = list({each.key: each for each in table}.values())
    return {switch: tuple(table) for switch, table in out.items()}


def faults_of(view: BloomView) -> set[str]:
    """What goes wrong with some of all packets at some switch, found by trying them all."""
    labels, found = view.labelling.labels, set()
    for each in view.labelling.ports:
        behind = each.port.hosts
        texts = frozenset(
            text
            for text in frozenset[str]().union(*(view.held.wanted.get(host, ()) for host in behind))
            if any(
                offer.endpoint not in behind and view.held[text].filter.overlaps(offer.filters[0])
                for offer in view.advertisements
            )
        )
        needs = [view.bits(view.held.with_covers([text]) & texts) for text in texts]
        for bits in range(1 << labels.m):
            source, destination = labels.addresses(bits)
            flows = met(view.tables[each.switch], 6, destination, source)
            right = each.port.action(view.deliveries.get(each.switch, NOBODY))
            sent = [action for flow in flows for action in flow.actions].count(right)
            if sent == 0 and any(not need & ~bits for need in needs):
                found.add("unsent")
            if sent > 1:
                found.add("doubled")
    return found


@settings(max_examples=100)
@given(topologies(switches=4, hosts=5), seeds)
def test_the_proof_sees_what_any_packet_would(topology: Topology, random: Random) -> None:
    deliveries = random.choice([NOWHERE, deliveries_of(topology, 6)])
    labelling = BloomLabelling.make(topology, FEW, deliveries)
    controller = BloomController(labelling, some_copies(random), SCHEMA, EmbeddedNetwork(topology))
    controller.repair()
    for asked in slices(topology, random):
        controller.submit(asked)
    view = controller.view(broken(controller.tables(), labelling, random))
    verdict = verify_bloom(view)
    assert (verdict.witness is None) == verdict.holds
    found = faults_of(view)
    if found:
        assert not verdict.holds
    if verdict.false_negatives:
        assert "unsent" in found
        assert verdict.witness is not None and verdict.witness.event is not None
    assume(not verdict.undecided)
    if "unsent" not in found:
        assert verdict.false_negatives == 0
