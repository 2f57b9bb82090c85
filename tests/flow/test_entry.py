"""Entries, and what they do to packets for hosts."""

import pytest

from flowsieve.errors import BadInput
from flowsieve.flow.diff import Change, OpKind, flow_op
from flowsieve.flow.entry import Deliver, Flow, Output, content_flow
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.header.match import PrefixMatch
from flowsieve.index.dz import Dz

ENCODING = encoding_of("ipv6")
HOSTS = {port: Deliver(port, 0x333300000000 + port, Prefix(6, 0xFF02 << 112 | port, 128)) for port in (2, 4)}


def test_deliveries_come_after_plain_outputs_each_in_the_order_of_ports():
    flow = content_flow(ENCODING, Dz.parse("110"), (1, 2, 3, 4, 5), HOSTS)
    assert flow.actions == (Output(1), Output(3), Output(5), HOSTS[2], HOSTS[4])
    assert flow.ports == (1, 2, 3, 4, 5)
    assert flow.flaw is None


def test_only_ports_of_the_entry_are_delivered_to():
    assert content_flow(ENCODING, Dz.parse("1"), (1, 4), HOSTS).actions == (Output(1), HOSTS[4])
    assert content_flow(ENCODING, Dz.parse("1"), (1, 3), HOSTS) == content_flow(
        ENCODING, Dz.parse("1"), (1, 3)
    )


def test_an_operation_brings_the_deliveries_along():
    op = flow_op(Change(Dz.parse("1"), (1,), (1, 2)), ENCODING, HOSTS)
    assert (op.kind, op.flow.actions) == (OpKind.MODIFY, (Output(1), HOSTS[2]))


@pytest.mark.parametrize(
    ("mac", "address"),
    [(1 << 48, "ff02::1/128"), (-1, "ff02::1/128"), (0, "ff02::/16"), (0, "224.128.0.0/31")],
)
def test_a_delivery_needs_a_whole_address(mac, address):
    with pytest.raises(BadInput, match="right are a MAC address of 48 bits and a whole IP address"):
        Deliver(1, mac, Prefix.parse(address))


def test_what_a_new_destination_would_spoil_is_a_flaw():
    match = PrefixMatch(Prefix.parse("ff0e::/16"))
    assert "comes after a delivery" in str(Flow(match, 1, (HOSTS[2], Output(1))).flaw)
    other = Deliver(1, 0, Prefix.parse("224.128.0.1/32"))
    assert "right is the same family" in str(Flow(match, 1, (other,)).flaw)
    assert Flow(match, 1, (Output(1), HOSTS[2]), onward=16).flaw is None  # it goes on as it came


def test_packets_go_on_in_later_tables_only():
    with pytest.raises(BadInput, match="go on in table 16; right is a later one"):
        Flow(PrefixMatch(Prefix.parse("ff1e::/16")), 1, (), table=16, onward=16)
