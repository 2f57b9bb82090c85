"""Messages and bytes."""

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
