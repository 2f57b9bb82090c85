"""The ports of a switch: what it says of them, and how one is fenced.

A fenced port takes in nothing and lets nothing out, whether a cable is plugged in or not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.others import PortSetting
from flowsieve.southbound.openflow.wire import VERSION, ProtocolError

MAX_PORT = ofp.OFPP_MAX  # numbers beyond it are reserved, as the switch's own port
FENCE = ofp.OFPPC_NO_RECV | ofp.OFPPC_NO_FWD
SETTINGS = {
    ofp.OFPPC_NO_RECV: PortSetting.NO_RECEIVE,
    ofp.OFPPC_NO_FWD: PortSetting.NO_FORWARD,
    ofp.OFPPC_PORT_DOWN: PortSetting.DOWN,
}
_PORT = struct.Struct("!IHxx6sxx16sII")
_PORT_MOD = struct.Struct("!BBHII4x6s2xII")
_REQUEST = struct.Struct("!BBHIHH4x")


class Port(NamedTuple):
    """A port as the switch describes it."""

    number: int
    mac: bytes
    name: str
    config: int
    state: int

    @property
    def up(self) -> bool:
        """Whether it can carry packets, fence or no fence."""
        return not (self.config & ofp.OFPPC_PORT_DOWN or self.state & ofp.OFPPS_LINK_DOWN)

    @property
    def setting(self) -> PortSetting:
        set_to = (setting for bit, setting in SETTINGS.items() if self.config & bit)
        return reduce(or_, set_to, PortSetting.OPEN)

    @property
    def fenced(self) -> bool:
        return bool(self.config & FENCE == FENCE)


def ports_in(body: bytes) -> Iterator[Port]:
    """The ports in one part of a switch's answer."""
    at = 0
    while at < len(body):
        if len(body) - at < _PORT.size:
            raise ProtocolError(f"a port is cut off at byte {at} of {len(body)}")
        number, length, mac, name, config, state = _PORT.unpack_from(body, at)
        if length < _PORT.size or at + length > len(body):
            raise ProtocolError(f"a port of length {length} at byte {at} of {len(body)} does not add up")
        if 1 <= number <= MAX_PORT:
            yield Port(number, mac, name.rstrip(b"\0").decode(errors="replace"), config, state)
        at += length


def ports_request(xid: int) -> bytes:
    """Ask for all ports."""
    return _REQUEST.pack(VERSION, ofp.OFPT_MULTIPART_REQUEST, _REQUEST.size, xid, ofp.OFPMP_PORT_DESC, 0)


def port_mod(xid: int, port: Port, closed: bool) -> bytes:
    """Have a port fenced, or opened; the switch wants the port's address too, as a check."""
    config = FENCE if closed else 0
    return _PORT_MOD.pack(
        VERSION, ofp.OFPT_PORT_MOD, _PORT_MOD.size, xid, port.number, port.mac, config, FENCE
    )
