"""A packet's headers say who sent it, and a lying one says nothing."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.lib.packet import arp, ethernet, ipv4, ipv6, udp
from os_ken.lib.packet.packet import Packet

from flowsieve.errors import BadMessage
from flowsieve.network.frame_sender import FrameSender, sender

MAC = "02:00:00:00:00:07"


def frame(*protocols: object, ethertype: int, source: str = MAC) -> bytes:
    packet = Packet()
    packet.add_protocol(ethernet.ethernet("33:33:00:00:00:01", source, ethertype))
    for each in protocols:
        packet.add_protocol(each)
    packet.serialize()
    return bytes(packet.data)


def test_the_sender_of_ipv6_ipv4_and_arp_is_known_by_mac_and_address() -> None:
    six = frame(ipv6.ipv6(src="fd00:f::7", dst="ff02::1", nxt=17), udp.udp(), ethertype=0x86DD)
    four = frame(ipv4.ipv4(src="10.0.0.7", dst="224.0.0.1", proto=17), udp.udp(), ethertype=0x0800)
    who = frame(arp.arp(src_mac=MAC, src_ip="10.0.0.7", dst_ip="10.0.0.8"), ethertype=0x0806)
    assert sender(six) == FrameSender(MAC, "fd00:f::7")
    assert sender(four) == sender(who) == FrameSender(MAC, "10.0.0.7")


@pytest.mark.parametrize("address", ["::", "ff02::1", "::1"])
def test_an_address_that_can_be_nobodys_own_is_left_out(address: str) -> None:
    data = frame(ipv6.ipv6(src=address, dst="ff02::1", nxt=17), udp.udp(), ethertype=0x86DD)
    assert sender(data) == FrameSender(MAC, None)


@pytest.mark.parametrize("source", ["33:33:00:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"])
def test_a_packet_from_a_group_or_from_nobody_is_refused(source: str) -> None:
    with pytest.raises(BadMessage, match=source):
        sender(frame(ethertype=0x88B5, source=source))


def test_a_packet_that_is_cut_off_says_no_address() -> None:
    data = frame(ipv6.ipv6(src="fd00:f::7", dst="ff02::1", nxt=17), udp.udp(), ethertype=0x86DD)
    assert sender(data[:50]) == FrameSender(MAC, None)
    with pytest.raises(BadMessage, match="13 bytes"):
        sender(data[:13])


@given(st.binary(max_size=100))
def test_random_bytes_make_a_sender_or_an_error(data: bytes) -> None:
    with contextlib.suppress(BadMessage):
        found = sender(data)
        assert found.mac == data[6:12].hex(":")
        if found.address is not None:
            assert ipaddress.ip_address(found.address).packed in data
