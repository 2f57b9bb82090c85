"""The addresses of calls to the controller inside the network; no event and no host has them."""

from __future__ import annotations

from flowsieve.header.address import Prefix

CONTROL_PORT = 7421
# Outside all groups that tags have; and above the groups of the hosts themselves, which count up from
# ff02::f10e:0:0 and 224.128.0.0.
CONTROL_ADDRESSES = {
    4: Prefix.parse("224.128.255.1/32"),
    6: Prefix.parse("ff02::f10e:c0:1/128"),
}
MAX_CALL = 1232  # bytes of a datagram, what every IPv6 link carries in one piece
