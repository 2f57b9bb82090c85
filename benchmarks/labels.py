"""Labels that name receivers, or have the bits of filters, against dz: what hosts get unwanted, what links carry, and
what switches hold.

On a fat-tree of 20 switches and 64 hosts, 2,000 subscriptions are spread over the hosts, and four hosts publish
anything. All send the same events. The dz are those of the regular plan, 32 a filter, spent where earlier events fell.
Bloom filters are shared out over as many packets as it takes to have 16 filters in each.
Exact multicast on the same tree is counted from who wants what: for each event, the tree's links on the way to somebody
who wants it. Packets are the same size for all, so packets over links are bytes over links.

With 1,000 hosts on a network of the Topology Zoo there are several sets, and an event takes a packet for each set in
which somebody wants it: sets of neighbours on the tree are compared with sets drawn at random.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import workloads
from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.loads import Load, narrow, zipf
from benchmarks.network import BUDGET, small_fat_tree, subscriptions
from flowsieve.client.batch_packets import Packets, packets_of
from flowsieve.client.bloom_packets import bloom_packets
from flowsieve.client.label_packets import labelled_packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.controller import Controller
from flowsieve.control.label_controller import LabelController
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.deceived import deceived
from flowsieve.flow.labelling import Labelling, SetAssignment
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.graphml import read_graphml
from flowsieve.network.locality import sets_by_locality
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree
from flowsieve.southbound.embedded.network import EmbeddedNetwork

SUBSCRIPTIONS, EVENTS, PUBLISHERS = 2_000, 4_000, 4
SAMPLE = 5_000  # earlier events that the dz are spent on
MOST_ENTRIES = 60  # of a switch
COUNTS = (100, 1_000, 10_000, 100_000)
COUNTS_OF_DZ = (100, 1_000)  # their tables take their time
COUNTS_OF_BLOOM = (100, 1_000, 10_000)  # one after the other
COPIES = Shares(16)
ZOO, ZOO_HOSTS, ZOO_SUBSCRIPTIONS = "Geant2012.graphml", 1_000, 3_000


@dataclass(frozen=True)
class Sent:
    """What became of the events: copies into hosts, wanted or not, and packets over links and from publishers."""

    wanted: int
    unwanted: int
    lost: int
    over_links: int
    packets: int
    entries_max: int

    @property
    def unwanted_per_wanted(self) -> float:
        return self.unwanted / max(1, self.wanted)


def twelve(seed: int, subscriptions: int = SUBSCRIPTIONS) -> workloads.Judged:
    """Boxes on any 4 of 12 attributes around events, each of them wanted by about one event in a thousand."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Attribute(f"a{i}", "float", 0.0, 1.0) for i in range(12)))
    low = rng.random((subscriptions, 12)) * 0.8
    used = np.argsort(rng.random(low.shape), axis=1) < 4
    filters = [
        Filter.parse(
            " and ".join(f"{low[n, i]:.4f} <= a{i} < {low[n, i] + 0.2:.4f}" for i in np.flatnonzero(row)),
            schema,
        )
        for n, row in enumerate(used)
    ]

    def batch(events: int) -> EventBatch:
        ids = np.array([f"e{i}" for i in range(events)], dtype=object)
        columns = {f"a{i}": rng.random(events) for i in range(12)}
        return EventBatch(schema, ids, np.full(events, "", dtype=object), columns)

    return workloads.Judged(schema, tuple(filters), batch(SAMPLE), batch(EVENTS))


