"""Which packets are handed to the controller."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadInput
from flowsieve.flow.punt import FRAMES_OF_A_PORT, LLDP, Punt, with_ports
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build

CALLS = {4: Punt.to("224.128.255.1", 7421, rate=10), 6: Punt.to("ff02::f10e:c0:1", 7421, rate=10)}


def packet(family: int, *, port: int = 7421, off: int = 0) -> bytes:
    """A datagram; `off` is added to the address that is handed over."""
    destination = CALLS[family].destination
    assert destination is not None
    size = destination.width // 8
    source = bytes(size - 1) + b"\1"
    return build(
        UdpFrame(bytes(6), bytes(6), source, (destination.first + off).to_bytes(size), 9, port, b"x")
    )


@pytest.mark.parametrize("family", [4, 6])
def test_datagrams_to_the_port_and_address_are_taken_and_no_others(family):
    punt = CALLS[family]
    assert punt.takes(packet(family), 1)
    assert not punt.takes(packet(family, port=7422), 1)
    assert not punt.takes(packet(family, off=1), 1)
    assert not punt.takes(packet(10 - family), 1)


@pytest.mark.parametrize("family", [4, 6])
def test_what_is_no_whole_datagram_is_not_taken(family):
    whole = packet(family)
    proto = 14 + (6 if family == 6 else 9)
    assert not CALLS[family].takes(whole[:proto] + b"\6" + whole[proto + 1 :], 1)
    assert not any(CALLS[family].takes(whole[:end], 1) for end in range(14 + (43 if family == 6 else 23)))


def test_a_fragment_is_not_taken():
    whole = packet(4)
    assert not CALLS[4].takes(whole[:20] + b"\x20\0" + whole[22:], 1)


def test_packets_of_a_type_are_taken_whatever_is_in_them():
    assert Punt.of_type(LLDP, rate=1).takes(bytes(12) + b"\x88\xcc", 1)
    assert not Punt.of_type(LLDP, rate=1).takes(bytes(12) + b"\x88\xcd", 1)
    assert not Punt.of_type(LLDP, rate=1).takes(b"", 1)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Punt.to("ff02::/16", 7421, rate=1), "right is a whole address with a UDP port"),
        (lambda: Punt.to("ff02::1", 0, rate=1), "port 0"),
        (lambda: Punt.to("ff02::1", 1 << 16, rate=1), "port 65536"),
        (lambda: Punt.to("ff02::1", 7421, rate=0), "0 packets a second"),
        (lambda: Punt.of_type(0x100, rate=1), "0x100 is no type"),
        (lambda: Punt(0x800, Prefix.parse("ff02::1"), 1, 1), "type 0x800 to ff02::1/128"),
        (lambda: Punt(LLDP, None, 7421, 1), "port 7421"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(make, what):
    with pytest.raises(BadInput, match=what):
        make()


def test_an_entry_that_names_a_port_is_for_what_comes_in_there_and_comes_first() -> None:
    punt = CALLS[6].at(3)
    assert punt.takes(packet(6), 3)
    assert not punt.takes(packet(6), 4)
    assert punt.priority > CALLS[6].priority
    assert punt.key != CALLS[6].key
    with pytest.raises(BadInput, match="port -1"):
        CALLS[6].at(-1)


def test_calls_have_a_limit_for_each_host_and_frames_a_small_one_for_each_port() -> None:
    lldp, few = Punt.of_type(LLDP, rate=1000), Punt.of_type(LLDP, rate=FRAMES_OF_A_PORT)
    calls = CALLS[6]
    assert with_ports([lldp, calls], [2, 5]) == (lldp, calls, calls.at(2), few.at(2), calls.at(5), few.at(5))
    assert with_ports([lldp, calls], [2], [1]) == (lldp, calls, calls.at(2), few.at(2), few.at(1))
    slow = Punt.of_type(LLDP, rate=3)
    assert with_ports([slow], [], [1]) == (slow, slow.at(1))


@pytest.mark.parametrize("group", ["ff0e::/16", "225.128.0.0/9"])
def test_of_a_group_all_addresses_are_taken_and_no_others(group):
    prefix = Prefix.parse(group)
    punt, size = Punt.within(prefix, 9559, rate=1), prefix.width // 8
    last = prefix.first + (1 << prefix.width - prefix.length) - 1

    def to(address: int, port: int = 9559) -> bytes:
        source, destination = bytes(size - 1) + b"\1", address.to_bytes(size)
        return build(UdpFrame(bytes(6), bytes(6), source, destination, 9, port, b"x"))

    assert all(punt.takes(to(address), 1) for address in (prefix.first, prefix.first + 5, last))
    assert not any(punt.takes(to(address), 1) for address in (prefix.first - 1, last + 1))
    assert not punt.takes(to(prefix.first, port=9560), 1)
    assert not any(punt.takes(to(prefix.first)[:end], 1) for end in range(38 if size == 16 else 34))


def test_late_events_are_handed_over_at_hosts_ports_alone() -> None:
    late = Punt.within(Prefix.parse("ff0e::/16"), 9559, rate=1)
    assert with_ports([late, CALLS[6]], [2], [1]) == (CALLS[6], late.at(2), CALLS[6].at(2))
