"""What links carry where each set of receivers has a tree of its own, against all hosts in one set on one tree.

64 hosts on a fat-tree of 20 switches and on a network of the Topology Zoo, 2,000 subscriptions, and every host
publishes. Each of several sets takes a packet of its own for an event that somebody in it wants; in turn the sets go
along different links. So it pays where events are for few hosts, and costs where they are for hosts of all sets.
Counted are packets from publishers, over all links, and over the busiest link one way.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.labels import EVENTS, SUBSCRIPTIONS, ZOO, sent, twelve, wants
from benchmarks.network import small_fat_tree, subscriptions
from flowsieve.client.label_packets import labelled_packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.label_controller import LabelController
from flowsieve.control.request import Op, Request
from flowsieve.flow.labelling import Labelling
from flowsieve.network.graphml import read_graphml
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

PARTITIONS = (1, 4, 16)
HOSTS = 64
MOST_BUSY = {"fat-tree": 0.5, ZOO: 0.85}  # where events are for few hosts; where they are for most, sets cost


def zoo() -> Topology:
    switches, links = read_graphml(workloads.DATA / "topologies" / ZOO)
    whole = Topology.make(links, {}, switches)
    there, dice = sorted(whole.main), Random(1)
    return Topology.make(links, {f"h{i}": dice.choice(there) for i in range(HOSTS)}, switches)


def everybody(later: EventBatch, hosts: list[str]) -> EventBatch:
    """Some events, published by all hosts in turn."""
    events = later.take(np.arange(min(EVENTS, len(later))))
    ids = np.array([f"e{i}" for i in range(len(events))], dtype=object)
    by = np.array(hosts, dtype=object)[np.arange(len(events)) % len(hosts)]
    return EventBatch(events.schema, ids, by, events.columns)


def carried(topology: Topology, load: workloads.Judged) -> dict[str, dict[str, float]]:
    """What is sent and carried with ever more sets."""
    hosts = list(topology.hosts)
    events, everything = everybody(load.later, hosts), Filter.parse("True", load.schema)
    requests = [Request(Op.ADVERTISE, f"a{host}", host, everything) for host in hosts]
    requests += subscriptions(load.filters[:SUBSCRIPTIONS], hosts)
    wanted = wants(requests, events, hosts)
    found = {}
    for partitions in PARTITIONS:
        network = EmbeddedNetwork(topology)
        labelling = Labelling.make(topology, partitions=partitions)
        controller = LabelController(labelling, load.schema, network)
        controller.repair()
        controller.submit(requests)
        interests = controller.advertisements.values(), controller.subscriptions.values()
        packets = labelled_packets(events, *interests, labelling.labels)
        came = sent(network, events, packets, wanted)
        assert came.lost == came.unwanted == 0 and controller.verify().holds
        loads = sorted(network.link_packets.values(), reverse=True)
        found[str(partitions)] = {
            "wanted_copies_per_event": rounded(came.wanted / len(events)),
            "packets_per_event": rounded(came.packets / len(events)),
            "over_links_per_event": rounded(came.over_links / len(events)),
            "busiest_link_per_event": rounded(loads[0] / len(events)),
            "links_used": sum(load > 0 for load in loads),
            "links": len(loads),
            "entries_max": came.entries_max,
        }
    return found


def run() -> Result:
    loads = {"hotspots": workloads.zipfsel(1), "any 4 of 12 attributes": twelve(1)}
    networks = {"fat-tree": small_fat_tree(HOSTS)} | ({ZOO: zoo()} if workloads.DATA.exists() else {})
    figures: dict[str, Any] = {
        name: {network: carried(topology, load) for network, topology in networks.items()}
        for name, load in loads.items()
    }

    def against_one(load: str, network: str) -> float:
        rows = figures[load][network]
        share: float = rows["16"]["busiest_link_per_event"] / rows["1"]["busiest_link_per_event"]
        return share

    goals: dict[str, Goal] = {
        f"busiest link of {network}, any 4 of 12 attributes: 16 sets against one": at_most(
            against_one("any 4 of 12 attributes", network), bound
        )
        for network, bound in MOST_BUSY.items()
        if network in networks
    }
    return Result("set_trees", figures, {}, goals)
