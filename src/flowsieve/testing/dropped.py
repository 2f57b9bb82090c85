"""Packets that the machine under a lab dropped, and where: what was lost there, no controller has to answer for.

A switch takes packets from a queue of each of its ports. The queue is short, and where the thread that forwards gets no
processor for a second it overflows: the kernel counts what it then drops, port by port.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowsieve.errors import LabError
from flowsieve.lab.lab import Lab
from flowsieve.lab.machine import environment
from flowsieve.lab.namespace import entered
from flowsieve.lab.vswitchd import undecided

QUEUE = re.compile(r"^p_raw .*?\*:(\S+)\s.*?skmem:\([^)]*\bd(\d+)\)", re.MULTILINE | re.DOTALL)
METERED = re.compile(r"^0: packet_count:(\d+)", re.MULTILINE)
HOST_COUNTERS = ("snmp", "snmp6")


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many packets were dropped in a lab, from one moment to another, or since it came up.

    `queues` are those of the switches' ports, by interface; `decisions` were packets that a switch could not decide
    on; `hosts` those that came to a host whose applications did not read them in time; `limits` those above the rate
    that a switch's meters allow, which is what meters are for.
    """

    queues: Mapping[str, int] = field(default_factory=dict)
    decisions: int = 0
    hosts: int = 0
    limits: int = 0

    @property
    def by_machine(self) -> int:
        """Those that a faster machine would have carried."""
        return sum(self.queues.values()) + self.decisions + self.hosts

    def since(self, before: Dropped) -> Dropped:
        """What was dropped after another look; counters of switches that were started anew began at 0."""
        return Dropped(
            {
                port: more
                for port, count in self.queues.items()
                if (more := _more(count, before.queues.get(port, 0)))
            },
            _more(self.decisions, before.decisions),
            _more(self.hosts, before.hosts),
            _more(self.limits, before.limits),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "queues of ports": dict(self.queues),
            "decisions": self.decisions,
            "hosts": self.hosts,
            "limits": self.limits,
        }


def dropped(lab: Lab) -> Dropped:
    """All that was dropped in a lab so far."""
    return Dropped(
        queue_drops(lab),
        undecided(lab),
        sum(_at_host(lab, host) for host in lab.topology.hosts),
        sum(_limited(lab, switch) for switch in lab.topology.switches),
    )


def queue_drops(lab: Lab) -> dict[str, int]:
    """What the queue of each port has dropped since its switch has it; no port is left out."""
    with entered(lab.switch_namespace):
        done = subprocess.run(["ss", "-0", "-m", "-n"], capture_output=True, text=True, env=environment())
    found: dict[str, int] = {}
    for interface, count in QUEUE.findall(done.stdout):
        found[interface] = found.get(interface, 0) + int(count)
    if not found:
        raise LabError(
            f"ss does not tell what the ports of lab {lab.name} dropped: {done.stderr.strip() or 'nothing'}"
        )
    return found


def _at_host(lab: Lab, host: str) -> int:
    """What applications of a host did not read in time."""
    with lab.inside(host):
        texts = [Path("/proc/thread-self/net", name).read_text() for name in HOST_COUNTERS]
    return _udp4(texts[0]) + _udp6(texts[1])


def _udp4(text: str) -> int:
    names, counts = (line.split()[1:] for line in text.splitlines() if line.startswith("Udp:"))
    return int(counts[names.index("RcvbufErrors")])


def _udp6(text: str) -> int:
    return int(dict(line.split() for line in text.splitlines()).get("Udp6RcvbufErrors", 0))


def _limited(lab: Lab, switch: str) -> int:
    if not lab.management(switch).exists():
        return 0  # it was taken away
    words = ["ovs-ofctl", "-O", "OpenFlow14", "meter-stats", f"unix:{lab.management(switch)}"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise LabError(f"switch {switch!r} does not tell what its meters dropped: {done.stderr.strip()}")
    return sum(map(int, METERED.findall(done.stdout)))


def _more(count: int, before: int) -> int:
    return count - before if count >= before else count
