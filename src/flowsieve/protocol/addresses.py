"""Where datagrams go: events and notices to ports, calls in band to addresses that no event has, and no host."""

from __future__ import annotations

from flowsieve.header.address import Prefix

EVENT_PORT = 9559
CONTROL_PORT = 7421
NOTICE_PORT = 7422
# Outside all groups that tags have; and above the groups of the hosts themselves, which count up from
# ff02::f10e:0:0 and 224.128.0.0.
CONTROL_ADDRESSES = {
    4: Prefix.parse("224.128.255.1/32"),
    6: Prefix.parse("ff02::f10e:c0:1/128"),
}
