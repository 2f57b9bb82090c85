"""The section [control] of a configuration: how the work of control is divided, and who shares it."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.control.shared.servers import Server
from flowsieve.scenario.control_section import CONTROL as CONTROL
from flowsieve.scenario.control_section import KEYS as SHARING_KEYS
from flowsieve.scenario.control_section import read_sharing

ETCD_KEYS = ("name", "node", "lease", "listen", "slice", "balance", "divide_every")
KEYS = (*SHARING_KEYS, "etcd", *ETCD_KEYS)
LARGEST_SLICE = 100_000
LONGEST_LEASE = 60
LONGEST_DIVISION = 86_400  # seconds
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """`etcd` are the servers that hold what controllers share, none where there is one controller.

    `name` tells this network from others in the same etcd, `node` this controller from others of the network; after
    `lease` seconds of silence another takes over from it. The space is divided into `partitions`, if that is said,
    which so many `configurators` of each controller share: they find the one that leads where it `listen`s, decide on
    at most `slice_size` parts of requests as one difference, and hand partitions over as queues grow, if `balance`;
    then it is also looked every `divide_every` seconds how the space is divided.
    """

    etcd: tuple[str, ...] = ()
    name: str = "flowsieve"
    node: str = ""
    lease: int = 1
    partitions: int | None = None
    configurators: int = 1
    listen: str = "127.0.0.1"
    slice_size: int = 500
    balance: bool = True
    divide_every: int = 60

    @property
    def shared_out(self) -> bool:
        """Whether configurators decide on tables."""
        return self.configurators > 1


ALONE = ControlSettings()


def read_control(top: Section) -> ControlSettings:
    """The section, where every key has a default; what depends on etcd is nothing without it."""
    section = top.section(CONTROL)
    section.only(KEYS)
    etcd = _servers(section)
    partitions, configurators = read_sharing(top)
    if configurators > 1 and not etcd:
        right = 'right is etcd = ["127.0.0.1:2379"] too, or configurators = 1'
        section.wrong("configurators", f"who owns which partition is kept in an etcd; {right}")
    for key in ETCD_KEYS:
        if key in section and not etcd:
            section.wrong(
                key, f'{key} is for controllers that share an etcd; right is etcd = ["127.0.0.1:2379"] too'
            )
    lease = section.whole("lease", LONGEST_LEASE)
    if lease == 0:
        section.wrong("lease", f"lease is 0; right is a whole number of seconds from 1 to {LONGEST_LEASE}")
    name = _name(section, "name", top.path.stem if NAME.fullmatch(top.path.stem) else ALONE.name)
    size = section.whole("slice", LARGEST_SLICE)
    if size == 0:
        section.wrong("slice", f"slice is 0; right is a whole number from 1 to {LARGEST_SLICE}")
    balance = section.table.get("balance", ALONE.balance)
    if not isinstance(balance, bool):
        section.wrong("balance", f"balance is {shown(balance)}; right is true or false")
    divide_every = section.whole("divide_every", LONGEST_DIVISION)
    if divide_every == 0:
        right = f"right is a whole number of seconds from 1 to {LONGEST_DIVISION:,}"
        section.wrong("divide_every", f"divide_every is 0; {right}")
    return ControlSettings(
        etcd,
        name,
        _name(section, "node", socket.gethostname()),
        lease or ALONE.lease,
        partitions,
        configurators,
        _listen(section),
        size or ALONE.slice_size,
        bool(balance),
        divide_every or ALONE.divide_every,
    )


def _listen(section: Section) -> str:
    found = section.text("listen", ALONE.listen) or ALONE.listen
    host, colon, port = found.rpartition(":")
    if colon and not (host and port.isdigit() and 0 < int(port) < 1 << 16):
        section.wrong("listen", f"listen is {shown(found)}; right is an address, 127.0.0.1 or 127.0.0.1:7430")
    return found


def _servers(section: Section) -> tuple[str, ...]:
    found = section.table.get("etcd", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        right = 'right is a list of servers, such as ["127.0.0.1:2379"]'
        section.wrong("etcd", f"etcd is {shown(found)}; {right}")
        return ()
    for each in found:
        with section.kept("etcd"):
            Server.parse(each)
    return tuple(found)


def _name(section: Section, key: str, default: str) -> str:
    found = section.text(key, "a")
    if found is not None and not NAME.fullmatch(found):
        section.wrong(
            key, f"{key} is {shown(found)}; right are letters, digits, dots, dashes and underscores"
        )
    return found or default
