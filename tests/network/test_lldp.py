"""Beacons say what they were made to say, and nobody without the key makes one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.lib.packet import ethernet, lldp
from os_ken.lib.packet.packet import Packet

from flowsieve.errors import BadInput, BadMessage
from flowsieve.network import lldp as lldp_module
from flowsieve.network.lldp import LONGEST_IDENTITY, MAX_COUNT, MAX_PORT, MAX_TTL, Beacon, is_lldp
from flowsieve.network.names import SwitchId

KEY = b"what only the controller knows"
BEACON = Beacon(SwitchId("000000000000a1b2"), port=7, count=99)
beacons = st.builds(
    Beacon,
    st.text(min_size=1, max_size=LONGEST_IDENTITY // 4).map(SwitchId),
    st.integers(1, MAX_PORT),
    st.integers(0, MAX_COUNT),
    st.integers(0, MAX_TTL),
)


@given(beacons, st.binary(min_size=16, max_size=64))
def test_what_is_sent_is_what_is_read(beacon: Beacon, key: bytes) -> None:
    frame = beacon.frame(key)
    assert is_lldp(frame)
    assert len(frame) >= 60  # shorter ones are padded on a wire, and would not be read
    assert Beacon.parse(frame, key) == beacon


@given(beacons, st.data())
def test_a_frame_with_any_bit_changed_is_not_read(beacon: Beacon, data: st.DataObject) -> None:
    frame = bytearray(beacon.frame(KEY))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BadMessage):
        Beacon.parse(bytes(frame), KEY)


@given(st.binary(max_size=200))
def test_random_bytes_are_not_read(data: bytes) -> None:
    with pytest.raises(BadMessage):
        Beacon.parse(data, KEY)


@given(st.binary(max_size=40), st.integers(0, 75))
def test_a_frame_cut_short_or_with_something_after_it_is_not_read(more: bytes, cut: int) -> None:
    frame = BEACON.frame(KEY)
    with pytest.raises(BadMessage):
        Beacon.parse(frame[:cut], KEY)
    if more:
        with pytest.raises(BadMessage):
            Beacon.parse(frame + more, KEY)


def test_a_frame_made_with_another_key_is_not_read() -> None:
    with pytest.raises(BadMessage, match="without our signature"):
        Beacon.parse(BEACON.frame(b"what a host might guess"), KEY)


def test_a_signed_frame_in_another_form_is_not_read() -> None:
    """Whoever has the key and another version of this code."""
    body = BEACON.frame(KEY)[:-18]
    other = bytes.fromhex("ffffffffffff") + body[6:]
    signed = other + lldp_module._digest(other, KEY) + bytes(2)
    with pytest.raises(BadMessage, match="a form that we do not send"):
        Beacon.parse(signed, KEY)
    portless = (
        Beacon(SwitchId("1"), 1, 1)
        .frame(KEY)[:-18]
        .replace((1).to_bytes(4, "big") + b"\x06", bytes(4) + b"\x06")
    )
    with pytest.raises(BadMessage, match="makes no sense"):
        Beacon.parse(portless + lldp_module._digest(portless, KEY) + bytes(2), KEY)


def test_others_read_it_as_lldp() -> None:
    """os-ken's reader, written by other people, finds the same ids."""
    packet = Packet(BEACON.frame(KEY))
    header, body = packet.get_protocol(ethernet.ethernet), packet.get_protocol(lldp.lldp)
    assert header.ethertype == 0x88CC
    assert header.dst == lldp.LLDP_MAC_NEAREST_BRIDGE
    chassis, port, ttl, _, _ = body.tlvs
    assert chassis.chassis_id == b"000000000000a1b2"
    assert int.from_bytes(port.port_id, "big") == 7
    assert ttl.ttl == 3


@pytest.mark.parametrize(
    "wrong", [{"switch": ""}, {"switch": "x" * 256}, {"port": 0}, {"count": -1}, {"ttl_seconds": 70_000}]
)
def test_a_beacon_that_no_frame_can_say_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=repr(next(iter(wrong.values())))):
        Beacon(**{"switch": SwitchId("1"), "port": 1, "count": 1, **wrong})


@pytest.mark.parametrize("length", [0, 15, 65])
def test_a_key_that_is_too_short_or_too_long_is_refused(length: int) -> None:
    with pytest.raises(BadInput, match=f"a key of {length} bytes; right are 16 to 64"):
        BEACON.frame(bytes(length))
