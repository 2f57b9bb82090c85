"""What several controllers are to one switch: equals, or a master, who alone may change it, and slaves.

A controller that asks to be the master names a generation id. The switch refuses one that is older than the last it
was given, and makes the old master a slave; it keeps the id when all of them are gone, until it restarts.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp

NO_CHANGE, MASTER, SLAVE = ofp.OFPCR_ROLE_NOCHANGE, ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE
NO_GENERATION = 0xFFFFFFFFFFFFFFFF
_HEADER = struct.Struct("!BBHI")
_BODY = struct.Struct("!I4xQ")  # role and generation id; in a status the reason lies between them


class RoleReply(NamedTuple):
    """What we are to the switch, and the generation id of the last master; None if there never was one."""

    role: int
    generation: int | None


class RoleStatus(NamedTuple):
    """The switch has given us another role: somebody else is the master, by that generation id if it says so."""

    role: int
    generation: int | None


def role_request(xid: int, role: int, generation: int = 0) -> bytes:
    """Ask for a role; with `NO_CHANGE`, which one we have."""
    size = _HEADER.size + _BODY.size
    return _HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_ROLE_REQUEST, size, xid) + _BODY.pack(role, generation)


def role_and_generation(message: bytes) -> tuple[int, int | None]:
    """What a role reply or a role status says."""
    role, generation = _BODY.unpack_from(message, _HEADER.size)
    return role, generation if generation != NO_GENERATION else None
