"""Labs: bring a network up, find it again from any process, and take it down.

A keeper (see `keeper`) builds and holds each lab, and its directory (see `place`) describes it. Going down ends
the daemons and all that was started on the hosts.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flowsieve.errors import BadInput, LabError, nearest
from flowsieve.header.host_groups import HostAddresses
from flowsieve.lab.blueprint import SWITCHES, Blueprint, namespace_path
from flowsieve.lab.keeper import DESCRIPTION, wait_for_switches
from flowsieve.lab.machine import DATABASE_SCHEMA, carry_out, check_machine, environment
from flowsieve.lab.namespace import entered
from flowsieve.lab.place import BASE, claim, clear, is_locked
from flowsieve.lab.process import ended, held
from flowsieve.network.topology import Link, Topology

BUILD_SECONDS = 120.0
DOWN_SECONDS = 60.0

OPERATOR = ".operator"  # no host is called so


@dataclass(frozen=True, slots=True)
class Lab:
    """A network that is up. `owner` is the process with which it ends, if it has one."""

    name: str
    directory: Path
    topology: Topology
    keeper: int
    owner: int | None = None
    _plan: Blueprint = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_plan", Blueprint(self.topology))

    @property
    def is_up(self) -> bool:
        """Whether the lab is still up."""
        return is_locked(self.directory)

    def bridge(self, switch: str) -> str:
        """The Open vSwitch bridge that is a switch."""
        return self._plan.bridge(switch)

    def datapath_id(self, switch: str) -> int:
        """What a switch calls itself in OpenFlow: its number in the topology, from 1."""
        return self._plan.datapath_id(switch)

    def management(self, switch: str) -> Path:
        """The socket on which a switch takes OpenFlow connections."""
        return self.directory / f"{self.bridge(switch)}.mgmt"

    @property
    def switch_addresses(self) -> dict[str, str]:
        """Where each switch can be dialled."""
        return {switch: f"unix:{self.management(switch)}" for switch in self.topology.switches}

    @property
    def database(self) -> Path:
        """The socket of the switches' database, for `ovs-vsctl --db=unix:…`."""
        return self.directory / "db.sock"

    @property
    def control(self) -> Path:
        """The socket of the switch daemon, for `ovs-appctl -t …`."""
        return self.directory / "ovs-vswitchd.ctl"

    @property
    def requests(self) -> Path:
        """The socket on which the lab's controller takes requests, if it has one."""
        return self.directory / "requests.sock"

    @property
    def operator_token(self) -> str | None:
        """The token that its controller has left for whoever operates it; None if there is none."""
        try:
            return (self.directory / "tokens" / OPERATOR).read_text()
        except OSError:
            return None

    def interface(self, switch: str, neighbour: str) -> str:
        """The switch's end of the wire to a neighbour; it is port `topology.port(switch, neighbour)`."""
        return self._plan.interface(switch, neighbour)

    def namespace(self, host: str) -> Path:
        """A file that opens a host's network namespace."""
        return namespace_path(self.directory, self._plan.namespace(host))

    @property
    def switch_namespace(self) -> Path:
        """A file that opens the namespace in which all bridges are."""
        return namespace_path(self.directory, SWITCHES)

    def addresses(self, host: str) -> HostAddresses:
        """What a host's interface `eth0` answers to."""
        return self._plan.addresses(host)

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        """The command line that runs a command on a host."""
        return ["nsenter", f"--net={self.namespace(host)}", "--", *words]

    def exec(self, host: str, words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command on a host; the options are those of `Popen`. It ends with the lab at the latest."""
        command = self.command(host, words)
        self._check_up()
        return subprocess.Popen(command, **options)

    def inside(self, host: str) -> AbstractContextManager[None]:
        """The calling thread is on a host: sockets that it makes meanwhile stay there."""
        return entered(self.namespace(host))

    def set_link(self, a: str, b: str, up: bool) -> None:
        """Pull or plug the cable between two neighbours; both ends see it."""
        if a in self.topology.hosts:
            a, b = b, a
        words = ["ip", "link", "set", self.interface(a, b), "up" if up else "down"]
        self._check_up()
        with entered(self.switch_namespace):
            carry_out(words, f"the link {a!r} - {b!r} stays as it is")

    def remove_switch(self, switch: str) -> None:
        """Take a switch away for good, with its end of every cable; the neighbours see their ports go down."""
        self._check_up()
        words = ["ovs-vsctl", f"--db=unix:{self.database}", "del-br", self.bridge(switch)]
        with entered(self.switch_namespace):
            for near in self.topology.neighbours(switch):
                cable = ["ip", "link", "set", self.interface(switch, near), "down"]
                subprocess.run(cable, capture_output=True, check=False, env=environment())
            carry_out(words, f"switch {switch!r} stays")

    def set_power(self, switches: Collection[str], on: bool) -> None:
        """Take the power of switches, all at once, or give it back: they come back with all that they held gone."""
        self._check_up()
        words = ["ovs-vsctl", f"--db=unix:{self.database}"]
        for switch in switches:
            # A bridge of a kind that is not to be had is none, and keeps its name and the numbers of its ports.
            words += [
                "--",
                "set",
                "bridge",
                self.bridge(switch),
                f"datapath_type={'netdev' if on else 'none'}",
            ]
        cables = {
            self.interface(switch, near) for switch in switches for near in self.topology.neighbours(switch)
        }
        with entered(self.switch_namespace):
            carry_out(words, f"the power of {', '.join(switches)} stays as it is")
            for cable in sorted(cables):
                carry_out(["ip", "link", "set", cable, "up" if on else "down"], f"{cable} stays as it is")
        if on:
            wait_for_switches(self.directory, map(self.bridge, switches))

    def signal_vswitchd(self, number: signal.Signals) -> None:
        """Send a signal to the daemon that runs all switches, SIGSTOP say."""
        with self._vswitchd() as daemon:
            if daemon is None:
                raise LabError(f"the switches of lab {self.name} are not running")
            signal.pidfd_send_signal(daemon, number)

    def kill_vswitchd(self) -> None:
        """Kill the daemon that runs all switches, and with it their flows; nothing if it is dead already."""
        with self._vswitchd() as daemon:
            if daemon is not None:
                signal.pidfd_send_signal(daemon, signal.SIGKILL)
                if not ended(daemon, DOWN_SECONDS):
                    raise LabError(f"ovs-vswitchd of lab {self.name} does not die")

    def restart_vswitchd(self) -> None:
        """Start the switches again, with no flows; returns when all of them take connections."""
        self.kill_vswitchd()
        with held(self.keeper, str(self.directory)) as keeper:
            if keeper is None:
                raise _gone(self.name)
            signal.pidfd_send_signal(keeper, signal.SIGUSR1)
        wait_for_switches(self.directory, map(self.bridge, self.topology.switches))

    def to_json(self) -> dict[str, Any]:
        """All there is to know, for other programs."""
        topology = self.topology
        return {
            "name": self.name,
            "directory": str(self.directory),
            "keeper": self.keeper,
            "owner": self.owner,
            "database": str(self.database),
            "control": str(self.control),
            "switches": {
                switch: {
                    "bridge": self.bridge(switch),
                    "datapath_id": self.datapath_id(switch),
                    "management": str(self.management(switch)),
                    "ports": {near: topology.port(switch, near) for near in topology.neighbours(switch)},
                }
                for switch in topology.switches
            },
            "links": [[link.a, link.b, link.latency_ms] for link in topology.links],
            "hosts": {
                host: {
                    "switch": switch,
                    "namespace": str(self.namespace(host)),
                    "ipv6": self.addresses(host).ipv6,
                    "ipv4": self.addresses(host).ipv4,
                    "mac": self.addresses(host).mac,
                }
                for host, switch in topology.hosts.items()
            },
        }

    @classmethod
    def read(cls, directory: Path) -> Lab:
        """The lab that a directory describes."""
        try:
            known = json.loads((directory / DESCRIPTION).read_text())
        except (OSError, ValueError):
            raise _gone(directory.name) from None
        links = tuple(Link(*link) for link in known["links"])
        hosts = {host: entry["switch"] for host, entry in known["hosts"].items()}
        topology = Topology(tuple(known["switches"]), links, hosts)
        return cls(known["name"], directory, topology, known["keeper"], known["owner"])

    def _vswitchd(self) -> AbstractContextManager[int | None]:
        try:
            pid = int((self.directory / "ovs-vswitchd.pid").read_text())
        except (OSError, ValueError):
            return contextlib.nullcontext(None)
        return held(pid, f"unix:{self.database}")

    def _check_up(self) -> None:
        if not self.is_up:
            raise _gone(self.name)


def up(topology: Topology, name: str | None = None, *, owner: int | None = None) -> Lab:
    """Bring up a topology; all of it, or an error and nothing.

    The lab stays until it is taken down, or until the process `owner` ends, however that happens.
    """
    check_machine()
    plan = Blueprint(topology)
    directory, lock = claim(name)
    try:
        return _built(plan, Lab(directory.name, directory, topology, keeper=0, owner=owner), lock)
    finally:
        os.close(lock)
        clear(directory)


def down(lab: Lab) -> None:
    """Take a lab down; also one whose processes have died. Nothing of it is left."""
    with held(lab.keeper, str(lab.directory)) as keeper:
        if keeper is not None:
            signal.pidfd_send_signal(keeper, signal.SIGTERM)
            if not ended(keeper, DOWN_SECONDS):
                signal.pidfd_send_signal(keeper, signal.SIGKILL)  # the daemons die with it
                ended(keeper, DOWN_SECONDS)
    clear(lab.directory)


@contextmanager
def running(topology: Topology, name: str | None = None) -> Iterator[Lab]:
    """A lab for the time of a `with` block, and never longer than this process lives."""
    lab = up(topology, name, owner=os.getpid())
    try:
        yield lab
    finally:
        down(lab)


def labs() -> list[Lab]:
    """The labs of this machine, also those that died and were not cleared away."""
    found = []
    for directory in sorted(BASE.iterdir()) if BASE.is_dir() else ():
        with contextlib.suppress(LabError):  # one that is on its way up or down
            found.append(Lab.read(directory))
    return found


def find(name: str) -> Lab:
    """The lab of that name."""
    known = [lab.name for lab in labs()]
    if name not in known:
        there = nearest(name, known) or (f"; there are {', '.join(known)}" if known else "; there is none")
        raise BadInput(f"there is no lab {name!r}{there}")
    return Lab.read(BASE / name)


def _built(plan: Blueprint, lab: Lab, lock: int) -> Lab:
    """The lab, once its keeper has built it; a keeper that cannot tell us so takes it down again."""
    orders = plan.build(lab.directory) | {
        "database_schema": str(DATABASE_SCHEMA),
        "description": lab.to_json(),
        "owner": lab.owner,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsieve.lab.keeper", str(lab.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
        pass_fds=(lock,),
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(orders).encode())
            process.stdin.close()
        if not select.select([process.stdout], [], [], BUILD_SECONDS)[0]:
            raise LabError(f"the lab was not up after {BUILD_SECONDS:.0f} s")
        answer = json.loads(process.stdout.readline() or "{}")
    if "keeper" not in answer:
        raise LabError(f"the lab did not come up: {answer.get('error', 'its keeper ended')}")
    return replace(lab, keeper=answer["keeper"])


def _gone(name: str) -> LabError:
    return LabError(f"lab {name} is not up any more; take it down and up again")
