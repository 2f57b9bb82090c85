"""Labels through one real switch, against one plain output flow that forwards the same packets, and beside dz.

The switch is one at the edge: eight hosts are at its ports, and 104 others behind a link, over which the packets come.
Each packet names one of the eight, in turn, and some of the others; packets name 1, 100 or 10,000 different sets of
receivers. So every table sends each packet out of one port, and all of them look at the same packets; only the entries
differ. Labels go to hosts as they are, or readdressed to the host's own group, which is what hosts' kernels take.

What Open vSwitch decides about a packet it caches for all packets that agree in what it looked at. To readdress a packet
it looks at the whole address, so that each set is cached by itself, as each event's address is with dz; with `new sets`
no two packets name the same, and each that is readdressed has to be looked up. The processor time is the switch's alone,
and is counted also where others have the machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.bench import Result, at_most, rounded
from benchmarks.bridge import ENCODING, FROM, SWITCH, Bridge, bridge
from benchmarks.forwarding import flood, warm_up
from benchmarks.wire import Sender, decisions, misses
from flowsieve.flow.entry import NOBODY, Deliver, Flow, Output, content_flow
from flowsieve.flow.guard import Guard
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.address import Prefix
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.match import PrefixMatch
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology

SIZE, ROUNDS, FRAMES = 126, 3, 20_000
HOSTS, BEYOND, NAMED_BEYOND = 8, 104, 6
SETS = (1, 100, 10_000)
CELLS = 10_000  # of dz
MASKS = (1, 10, 100, 1_000)
PLAIN, AS_THEY_ARE, READDRESSED = "one plain flow", "as they are", "readdressed"

LOCAL = [f"h{number}" for number in range(1, HOSTS + 1)]
# As the switch is in the lab: what comes over the link comes from a host there.
EDGE = Topology.make([], {FROM: SWITCH, **dict.fromkeys(LOCAL, SWITCH)}, switches=[SWITCH])
# As the controller knows it: its ports have the same numbers.
NETWORK = Topology.make(
    [(SWITCH, "beyond")], dict.fromkeys(LOCAL, SWITCH) | {f"x{n}": "beyond" for n in range(BEYOND)}
)


@dataclass(frozen=True)
class Arm:
    """A table, and what its packets are sent to."""

    flows: Sequence[Flow]
    addresses: Sequence[int]
    group: Prefix


@dataclass(frozen=True)
class Passed:
    """What one arm did in one round."""

    at_saturation: float  # packets a second
    core_us: float  # of the switch, per packet
    decisions: int  # that the switch had cached
    misses: int  # packets for which it had none


def addresses_of(labelling: Labelling, sets: int) -> list[int]:
    """As many packets as are sent, to so many different sets of receivers, each with one host at the switch."""
    random, found = Random(sets), dict[int, None]()
    beyond = [host for host in NETWORK.hosts if host not in LOCAL]
    while len(found) < sets:
        named = [LOCAL[len(found) % HOSTS], *random.sample(beyond, NAMED_BEYOND)]
        (address,) = labelling.labels.addresses(named)
        found[address] = None
    return [*found] * (FRAMES // sets)


def dz_arm(deliveries: Mapping[int, Deliver]) -> Arm:
    """An entry for each of many cells, out of the hosts' ports in turn, and a packet to each and again."""
    ports = [EDGE.port(SWITCH, host) for host in LOCAL]
    cells = [Dz(number, 14) for number in range(CELLS)]
    flows = [content_flow(ENCODING, dz, (ports[dz.bits % HOSTS],), deliveries) for dz in cells]
    addresses = [ENCODING.address_of(dz) | number for dz in cells for number in range(FRAMES // CELLS)]
    return Arm(flows, addresses, ENCODING.tag.group)


def bloom_arm(masks: int) -> Arm:
    """So many filters that are wanted by a host, each with a mask of its own; packets for sixteen of 10,000 others."""
    labels, random = BloomLabels.make(), Random(masks)
    labelling = BloomLabelling.make(NETWORK, labels)
    raise NotImplementedError


def arms() -> dict[str, Arm]:
    last = deliveries_of(EDGE, 6)
    found = {}
    for name, deliveries in ((AS_THEY_ARE, {}), (READDRESSED, last)):
        labelling = Labelling.make(NETWORK, deliveries=deliveries)
        for sets in SETS:
            found[f"{name}, {sets} sets"] = Arm(
                labelling.tables()[SWITCH], addresses_of(labelling, sets), labelling.labels.tag.group
            )
        found[f"dz {name}"] = dz_arm(deliveries.get(SWITCH, NOBODY))
    return found
