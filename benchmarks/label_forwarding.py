"""Labels through one real switch: packets a second and the switch's work, against one plain flow and beside dz.

The switch is one at the edge. Eight hosts are at its ports, and 104 others behind a link over which the packets come.
Each packet names one of the eight, in turn, and some of the others. Packets name 1, 100 or 10,000 different sets of
receivers again and again, or each a new one. They go to hosts with their labels, or readdressed to the host's own
group, which is what hosts' kernels take. The plain flow sends the packets out of one port. With dz there are an entry
and a packet for each of 10,000 cells, or many. `copies` are packets that name 2 to 8 of the eight, against a plain flow
with as many ports; `masks` are entries for labels that are Bloom filters, each of another filter.

What Open vSwitch has decided about a packet it caches for all that agree with it where it has looked. To readdress a
packet it looks at the whole address, and where many hosts are behind a port it looks at the bits of all of them: so
each set is cached by itself, as each address is with dz where it is readdressed. Time is the switch's own on a core: it
counts also where others have the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.bench import Result, at_most, rounded
from benchmarks.bridge import ENCODING, FROM, SWITCH, Bridge, bridge
from benchmarks.forwarding import flood, warm_up
from benchmarks.wire import decisions, misses
from flowsieve.flow.entry import NOBODY, NOWHERE, Deliveries, Flow, Output, content_flow
from flowsieve.flow.guard import Guard
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.address import Prefix
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.match import PrefixMatch
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology

SIZE, ROUNDS = 126, 3
FRAMES, NEW = 10_000, 200_000  # packets that are sent again and again, and that are sent once
HOSTS, BEYOND, NAMED_BEYOND = 8, 104, 6
SETS = (1, 100, 10_000)
COPIES = (2, 4, 8)
MASKS, FILTERS = (1, 10, 100, 1_000), 16  # filters that a packet is for
PLAIN, LABELLED, READDRESSED = "one plain flow", "as they are", "readdressed"

LOCAL = [f"h{number}" for number in range(1, HOSTS + 1)]
# As the switch is here: what comes over the link comes from a host at its port.
EDGE = Topology.make([], {FROM: SWITCH, **dict.fromkeys(LOCAL, SWITCH)}, switches=[SWITCH])
# As the controller knows it, with the same ports.
NETWORK = Topology.make(
    [(SWITCH, "beyond")], dict.fromkeys(LOCAL, SWITCH) | {f"x{n}": "beyond" for n in range(BEYOND)}
)
PORTS = tuple(NETWORK.port(SWITCH, host) for host in LOCAL)
assert tuple(EDGE.port(SWITCH, host) for host in LOCAL) == PORTS


@dataclass(frozen=True)
class Arm:
    """A table, and the packets that come to it: again and again, or each `once`."""

    flows: Sequence[Flow]
    addresses: Sequence[int]
    group: Prefix
    once: bool = False
    copies: int = 1  # of each packet
    sources: Sequence[int] = ()


@dataclass(frozen=True)
class Passed:
    """What one arm did in one round."""

    copies_a_second: float
    core_us: float  # of the switch, per copy
    decisions: int  # that the switch had cached
    misses: int  # packets for which it had none, while measured


def addresses_of(labelling: Labelling, sets: int, copies: int = 1) -> list[int]:
    """Packets to so many different sets of receivers, each with some hosts at the switch."""
    random, found = Random(sets), dict[int, None]()
    beyond = [host for host in NETWORK.hosts if host not in LOCAL]
    while len(found) < sets:
        here = [LOCAL[(len(found) + other) % HOSTS] for other in range(copies)]
        (address,) = labelling.labels.addresses([*here, *random.sample(beyond, NAMED_BEYOND)])
        found[address] = None
    return [*found] * max(1, FRAMES // sets)


def label_arms(name: str, deliveries: Deliveries) -> Iterator[tuple[str, Arm]]:
    labelling = Labelling.make(NETWORK, deliveries=deliveries)
    flows, group = labelling.tables()[SWITCH], labelling.labels.tag.group
    for sets in SETS:
        yield f"{sets:,} sets {name}", Arm(flows, addresses_of(labelling, sets), group)
    yield f"new sets {name}", Arm(flows, addresses_of(labelling, NEW), group, once=True)
    for copies in COPIES:
        to = addresses_of(labelling, FRAMES, copies)
        yield f"{FRAMES:,} sets {name}, {copies} copies", Arm(flows, to, group, copies=copies)


def dz_arms(name: str, deliveries: Deliveries) -> Iterator[tuple[str, Arm]]:
    """An entry for each of many cells, out of the hosts' ports in turn, and a packet to each, or many."""
    cells, own = [Dz(number, 14) for number in range(FRAMES)], deliveries.get(SWITCH, NOBODY)
    flows = [content_flow(ENCODING, dz, (PORTS[dz.bits % HOSTS],), own) for dz in cells]
    for what, each in ((f"dz of {FRAMES:,} addresses", 1), ("dz of new addresses", NEW // FRAMES)):
        to = [ENCODING.address_of(dz) | number for number in range(each) for dz in cells]
        yield f"{what} {name}", Arm(flows, to, ENCODING.tag.group, once=each > 1)


def bloom_arms() -> Iterator[tuple[str, Arm]]:
    """Filters that a host wants, each with a mask of its own; a packet is for one of them and for fifteen others."""
    labels = BloomLabels.tuned(FILTERS)
    labelling = BloomLabelling.make(NETWORK, labels)
    patterns = [labels.pattern(f"filter {number}") for number in range(FRAMES)]
    first = next(each for each in labelling.ports if (each.switch, each.port.port) == (SWITCH, PORTS[0]))
    for masks in MASKS:
        random = Random(masks)
        packets = [
            labels.addresses(labels.bits_of([patterns[n % masks], *random.sample(patterns, FILTERS - 1)]))
            for n in range(FRAMES)
        ]
        sources, to = zip(*packets, strict=True)
        flows = labelling.tables({first: patterns[:masks]})[SWITCH]
        yield f"bloom of {masks:,} masks", Arm(flows, to, labels.tag.group, sources=sources)


def plain_arm(copies: int) -> Arm:
    """One entry that sends the same packets out of as many ports, and does nothing else."""
    labelling = Labelling.make(NETWORK)
    group = labelling.labels.tag.group
    flow = Flow(PrefixMatch(group), 1000, tuple(map(Output, PORTS[:copies])))
    return Arm([flow], addresses_of(labelling, FRAMES, copies), group, copies=copies)


def arms() -> dict[str, Arm]:
    last = deliveries_of(EDGE, 6)
    return dict(
        [
            *((f"{PLAIN}, {copies} copies", plain_arm(copies)) for copies in (1, *COPIES)),
            *label_arms(LABELLED, NOWHERE),
            *label_arms(READDRESSED, last),
            *dz_arms(LABELLED, NOWHERE),
            *dz_arms(READDRESSED, last),
            *bloom_arms(),
        ]
    )


def measured(on: Bridge, arm: Arm, decrement: bool) -> Passed:
    frames, guard = on.frames(arm.addresses, SIZE, arm.sources), Guard(arm.group)
    with on.sending(frames) as sender, on.table(arm.flows, decrement, guard):
        if not arm.once:
            warm_up(on, sender, len(arm.addresses))
        missed = misses(on.lab)
        rate, core_us = flood(on, sender)
        return Passed(rate, core_us, decisions(on.lab), misses(on.lab) - missed)


def run() -> Result:
    tried = arms()
    took: dict[str, list[Passed]] = {name: [] for name in tried}
    with bridge(EDGE) as on:
        for _ in range(ROUNDS):
            for name, arm in tried.items():
                took[name].append(measured(on, arm, decrement=not name.startswith(PLAIN)))
    return _result(tried, took)


def _result(tried: Mapping[str, Arm], took: Mapping[str, list[Passed]]) -> Result:
    def ratio(name: str, other: str) -> float:
        """Of the switch's work on a copy: the median of all rounds."""
        pairs = zip(took[name], took[other], strict=True)
        return statistics.median(ours.core_us / theirs.core_us for ours, theirs in pairs)

    def figures(name: str) -> dict[str, float]:
        beside = f"{PLAIN}, {tried[name].copies} copies"
        return {
            "entries": len(tried[name].flows),
            **{
                figure: rounded(statistics.median(getattr(passed, figure) for passed in took[name]))
                for figure in ("copies_a_second", "core_us", "decisions", "misses")
            },
            "core_us_against_one_plain_flow": rounded(ratio(name, beside)),
        }

    ours = {name: figures(name) for name in tried if not name.startswith((PLAIN, "dz"))}
    peers = {name: figures(name) for name in tried if name not in ours}
    many = f"{FRAMES:,} sets"
    return Result(
        "label_forwarding",
        {"bytes": SIZE, "rounds": ROUNDS, **ours},
        peers,
        {
            f"work on a packet of {many}, against dz": at_most(
                ratio(f"{many} {LABELLED}", f"dz of {FRAMES:,} addresses {LABELLED}"), 1.1
            ),
            f"work on a packet of {many}, readdressed, against dz readdressed": at_most(
                ratio(f"{many} {READDRESSED}", f"dz of {FRAMES:,} addresses {READDRESSED}"), 1.1
            ),
            "work on a packet of new sets, readdressed, against dz readdressed": at_most(
                ratio(f"new sets {READDRESSED}", f"dz of new addresses {READDRESSED}"), 1.3
            ),
        },
    )