def published(later: EventBatch, hosts: Sequence[str]) -> EventBatch:
    """Some of the later events, from each publisher in turn."""
    events = later.take(np.arange(min(EVENTS, len(later))))
    by = np.array([hosts[i * len(hosts) // PUBLISHERS] for i in range(PUBLISHERS)], dtype=object)
    ids = np.array([f"e{i}" for i in range(len(events))], dtype=object)
    return EventBatch(events.schema, ids, by[np.arange(len(events)) % PUBLISHERS], events.columns)


def asked(load: workloads.Judged, hosts: Sequence[str]) -> list[Request]:
    """All publishers may publish anything, and the subscriptions are spread over the hosts."""
    everything = Filter.parse("True", load.schema)
    offers = [
        Request(Op.ADVERTISE, f"a{i}", hosts[i * len(hosts) // PUBLISHERS], everything)
        for i in range(PUBLISHERS)
    ]
    return offers + subscriptions(load.filters, hosts)


def wants(requests: Sequence[Request], events: EventBatch, hosts: Sequence[str]) -> NDArray[np.bool_]:
    """A row per host: which events it wants."""
    number = {host: i for i, host in enumerate(hosts)}
    found = np.zeros((len(hosts), len(events)), np.bool_)
    for request in requests:
        if request.op is Op.SUBSCRIBE and request.filter is not None:
            found[number[request.endpoint]] |= request.filter.matches_batch(events)
    for host in dict.fromkeys(events.hosts.tolist()):
        found[number[host], events.hosts == host] = False
    return found


def exact_links(topology: Topology, tree: SpanningTree, events: EventBatch, wanted: NDArray[np.bool_]) -> int:
    """The tree's links that events cross if each goes just towards those who want it."""
    hosts = list(topology.hosts)
    below: dict[str, set[str]] = {switch: set() for switch in tree.switches}
    for switch in reversed(tree.switches):
        below[switch] |= {host for host in topology.attached_at(switch) if host in topology.hosts}
        if switch in tree.parent:
            below[tree.parent[switch]] |= below[switch]
    crossed = 0
    for _, child in tree.edges:
        inside = np.array([host in below[child] for host in hosts])
        within, beyond = wanted[inside].any(axis=0), wanted[~inside].any(axis=0)
        from_within = np.isin(events.hosts.astype(str), sorted(below[child]))
        crossed += int(np.where(from_within, beyond, within).sum())
    return crossed


def sent(network: EmbeddedNetwork, events: EventBatch, packets: Packets, wanted: NDArray[np.bool_]) -> Sent:
    hosts = events.hosts[packets.rows].tolist()
    batch = network.deliver(hosts, packets.hi, packets.lo, packets.family, packets.sources)
    got = np.zeros_like(wanted)
    got[batch.host, packets.rows[batch.event]] = True
    return Sent(
        int(wanted.sum()),
        int((got & ~wanted).sum()),
        int((wanted & ~got).sum()),
        sum(network.link_packets.values()),
        len(packets.rows),
        max(len(network.read(switch)) for switch in network.topology.switches),
    )


def by_labels(
    topology: Topology,
    requests: Sequence[Request],
    events: EventBatch,
    wanted: NDArray[np.bool_],
    assign: SetAssignment,
) -> tuple[Sent, LabelController]:
    network = EmbeddedNetwork(topology)
    controller = LabelController(Labelling.make(topology, assign), events.schema, network)
    made = controller.repair()
    controller.submit(requests)
    assert controller.operations == made, "a request has changed a table"
    interests = controller.advertisements.values(), controller.subscriptions.values()
    packets = labelled_packets(events, *interests, controller.labelling.labels)
    return sent(network, events, packets, wanted), controller


def by_dz(
    topology: Topology,
    load: workloads.Judged,
    requests: Sequence[Request],
    events: EventBatch,
    wanted: NDArray[np.bool_],
) -> Sent:
    network, encoding = EmbeddedNetwork(topology), encoding_of("ipv6")
    plan = RegularPlan.make(load.schema, room=encoding.room)
    earlier = load.events.take(np.arange(min(SAMPLE, len(load.events))))
    settings = Settings(BUDGET, sample=EventSample.of(plan, earlier))
    controller = Controller(ControlState(topology, plan, settings=settings), network, encoding)
    controller.submit(requests)
    return sent(network, events, packets_of(events, plan, encoding), wanted)


def bloom_controller(topology: Topology, schema: Schema, network: EmbeddedNetwork) -> BloomController:
    labelling = BloomLabelling.make(topology, BloomLabels.tuned(COPIES.filters))
    controller = BloomController(labelling, COPIES, schema, network)
    controller.repair()
    return controller


def by_bloom(
    topology: Topology, requests: Sequence[Request], events: EventBatch, wanted: NDArray[np.bool_]
) -> tuple[Sent, float]:
    """What became of the events, and how many unwanted copies were to be expected."""
    network = EmbeddedNetwork(topology)
    controller = bloom_controller(topology, events.schema, network)
    controller.submit(requests)
    labelling, held = controller.labelling, controller.held
    packets = bloom_packets(events, held, labelling.labels, COPIES)
    expected = deceived(packets.sent(events), len(events), labelling, held, controller.ports.entries)
    return sent(network, events, packets.packets(), wanted), float(expected.sum())


def compared(load: workloads.Judged) -> dict[str, float]:
    """All planes on one workload."""
    topology = small_fat_tree()
    hosts = list(topology.hosts)
    load = workloads.Judged(load.schema, load.filters[:SUBSCRIPTIONS], load.events, load.later)
    requests, events = asked(load, hosts), published(load.later, hosts)
    wanted = wants(requests, events, hosts)
    dz = by_dz(topology, load, requests, events, wanted)
    labels, controller = by_labels(topology, requests, events, wanted, sets_by_locality)
    bloom, expected = by_bloom(topology, requests, events, wanted)
    assert dz.lost == labels.lost == bloom.lost == 0, "what is wanted was lost"
    exact = exact_links(topology, controller.labelling.trees.of_set(0), events, wanted)
    return {
        "wanted_copies_per_event": rounded(labels.wanted / len(events)),
        "unwanted_per_wanted_dz": rounded(dz.unwanted_per_wanted),
        "unwanted_per_wanted_receivers": rounded(labels.unwanted_per_wanted),
        "unwanted_per_wanted_bloom": rounded(bloom.unwanted_per_wanted),
        "predicted_per_wanted_bloom": rounded(expected / max(1, bloom.wanted)),
        "packets_per_event_bloom": rounded(bloom.packets / len(events)),
        "over_links_against_exact_dz": rounded(dz.over_links / exact),
        "over_links_against_exact_receivers": rounded(labels.over_links / exact),
        "over_links_against_exact_bloom": rounded(bloom.over_links / exact),
        "entries_max_dz": dz.entries_max,
        "entries_max_bloom": bloom.entries_max,
        "entries_max_receivers": labels.entries_max,
    }


def held() -> tuple[dict[str, dict[int, int]], float]:
    """Entries of the fullest switch with ever more subscriptions, and operations that one of these took."""
    topology = small_fat_tree()
    hosts, found = list(topology.hosts), dict[int, int]()
    filters = zipf(max(COUNTS_OF_DZ), 1).filters()
    controller = LabelController(Labelling.make(topology), filters[0].schema, EmbeddedNetwork(topology))
    made, there = controller.repair(), 0
    for count in COUNTS:
        some = [filters[i % len(filters)] for i in range(there, count)]
        controller.submit(subscriptions(some, hosts, there))
        there = count
        found[count] = max(map(len, controller.tables().values()))
    took = (controller.operations - made) / there
    by_dz = {}
    for count in COUNTS_OF_DZ:
        plan = RegularPlan.make(filters[0].schema)
        state = ControlState(topology, plan, settings=Settings(BUDGET))
        everything = Filter.parse("True", filters[0].schema)
        state.step([Request(Op.ADVERTISE, "a", hosts[0], everything), *subscriptions(filters[:count], hosts)])
        by_dz[count] = max(len(state.table(switch)) for switch in topology.switches)
    return {"receivers": found, "dz": by_dz}, took


def followed(made: Callable[[int, int], Load]) -> dict[str, dict[int, float]]:
    """What filters in tables cost, subscribed to one after the other: entries of the fullest switch, operations and
    milliseconds of a subscription (of processor time, with the embedded switches' part), so far."""
    topology = small_fat_tree()
    hosts, filters = list(topology.hosts), made(max(COUNTS_OF_BLOOM), 1).filters()
    controller = bloom_controller(topology, filters[0].schema, EmbeddedNetwork(topology))
    everything = Filter.parse("True", filters[0].schema)
    controller.submit([Request(Op.ADVERTISE, f"a{i}", hosts[i * 16], everything) for i in range(PUBLISHERS)])
    entries, operations, milliseconds = dict[int, float](), dict[int, float](), dict[int, float]()
    before, start = controller.operations, time.process_time()
    for number, request in enumerate(subscriptions(filters, hosts), 1):
        controller.submit([request])
        if number in COUNTS_OF_BLOOM:
            milliseconds[number] = rounded(1000 * (time.process_time() - start) / number)
            operations[number] = rounded((controller.operations - before) / number)
            entries[number] = max(map(len, controller.tables().values()))
    return {
        "entries_of_the_fullest_switch": entries,
        "operations_of_a_subscription": operations,
        "milliseconds_of_a_subscription": milliseconds,
    }


def zoo() -> dict[str, float]:
    """Packets per event with more hosts than bits, by sets of neighbours and by sets drawn at random."""
    switches, links = read_graphml(workloads.DATA / "topologies" / ZOO)
    dice = Random(1)
    topology = Topology.make(links, {f"h{i}": dice.choice(switches) for i in range(ZOO_HOSTS)}, switches)
    topology = Topology.make(
        links, {host: switch for host, switch in topology.hosts.items() if topology.reachable(host)}, switches
    )
    hosts = list(topology.hosts)
    load = twelve(7)
    load = workloads.Judged(load.schema, load.filters * 2, load.events, load.later)
    load = workloads.Judged(load.schema, load.filters[:ZOO_SUBSCRIPTIONS], load.events, load.later)
    requests, events = asked(load, hosts), published(load.later, hosts)
    wanted = wants(requests, events, hosts)

    def at_random(topology: Topology, tree: SpanningTree, most: int) -> tuple[tuple[str, ...], ...]:
        drawn = Random(2).sample(hosts, len(hosts))
        return tuple(tuple(drawn[at : at + most]) for at in range(0, len(drawn), most))

    found: dict[str, float] = {"hosts": len(hosts), "switches": len(topology.switches)}
    for name, assign in (("locality", sets_by_locality), ("random", at_random)):
        sent_by, controller = by_labels(topology, requests, events, wanted, assign)
        assert sent_by.lost == sent_by.unwanted == 0
        exact = exact_links(topology, controller.labelling.trees.of_set(0), events, wanted)
        found |= {
            "sets": len(controller.labelling.labels.sets),
            f"packets_per_event_by_{name}": rounded(sent_by.packets / len(events)),
            f"over_links_against_exact_by_{name}": rounded(sent_by.over_links / exact),
            f"entries_max_by_{name}": sent_by.entries_max,
        }
    return found


def run() -> Result:
    loads = {"zipfsel": workloads.zipfsel, **workloads.REAL, "any 4 of 12 attributes": twelve}
    by_load = {name: compared(made(1)) for name, made in loads.items()}
    entries, took = held()
    figures: dict[str, Any] = {
        "loads": by_load,
        "entries_of_the_fullest_switch": entries,
        "bloom_one_after_the_other": {"hotspots": followed(zipf), "narrow boxes": followed(narrow)},
        "subscriptions": SUBSCRIPTIONS,
        "events": EVENTS,
        "dz_per_filter": BUDGET,
    }
    if workloads.DATA.exists():
        figures["more_hosts_than_bits"] = zoo()
    rows = by_load.values()
    goals: dict[str, Goal] = {
        "unwanted copies into hosts, receivers": at_most(
            max(row["unwanted_per_wanted_receivers"] for row in rows), 0
        ),
        "packets over links against exact multicast on the same tree, receivers": at_most(
            max(row["over_links_against_exact_receivers"] for row in rows), 1.02
        ),
        "entries of the fullest switch, 100 to 100,000 subscriptions": at_most(
            max(entries["receivers"].values()), MOST_ENTRIES
        ),
        "flow operations of a subscription": at_most(took, 0),
    }
    return Result("labels", figures, {}, goals)
