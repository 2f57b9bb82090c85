"""Datagrams as bytes and back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from os_ken.lib.packet import ethernet, ipv4, ipv6, packet, udp

from flowsieve.errors import BadChecksum, BadMessage
from flowsieve.header.frame import UdpFrame, build, parse

ports = st.integers(0, 0xFFFF)
macs = st.binary(min_size=6, max_size=6)


@st.composite
def frames(draw: st.DrawFn, most: int = 1500, finished: bool = True) -> UdpFrame:
    addresses = st.binary(min_size=(size := draw(st.sampled_from([4, 16]))), max_size=size)
    return UdpFrame(
        draw(macs),
        draw(macs),
        draw(addresses),
        draw(addresses),
        draw(ports),
        draw(ports),
        draw(st.binary(max_size=most)),
        draw(st.integers(0, 255)),
        finished,
    )


@given(frames(), st.binary(max_size=40))
def test_what_was_built_is_read_back_whatever_a_card_puts_behind_it(frame, padding):
    assert parse(build(frame) + padding) == frame


@given(frames(finished=False))
def test_a_checksum_that_a_host_left_to_its_card_is_told_from_one_that_is_wrong(frame):
    unfinished = bytearray(build(frame))
    finished = build(replace(frame, finished=True))
    assume(unfinished != finished)
    assert parse(bytes(unfinished)) == frame
    at = 40 if frame.family == 4 else 60
    assert unfinished[:at] + unfinished[at + 2 :] == finished[:at] + finished[at + 2 :]
    unfinished[at] ^= 1
    assume(unfinished != finished and any(unfinished[at : at + 2]))
    with pytest.raises(BadChecksum):
        parse(bytes(unfinished))


def test_linux_leaves_the_sum_of_the_addresses_alone():
    """As a veth pair with checksum offload passed it on: 101 bytes from fe80::1 to ff0e:1::1, port 7421."""
    source, destination = (
        bytes.fromhex(each) for each in ("fe80" + "00" * 13 + "01", "ff0e0001" + "00" * 11 + "01")
    )
    frame = UdpFrame(bytes(6), bytes(6), source, destination, 5000, 7421, b"x" * 101, finished=False)
    assert build(frame)[60:62].hex() == f"{(0xFE80 + 1 + 0xFF0E + 1 + 1 + 109 + 17) % 0xFFFF:04x}"


def text(address: bytes) -> str:
    return ":".join(f"{byte:02x}" for byte in address)


@given(frames())
def test_another_library_builds_the_same_bytes(frame):
    made = packet.Packet()
    kind = 0x0800 if frame.family == 4 else 0x86DD
    made.add_protocol(ethernet.ethernet(text(frame.destination_mac), text(frame.source_mac), kind))
    if frame.family == 4:
        ends = [".".join(map(str, end)) for end in (frame.source, frame.destination)]
        made.add_protocol(ipv4.ipv4(flags=2, ttl=frame.hops, proto=17, src=ends[0], dst=ends[1]))
    else:
        ends = [
            ":".join(end[i : i + 2].hex() for i in range(0, 16, 2))
            for end in (frame.source, frame.destination)
        ]
        made.add_protocol(ipv6.ipv6(nxt=17, hop_limit=frame.hops, src=ends[0], dst=ends[1]))
    made.add_protocol(udp.udp(frame.source_port, frame.destination_port))
    made.add_protocol(frame.payload)
    made.serialize()
    ours = build(frame)
    theirs = bytes(made.data)[: len(ours)]  # it fills up short frames, as a card does
    check = int.from_bytes(theirs[len(ours) - len(frame.payload) - 2 :][:2])
    assume(check != 0)  # there it does not write the sum that says there is one
    assert ours == theirs
    assert not any(made.data[len(ours) :])


@given(
    st.sampled_from(["", "0800", "080045", "86dd", "86dd60000000"]),
    st.binary(max_size=200),
)
def test_any_bytes_are_a_datagram_or_a_bad_message(head, data):
    with suppress(BadMessage):
        parse(bytes(12) + bytes.fromhex(head) + data)


@given(frames(most=60), st.data())
def test_a_truncated_packet_is_none(frame, data):
    whole = build(frame)
    with pytest.raises(BadMessage):
        parse(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(frames(most=60), st.data())
def test_a_changed_bit_is_found_where_checksums_cover_it(frame, data):
    whole = bytearray(build(frame))
    covered = range(14, len(whole)) if frame.family == 4 else range(22, len(whole))
    at = data.draw(st.sampled_from(covered))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    if frame.family == 4 and whole[40:42] == b"\0\0":
        return  # "no checksum", in IPv4
    with pytest.raises(BadMessage):
        parse(bytes(whole))


def sample(family: int) -> bytes:
    size = 4 if family == 4 else 16
    return build(UdpFrame(bytes(6), bytes(6), bytes([1]) * size, bytes([2]) * size, 1, 2, b"payload"))


def changed(family: int, at: int, value: bytes) -> bytes:
    whole = sample(family)
    return whole[:at] + value + whole[at + len(value) :]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (changed(6, 12, b"\x81\x00"), "type 0x8100"),
        (changed(6, 14, b"\x40"), "version 4"),
        (changed(6, 18, b"\0\x20"), "speaks of 32 bytes, and there are 15"),
        (changed(6, 18, b"\0\x04"), "4 bytes hold no UDP header"),
        (changed(6, 20, b"\0"), "of kind 0; right is UDP itself"),
        (changed(6, 20, b"\x2c"), "of kind 44; right is UDP itself"),
        (changed(6, 58, b"\0\x08"), "speaks of 8 bytes, and there are 15"),
        (changed(6, 60, b"\0\0"), "checksum 0x0000 does not hold"),
        (changed(4, 14, b"\x46"), "without options"),
        (changed(4, 16, b"\0\x10"), "speaks of 16 bytes"),
        (changed(4, 20, b"\x20\0"), "a fragment"),
        (changed(4, 20, b"\x00\x01"), "a fragment"),
        (changed(4, 23, b"\x06"), "of kind 6"),
        (changed(4, 24, b"\0\0"), "checksum of the IPv4 header"),
    ],
)
def test_what_is_wrong_is_said(data, what):
    with pytest.raises(BadMessage, match=what):
        parse(data)


def test_a_datagram_of_ipv4_may_do_without_a_checksum():
    assert parse(changed(4, 40, b"\0\0")) == parse(sample(4))


@pytest.mark.parametrize(
    ("given_", "what"),
    [
        ({"source": bytes(4)}, "addresses of 4 and 16 bytes"),
        ({"source_mac": bytes(5)}, "6 bytes"),
        ({"source_port": 1 << 16}, "ports"),
        ({"hops": 256}, "256 hops"),
        ({"payload": bytes(0xFFFF)}, "there is room for 65,527"),
    ],
)
def test_what_no_packet_can_say_is_refused(given_, what):
    fields = {
        "source_mac": bytes(6),
        "destination_mac": bytes(6),
        "source": bytes(16),
        "destination": bytes(16),
        "source_port": 1,
        "destination_port": 2,
        "payload": b"",
    }
    with pytest.raises(BadMessage, match=what):
        UdpFrame(**fields | given_)
