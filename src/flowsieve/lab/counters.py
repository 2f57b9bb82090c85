"""What the switches of a lab have counted, and whether a packet is still under way.

That nothing arrives proves nothing. But the kernel counts what comes in on the switches' interfaces, and Open
vSwitch counts what it took from them; both count a packet before the one that follows from it. The thread that
forwards also answers questions, between packets: where it has taken all that came in, all went out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from flowsieve.errors import SwitchError
from flowsieve.lab.lab import Lab
from flowsieve.lab.namespace import entered
from flowsieve.lab.vswitchd import packets_taken

PATIENCE_SECONDS = 5.0  # with switches that take no packet
STEP_SECONDS = 0.0005  # between two looks
FIRST_LOOKS = 5
COUNTERS = Path("/proc/thread-self/net/dev")


@dataclass(frozen=True, slots=True)
class PortCount:
    """Packets that came in and went out on an interface of a switch."""

    received: int
    sent: int


class Counters:
    """The counters of a lab's switches."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        # Hosts report their memberships before the switches are up; those packets are never taken.
        self._never_taken = min(self._look()[1] for _ in range(FIRST_LOOKS))

    def read(self) -> dict[str, PortCount]:
        """Each interface, as it is now."""
        with entered(self._lab.switch_namespace):
            lines = COUNTERS.read_text().splitlines()[2:]
        counts = {}
        for line in lines:
            interface, _, figures = line.partition(":")
            words = figures.split()
            counts[interface.strip()] = PortCount(received=int(words[1]), sent=int(words[9]))
        return counts

    def settled(self) -> dict[str, PortCount]:
        """The counts once no packet is under way; raises an error if the switches lose some."""
        last, since = -1, time.monotonic()
        while True:
            counts, waiting, taken = self._look()
            self._never_taken = min(self._never_taken, waiting)
            if waiting == self._never_taken:
                return counts
            if taken != last:
                last, since = taken, time.monotonic()
            elif time.monotonic() > since + PATIENCE_SECONDS:
                lost = waiting - self._never_taken
                raise SwitchError(f"the switches lost {lost} packets that reached them")
            time.sleep(STEP_SECONDS)

    def _look(self) -> tuple[dict[str, PortCount], int, int]:
        """The counts, how many packets came in and were not taken, and how many were taken before that."""
        taken = packets_taken(self._lab)
        counts = self.read()
        return counts, sum(count.received for count in counts.values()) - taken, taken
