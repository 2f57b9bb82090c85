"""The sets of a network's hosts, learned: several starts are tried, and events that they did not see choose."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from flowsieve.content.filter import Filter
from flowsieve.errors import Refused
from flowsieve.flow.host_sets import HostSets
from flowsieve.flow.labelling import Labelling
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.tree import center_tree
from flowsieve.pipeline.planning.holdout import Holdout
from flowsieve.pipeline.receiver_sets.audiences import Numbers
from flowsieve.pipeline.receiver_sets.host_wants import HostWants, sets_of
from flowsieve.pipeline.receiver_sets.learning import SetSizes, neighbour_sets, set_sizes
from flowsieve.pipeline.receiver_sets.spark_sets import (
    Learned,
    PacketCount,
    count_packets,
    learn_on,
)
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces
from flowsieve.scenario.network_section import Network

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEARNED = "learned"  # beside the sets in a file: how they came about
UNCHANGED = "neighbours as they are"  # sets of neighbours, not learned
AT_RANDOM = "random"
CHOOSING = 10  # one in so many of the events that are learned from chooses between the starts
Watched = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, eq=False)
class LearnedSets:
    """Sets of hosts, the start that found them, and how they compare on events that are new to them."""

    sets: HostSets
    start: str
    sizes: SetSizes
    learned: Learned
    tried: Mapping[str, float]  # what each start takes per event, on the events that chose between them
    judged: PacketCount
    entries: Mapping[str, int]  # of the fullest switch

    def to_json(self) -> dict[str, Any]:
        packets, both = self.judged.cost(0.0), self.judged.cost(1.0)
        compared = {"learned": self.start, "neighbours": UNCHANGED, "random": AT_RANDOM}
        return {
            "hosts": sum(map(len, self.sets.sets)),
            "sets": len(self.sets.sets),
            "hosts_per_set": {"most": max(map(len, self.sets.sets)), "room": self.sizes.most},
            "start": self.start,
            "tried": dict(self.tried),
            "learned_on": {
                "events": self.learned.events,
                "wanted_by_several": self.learned.shared,
                "audiences": self.learned.audiences,
                "audiences_used": self.learned.used,
            },
            "judged_on": {"events": self.judged.events, "wanted": self.judged.wanted},
            "packets_per_event": {name: packets[way] for name, way in compared.items()},
            "link_packets_per_event": {name: both[way] - packets[way] for name, way in compared.items()},
            "entries_max": {"learned": self.entries[self.start], "neighbours": self.entries[UNCHANGED]},
        }


def learn_sets(
    network: Network,
    wanted: Sequence[tuple[str, Filter]],
    events: DataFrame,
    rule: Holdout,
    max_sets: int | None,
    links: float,
    watched: Watched,
) -> LearnedSets:
    """Learn which hosts of a network share a set, from what they want and the events that are not held back.

    A packet over a link counts `links` times what one counts that a publisher sends.
    """
    topology, tree = network.topology, center_tree(network.topology)
    hosts = hosts_by_locality(topology, tree)
    sizes = set_sizes(len(hosts), max_sets)
    wants, places = HostWants.of(hosts, wanted), TreePlaces.of(hosts, topology, tree)
    planned_on = rule.planned_on(events)
    chooses = F.pmod(F.xxhash64(F.lit(23), F.col("id")), F.lit(CHOOSING)) == 0
    with watched("learning"):
        learned = learn_on(planned_on.where(~chooses), wants, places, sizes, links)
    ways: dict[str, Numbers] = {UNCHANGED: neighbour_sets(len(hosts), sizes.most), **learned.parts}
    with watched("choosing"):
        tried = count_packets(planned_on.where(chooses), wants, places, ways).cost(links)
    start, entries = _first_that_fits(network, hosts, ways, tried)
    drawn = np.random.default_rng(0).permutation(ways[UNCHANGED])
    with watched("judging"):
        judged_on = rule.judged_on(events) if rule.share else events
        compared = {start: ways[start], UNCHANGED: ways[UNCHANGED], AT_RANDOM: drawn}
        judged = count_packets(judged_on, wants, places, compared)
    sets = HostSets(sets_of(hosts, ways[start]))
    return LearnedSets(sets, start, sizes, learned, tried, judged, entries)


def _first_that_fits(
    network: Network, hosts: tuple[str, ...], ways: Mapping[str, Numbers], cost: Mapping[str, float]
) -> tuple[str, dict[str, int]]:
    """The way that costs least of those whose tables fit, and the entries of the fullest switch."""
    entries: dict[str, int] = {}
    for name in sorted(ways, key=lambda name: cost[name]):
        entries[name] = _most_entries(network, sets_of(hosts, ways[name]))
        if network.capacity is None or entries[name] <= network.capacity:
            entries.setdefault(UNCHANGED, _most_entries(network, sets_of(hosts, ways[UNCHANGED])))
            return name, entries
    raise Refused(
        f"the tables of {len(hosts):,} hosts in sets take {min(entries.values())} entries at the fullest switch, and "
        f"table_capacity is {network.capacity}; fewer sets take fewer entries (--max-sets N), and header 'ipv6' none "
        "for what nobody wants"
    )


def _most_entries(network: Network, sets: tuple[tuple[str, ...], ...]) -> int:
    return max(map(len, _labelled(network, sets).tables().values()))


def _labelled(network: Network, sets: tuple[tuple[str, ...], ...]) -> Labelling:
    return Labelling.make(network.topology, HostSets(sets).assign, partitions=network.host_sets)


def write_sets(path: Path, made: LearnedSets, events: str, rule: Holdout) -> None:
    """Write a file that `sets` in a scenario's `[index]` can name, with how it came about."""
    about = {"start": made.start, "events": events, "held_back": rule.to_json()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made.sets.to_json() | {LEARNED: about}) + "\n")
