"""The section [control] of a configuration: whether the control plane is shared by several controllers, and how."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.control.shared.servers import Server

CONTROL = "control"
KEYS = ("etcd", "name", "node", "lease")
LONGEST_LEASE = 60
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """`etcd` are the servers that hold what controllers share, none where there is one controller.

    `name` tells this network from others in the same etcd, `node` this controller from others of the network; after
    `lease` seconds of silence another takes over from it.
    """

    etcd: tuple[str, ...] = ()
    name: str = "flowsieve"
    node: str = ""
    lease: int = 1


ALONE = ControlSettings()


def read_control(top: Section) -> ControlSettings:
    """The section, where every key has a default; what depends on etcd is nothing without it."""
    section = top.section(CONTROL)
    section.only(KEYS)
    etcd = _servers(section)
    for key in KEYS[1:]:
        if key in section and not etcd:
            section.wrong(
                key, f'{key} is for controllers that share an etcd; right is etcd = ["127.0.0.1:2379"] too'
            )
    lease = section.whole("lease", LONGEST_LEASE)
    if lease == 0:
        section.wrong("lease", f"lease is 0; right is a whole number of seconds from 1 to {LONGEST_LEASE}")
    name = _name(section, "name", top.path.stem if NAME.fullmatch(top.path.stem) else ALONE.name)
    return ControlSettings(etcd, name, _name(section, "node", socket.gethostname()), lease or ALONE.lease)


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
