"""A topology as numbers, for what follows packets through compiled code.

Switches and hosts are counted from 0 in the topology's order. The ports of all switches are counted through
as *slots*: port p of switch s is slot `first[s] + p - 1`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.network.topology import Topology

HOP_LIMIT = 64  # what a packet starts with; every switch takes one, and none forwards the last


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """Where each port leads.

    `far[slot]` is the slot at the other end of the link, or `-1 - h` where host h is; `at[slot]` is the
    slot's own switch, and `home[h]` the slot of host h.
    """

    switches: tuple[str, ...]
    hosts: tuple[str, ...]
    first: NDArray[np.int64]
    at: NDArray[np.int32]
    far: NDArray[np.int32]
    home: NDArray[np.int32]

    @classmethod
    def of(cls, topology: Topology) -> Wiring:
        switches, hosts = topology.switches, tuple(topology.attached)
        rows = [topology.neighbours(switch) for switch in switches]
        first = np.cumsum([0, *map(len, rows)])
        slot = {
            (switch, near): int(first[s]) + i
            for s, (switch, row) in enumerate(zip(switches, rows, strict=True))
            for i, near in enumerate(row)
        }
        number = {host: h for h, host in enumerate(hosts)}
        far = [-1 - number[near] if near in number else slot[near, switch] for switch, near in slot]
        return cls(
            switches=switches,
            hosts=hosts,
            first=first.astype(np.int64),
            at=np.repeat(np.arange(len(switches), dtype=np.int32), np.diff(first)),
            far=np.array(far, dtype=np.int32),
            home=np.array([slot[switch, host] for host, switch in topology.attached.items()], dtype=np.int32),
        )

    @property
    def slots(self) -> int:
        return len(self.far)

    def ports(self, switch: int) -> int:
        """How many ports a switch has."""
        return int(self.first[switch + 1] - self.first[switch])

    def near(self, slot: int) -> str:
        """The name of the switch that a slot is on."""
        return self.switches[int(self.at[slot])]

    def beyond(self, slot: int) -> str:
        """The name of the switch or host that a slot leads to."""
        far = int(self.far[slot])
        return self.near(far) if far >= 0 else self.hosts[-1 - far]
