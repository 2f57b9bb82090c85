"""Packets walked through the tables one by one, each look-up as the switch does it: for tables of any matches.

The plain twin of `walk_kernel.walk`, which walks tables of prefixes alone, and of `masked_walk.walk_masked`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError
from flowsieve.flow.wiring import Wiring
from flowsieve.southbound.embedded.batch import MAX_COPIES, Batch
from flowsieve.southbound.embedded.switch import Switch


def walk_plainly(
    wiring: Wiring,
    switches: Sequence[Switch],
    family: int,
    packets: Iterable[tuple[int, int, int]],
    hop_limit: int,
    slot_packets: NDArray[np.int64],
) -> Batch:
    """Send packets, each (the slot that it comes in on, source, destination), to its end before the next.

    The switches count what their entries match; what goes from switch to switch is added to `slot_packets`.
    """
    rows, hosts, expired = [0], [], 0
    first, at, far = wiring.first.tolist(), wiring.at.tolist(), wiring.far.tolist()
    for number, (start, source, destination) in enumerate(packets):
        under_way, copies = deque([(start, hop_limit)]), 1
        while under_way:
            came, hops = under_way.popleft()
            switch = switches[at[came]]
            met = switch.met(family, destination, source)
            for flow in met:
                switch.count(flow)
            if any(flow.actions for flow in met) and hops <= 1:
                expired += 1
                continue
            for slot in (first[at[came]] + port - 1 for flow in met for port in flow.ports):
                if slot == came:
                    continue
                if far[slot] < 0:
                    hosts.append(-1 - far[slot])
                    continue
                slot_packets[slot] += 1
                if copies >= MAX_COPIES:
                    raise SwitchError(
                        f"packet {number} multiplies on a loop: {MAX_COPIES:,} copies are under way"
                    )
                under_way.append((far[slot], hops - 1))
                copies += 1
        rows.append(len(hosts))
    return Batch(np.array(rows, np.int64), np.array(hosts, np.int32), expired)
