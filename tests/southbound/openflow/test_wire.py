"""Messages and bytes."""

import struct

import peer
import pytest
from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.southbound.openflow import wire
from flowsieve.southbound.openflow.roles import (
    MASTER,
    NO_CHANGE,
    NO_GENERATION,
    SLAVE,
    RoleReply,
    RoleStatus,
    role_request,
)

OURS = {
    "a hello": wire.hello(9),
    "an echo request": wire.echo_request(9),
    "an echo reply": wire.echo_reply(9, b"data"),
    "a features request": wire.features_request(9),
    "a configuration": wire.send_all(9),
    "a barrier": wire.barrier(9),
    "a bundle": wire.bundle_control(9, 4, ofp.OFPBCT_OPEN_REQUEST),
    "an entries request": wire.entries_request(9),
    "a packet": wire.packet_out(9, 2, b"data"),
}


@pytest.mark.parametrize("what", OURS)
def test_each_of_our_messages_is_one_whole_message_of_version_1_4(what):
    (frame,) = peer.frames(OURS[what])
    assert (frame.version, frame.xid, frame.data) == (5, 9, OURS[what])


def test_a_message_in_a_bundle_is_as_os_ken_puts_it_there():
    inner = parser.OFPBarrierRequest(wire.PROTOCOL)
    outer = parser.OFPBundleAddMsg(wire.PROTOCOL, 4, wire.BUNDLE_FLAGS, inner, [])
    outer.set_xid(9)
    outer.serialize()
    assert wire.bundle_add(9, 4, wire.barrier(9)) == bytes(outer.buf)


@pytest.mark.parametrize(
    "what", [ofp.OFPBCT_OPEN_REQUEST, ofp.OFPBCT_COMMIT_REQUEST, ofp.OFPBCT_DISCARD_REQUEST]
)
def test_what_is_packed_by_hand_is_os_kens(what):
    control = parser.OFPBundleCtrlMsg(wire.PROTOCOL, 4, what, wire.BUNDLE_FLAGS, [])
    assert wire.bundle_control(9, 4, what) == wire.to_bytes(control, 9)
    assert wire.barrier(9) == wire.to_bytes(parser.OFPBarrierRequest(wire.PROTOCOL), 9)


def test_a_packet_to_be_sent_is_as_os_ken_packs_it():
    for port, data in ((2, b"data"), (0xFFFFFF00, b""), (1, bytes(1500))):
        actions = [parser.OFPActionOutput(port)]
        plain = parser.OFPPacketOut(wire.PROTOCOL, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, actions, data)
        assert wire.packet_out(9, port, data) == wire.to_bytes(plain, 9)


def packet_in(match: bytes, data: bytes, total: int | None = None) -> bytes:
    head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(data) if total is None else total, 0, 0, 7)
    padding = bytes(-(4 + len(match)) % 8)
    length = struct.pack("!HH", ofp.OFPMT_OXM, 4 + len(match))
    return peer.message(ofp.OFPT_PACKET_IN, 9, head + length + match + padding + b"\0\0" + data)


IN_PORT, METADATA = bytes.fromhex("8000000400000005"), bytes.fromhex("80000408") + bytes(8)


@pytest.mark.parametrize("match", [IN_PORT, IN_PORT + METADATA, METADATA + IN_PORT])
@pytest.mark.parametrize(("data", "total"), [(b"", None), (b"a packet", None), (b"a packet", 3)])
def test_a_packet_that_is_handed_over_is_read_as_by_os_ken(match, data, total):
    (frame,) = peer.frames(packet_in(match, data, total))
    plain = parser.OFPPacketIn.parser(wire.PROTOCOL, 5, frame.type, len(frame.data), 9, frame.data)
    assert wire.decode(frame) == wire.PacketIn(plain.match["in_port"], bytes(plain.data))
    assert wire.decode(frame).port == 5


@pytest.mark.parametrize(
    "message",
    [
        packet_in(METADATA, b"data"),  # from no port
        packet_in(IN_PORT[:4] + b"\0", b"data"),
        packet_in(IN_PORT + b"\x80\0\x04\xff", b"data"),
        packet_in(IN_PORT + b"\x80", b"data"),
        peer.message(ofp.OFPT_PACKET_IN, 9, bytes(16)),
        peer.message(ofp.OFPT_PACKET_IN, 9, bytes(16) + struct.pack("!HH", 1, 2)),
        peer.message(ofp.OFPT_PACKET_IN, 9, bytes(16) + struct.pack("!HH", 1, 60) + bytes(20)),
        peer.message(ofp.OFPT_PACKET_IN, 9, bytes(16) + struct.pack("!HH", 0, 12) + bytes(20)),
    ],
)
def test_a_packet_that_is_handed_over_and_is_malformed_ends_the_connection(message):
    (frame,) = peer.frames(message)
    with pytest.raises(wire.ProtocolError, match="malformed"):
        wire.decode(frame)


def test_errors_are_told_in_words():
    (frame,) = peer.frames(peer.error(3, ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL))
    assert wire.decode(frame) == wire.Failed(True, "OFPET_FLOW_MOD_FAILED(5) OFPFMFC_TABLE_FULL(1)")
    (frame,) = peer.frames(peer.error(3, ofp.OFPET_BAD_REQUEST, 99))
    assert not wire.decode(frame).table_full
    (frame,) = peer.frames(peer.error(3, ofp.OFPET_EXPERIMENTER, 7))
    assert wire.decode(frame) == wire.Failed(False, "error 7 of experimenter 0x0")


def test_a_hello_of_a_later_version_may_list_ours():
    (frame,) = peer.frames(peer.hello(1, 5, 6))
    assert (frame.version, wire.decode(frame)) == (6, wire.Hello(frozenset({1, 5, 6})))
    (frame,) = peer.frames(peer.message(ofp.OFPT_HELLO, 1, version=4))
    assert wire.decode(frame) == wire.Hello(frozenset({1, 2, 3, 4}))


def test_what_means_nothing_to_us_is_no_fault():
    (frame,) = peer.frames(peer.message(ofp.OFPT_TABLE_STATUS, 0, bytes(16)))
    assert wire.decode(frame) == wire.Other(ofp.OFPT_TABLE_STATUS)


@pytest.mark.parametrize("role", [NO_CHANGE, MASTER])
def test_a_request_for_a_role_is_as_os_ken_makes_it(role):
    message = parser.OFPRoleRequest(wire.PROTOCOL, role, 0xF00D << 40)
    assert role_request(9, role, 0xF00D << 40) == wire.to_bytes(message, 9)


def test_a_switch_says_who_was_the_master_last_or_that_nobody_was():
    for number, generation in ((7 << 40, 7 << 40), (NO_GENERATION, None)):
        (reply, status) = peer.frames(peer.role_reply(3, MASTER, number) + peer.role_status(SLAVE, number))
        assert wire.decode(reply) == RoleReply(MASTER, generation)
        assert wire.decode(status) == RoleStatus(SLAVE, generation)


def test_errors_of_roles_are_told_from_others():
    kinds = [(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE), (ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE)]
    told = [wire.decode(frame) for frame in peer.frames(b"".join(peer.error(1, *each) for each in kinds))]
    assert [(each.slave, each.stale) for each in told] == [(True, False), (False, True)]
