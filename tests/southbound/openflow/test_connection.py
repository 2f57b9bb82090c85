"""The protocol without input and output: scripted bytes in, events and bytes out."""

import random

import peer
import pytest
from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.openflow.connection import MOST_QUEUED, ConnectionState, OpenFlowConnection
from flowsieve.southbound.openflow.events import (
    BatchApplied,
    BatchRefused,
    EntriesListed,
    GroupsListed,
    PortsListed,
    Ready,
    RoleTold,
)
from flowsieve.southbound.openflow.ports import FENCE, Port
from flowsieve.southbound.openflow.roles import MASTER, SLAVE, RoleReply, RoleStatus
from flowsieve.southbound.openflow.wire import (
    PROTOCOL,
    Monitored,
    PacketIn,
    PortStatus,
    ProtocolError,
    cookie_of,
)

FLOWS = [
    Flow(PrefixMatch(Prefix.parse(f"ff0e:{i:x}::/32")), 1016, (Output(1), Output(2))) for i in range(1, 4)
]
OPS = [FlowOp(OpKind.INSTALL, flow) for flow in FLOWS]
TABLE_FULL = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)


LABELLED = FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix.parse("ff1e::/16")), 10, (Output(1),), table=16))


def sent(connection: OpenFlowConnection) -> list[tuple[int, int]]:
    """Type and xid of what goes out."""
    return [(frame.type, frame.xid) for frame in peer.frames(b"".join(connection.outgoing()))]


def heard(connection: OpenFlowConnection, *messages: bytes) -> list[object]:
    return list(connection.receive(b"".join(messages)))


@pytest.fixture
def ready() -> OpenFlowConnection:
    connection = OpenFlowConnection()
    assert sent(connection) == [(ofp.OFPT_HELLO, 1)]
    assert heard(connection, peer.hello(1, 4, 5, 6)) == []
    assert sent(connection) == [(ofp.OFPT_FEATURES_REQUEST, 2)]
    assert heard(connection, peer.features(2, datapath=0xABC)) == [Ready(0xABC)]
    assert sent(connection) == [(ofp.OFPT_SET_CONFIG, 3), (ofp.OFPT_MULTIPART_REQUEST, 4)]
    return connection


@pytest.fixture
def adding(ready) -> tuple[OpenFlowConnection, int, int, int]:
    """A connection on which a batch was sent; its bundle, its first xid and that of the barrier."""
    bundle = ready.apply(OPS)
    kinds = [ofp.OFPT_BUNDLE_CONTROL, *[ofp.OFPT_BUNDLE_ADD_MESSAGE] * 3, ofp.OFPT_BARRIER_REQUEST]
    assert sent(ready) == list(zip(kinds, range(bundle, bundle + 5), strict=True))
    assert heard(ready, peer.bundle(bundle, bundle, ofp.OFPBCT_OPEN_REPLY)) == []
    return ready, bundle, bundle + 1, bundle + 4


def test_a_batch_is_applied_once_it_is_committed(adding):
    connection, bundle, _, barrier = adding
    assert heard(connection, peer.barrier(barrier)) == []
    ((kind, commit),) = sent(connection)
    assert kind == ofp.OFPT_BUNDLE_CONTROL
    assert heard(connection, peer.bundle(commit, bundle, ofp.OFPBCT_COMMIT_REPLY)) == [BatchApplied(bundle)]
    assert sent(connection) == []


def test_a_batch_with_a_refused_message_is_discarded(adding):
    connection, bundle, first, barrier = adding
    assert heard(connection, peer.error(first + 1, 2, 9), peer.barrier(barrier)) == []
    (discard,) = peer.frames(b"".join(connection.outgoing()))
    assert int.from_bytes(discard.data[12:14]) == ofp.OFPBCT_DISCARD_REQUEST
    (refused,) = heard(connection, peer.bundle(discard.xid, bundle, ofp.OFPBCT_DISCARD_REPLY))
    assert isinstance(refused, BatchRefused)
    assert (refused.request, refused.op_index, refused.failure.table_full) == (bundle, 1, False)
    assert "OFPET_BAD_ACTION" in refused.failure.reason


def test_a_commit_can_fail_for_one_operation(adding):
    connection, _, first, barrier = adding
    heard(connection, peer.barrier(barrier))
    ((_, commit),) = sent(connection)
    assert heard(connection, peer.error(first + 2, *TABLE_FULL)) == []
    (refused,) = heard(connection, peer.error(commit, ofp.OFPET_BUNDLE_FAILED, ofp.OFPBFC_MSG_FAILED))
    assert (refused.op_index, refused.failure.table_full) == (2, True)


def test_a_bundle_that_does_not_open_is_refused_as_a_whole(adding):
    connection, bundle, _, barrier = adding
    heard(
        connection,
        peer.error(bundle, ofp.OFPET_BUNDLE_FAILED, ofp.OFPBFC_OUT_OF_BUNDLES),
        peer.barrier(barrier),
    )
    ((_, discard),) = sent(connection)
    (refused,) = heard(connection, peer.error(discard, ofp.OFPET_BUNDLE_FAILED, ofp.OFPBFC_BAD_ID))
    assert refused.op_index is None
    assert "OFPBFC_OUT_OF_BUNDLES" in refused.failure.reason


def test_one_batch_follows_another(ready):
    for _ in range(3):
        bundle = ready.apply(OPS)
        barrier = sent(ready)[-1][1]
        heard(ready, peer.barrier(barrier))
        ((_, commit),) = sent(ready)
        assert heard(ready, peer.bundle(commit, bundle, ofp.OFPBCT_COMMIT_REPLY)) == [BatchApplied(bundle)]


def test_numbers_of_messages_begin_again_before_they_run_out(ready):
    ready._xid = (1 << 32) - 5
    bundle = ready.apply(OPS)
    assert [xid for _, xid in sent(ready)] == list(range(bundle, bundle + 5))
    assert bundle == 1


def test_entries_come_in_several_parts(ready):
    request = ready.list_entries()
    assert sent(ready) == [(ofp.OFPT_MULTIPART_REQUEST, request)]
    assert heard(ready, peer.stats(request, FLOWS[:2], more=True)) == []
    (listed,) = heard(ready, peer.stats(request, FLOWS[2:]))
    assert isinstance(listed, EntriesListed)
    assert [entry.flow for entry in listed.entries] == FLOWS
    assert all(entry.owner == 0 for entry in listed.entries)


def test_a_sign_of_life_is_given_with_the_same_data(ready):
    assert heard(ready, peer.message(ofp.OFPT_ECHO_REQUEST, 77, b"are you there")) == []
    (reply,) = peer.frames(b"".join(ready.outgoing()))
    assert (reply.type, reply.xid, reply.data[8:]) == (ofp.OFPT_ECHO_REPLY, 77, b"are you there")
    ready.ping()
    ((kind, xid),) = sent(ready)
    assert kind == ofp.OFPT_ECHO_REQUEST
    assert heard(ready, peer.message(ofp.OFPT_ECHO_REPLY, xid)) == []


def test_ports_and_packets_are_told(ready):
    heard_of = heard(
        ready,
        peer.port_status(3, up=False),
        peer.port_status(3, up=True),
        peer.port_status(4, up=True, reason=ofp.OFPPR_DELETE),
        peer.packet_in(2, b"a packet"),
    )
    assert heard_of == [
        PortStatus(3, "s1-eth3", False),
        PortStatus(3, "s1-eth3", True),
        PortStatus(4, "s1-eth4", False),
        PacketIn(2, b"a packet"),
    ]


PORTS = [
    Port(1, b"\2\0\0\0\0\1", "s1.1", 0, 0),
    Port(2, b"\2\0\0\0\0\2", "s1.2", FENCE, ofp.OFPPS_LINK_DOWN),
    Port(3, b"\2\0\0\0\0\3", "s1.3", ofp.OFPPC_NO_RECV, 0),
]


def test_ports_come_in_several_parts_without_the_switchs_own(ready):
    request = ready.list_ports()
    assert sent(ready) == [(ofp.OFPT_MULTIPART_REQUEST, request)]
    assert heard(ready, peer.ports(request, *PORTS[:2], more=True)) == []
    own = Port(ofp.OFPP_LOCAL, bytes(6), "s1", ofp.OFPPC_PORT_DOWN, 0)
    assert heard(ready, peer.ports(request, own, PORTS[2])) == [PortsListed(request, tuple(PORTS))]
    assert [(port.up, port.fenced) for port in PORTS] == [(True, False), (False, True), (True, False)]


@pytest.mark.parametrize("closed", [True, False])
def test_a_port_is_changed_once_the_barrier_is_answered(ready, closed):
    request = ready.fence(PORTS[1], closed)
    *around, mod, barrier = peer.frames(b"".join(ready.outgoing()))
    assert len(around) == closed  # what leads around it is taken out first
    config = FENCE if closed else 0
    plain = parser.OFPPortMod(PROTOCOL, 2, "02:00:00:00:00:02", config, FENCE, [])
    plain.set_xid(mod.xid)
    plain.serialize()
    assert mod.data == bytes(plain.buf)
    assert heard(ready, peer.barrier(barrier.xid)) == [BatchApplied(request)]


def test_a_port_change_can_be_refused(ready):
    request = ready.fence(PORTS[0], True)
    barrier = sent(ready)[-1][1]
    failure = peer.error(request, ofp.OFPET_PORT_MOD_FAILED, ofp.OFPPMFC_BAD_HW_ADDR)
    (refused,) = heard(ready, failure, peer.barrier(barrier))
    assert (refused.request, refused.op_index) == (request, None)
    assert "OFPPMFC_BAD_HW_ADDR" in refused.failure.reason


def test_a_port_change_and_a_batch_may_be_under_way_together(adding):
    connection, bundle, _, barrier = adding
    request = connection.fence(PORTS[0], True)
    port_barrier = sent(connection)[-1][1]
    assert heard(connection, peer.barrier(barrier)) == []
    ((_, commit),) = sent(connection)
    assert heard(connection, peer.barrier(port_barrier)) == [BatchApplied(request)]
    assert heard(connection, peer.bundle(commit, bundle, ofp.OFPBCT_COMMIT_REPLY)) == [BatchApplied(bundle)]


def test_packets_for_a_switch_that_takes_none_are_dropped_at_last(ready):
    for _ in range(MOST_QUEUED + 100):
        ready.send_packet(1, b"x")
    request = ready.list_ports()
    kinds = sent(ready)
    assert len(kinds) == MOST_QUEUED + 1
    assert kinds[-1] == (ofp.OFPT_MULTIPART_REQUEST, request)
    ready.send_packet(1, b"x")
    assert len(sent(ready)) == 1


def test_an_error_that_nobody_waits_for_is_passed_over(ready):
    ready.send_packet(9, b"x")
    ((kind, xid),) = sent(ready)
    assert kind == ofp.OFPT_PACKET_OUT
    assert heard(ready, peer.error(xid, ofp.OFPET_BAD_ACTION, 4)) == []


@pytest.mark.parametrize(
    ("spoken", "fits"), [((), True), ((5,), True), ((1, 5, 6), True), ((1, 4), False), ((6,), False)]
)
def test_both_ends_must_speak_one_version(spoken, fits):
    connection = OpenFlowConnection()
    if fits:
        heard(connection, peer.hello(*spoken))
        assert connection.state is ConnectionState.FEATURES
    else:
        with pytest.raises(ProtocolError, match=r"right is 5 \(OpenFlow 1.4\)"):
            heard(connection, peer.hello(*spoken))


UNASKED = {
    "a barrier": peer.barrier(99),
    "a bundle": peer.bundle(99, 99, ofp.OFPBCT_COMMIT_REPLY),
    "entries": peer.stats(99, FLOWS),
    "ports": peer.ports(99),
    "features": peer.features(99),
    "a hello": peer.hello(5),
    "another version": peer.message(ofp.OFPT_ECHO_REQUEST, 1, version=4),
    "an unknown type": peer.message(99, 1),
    "a length too short": b"\x05\x02\x00\x07\x00\x00\x00\x01",
    "a cut off error": peer.message(ofp.OFPT_ERROR, 1, b"\0"),
    "a port with endless properties": peer.message(
        ofp.OFPT_PORT_STATUS, 0, peer.port_status(1, True)[8:] + bytes(8)
    ),
}


@pytest.mark.parametrize("what", UNASKED)
def test_what_a_switch_should_not_send_is_an_error(ready, what):
    with pytest.raises(ProtocolError):
        heard(ready, UNASKED[what])


@pytest.mark.parametrize("what", ["a barrier", "a bundle", "entries", "features"])
def test_nothing_comes_before_a_hello(what):
    with pytest.raises(ProtocolError, match="waiting for the peer's hello"):
        heard(OpenFlowConnection(), UNASKED[what])


def test_a_stream_may_be_torn_anywhere():
    def conversation(pieces) -> list[object]:
        """All that happens with two halves of a conversation, each torn in pieces."""
        connection, events = OpenFlowConnection(), []
        for piece in pieces[0]:
            events += connection.receive(piece)
        bundle = connection.apply(OPS)
        for piece in pieces[1]:
            events += connection.receive(piece)
        assert bundle == 5
        return [*events, *sent(connection)]

    halves = (
        peer.hello(5) + peer.features(2) + peer.message(ofp.OFPT_ECHO_REQUEST, 50, b"abc"),
        peer.port_status(1, False)
        + peer.bundle(5, 5, ofp.OFPBCT_OPEN_REPLY)
        + peer.barrier(9)
        + peer.bundle(10, 5, ofp.OFPBCT_COMMIT_REPLY)
        + peer.packet_in(1, b"data"),
    )
    whole = conversation([[half] for half in halves])
    assert BatchApplied(5) in whole
    assert conversation([[bytes([byte]) for byte in half] for half in halves]) == whole
    for half, other in ((0, 1), (1, 0)):
        for cut in range(len(halves[half])):
            pieces: list[list[bytes]] = [[], []]
            pieces[half] = [halves[half][:cut], halves[half][cut:]]
            pieces[other] = [halves[other]]
            assert conversation(pieces) == whole


def random_strings(seed: int, count: int) -> list[bytes]:
    """Random bytes, every other time behind the header of a message that could be one."""
    draw = random.Random(seed)
    strings = []
    for i in range(count):
        data = draw.randbytes(draw.randrange(200))
        if i % 8 == 7:  # a list of ports or of entries, perhaps even one that was asked for
            kind = draw.choice((ofp.OFPMP_PORT_DESC, ofp.OFPMP_FLOW))
            data = peer.message(ofp.OFPT_MULTIPART_REPLY, draw.randrange(12), kind.to_bytes(2) + data)
        elif i % 2:
            data = peer.message(draw.randrange(36), draw.randrange(12), data)
        strings.append(data)
    return strings


def test_random_bytes_are_at_worst_an_error():
    wrong = 0
    for data in random_strings(0, 1000):
        connection = OpenFlowConnection()
        heard(connection, peer.hello(5), peer.features(2))
        connection.apply(OPS)
        connection.list_entries()
        connection.list_ports()
        connection.fence(PORTS[0], True)
        try:
            heard(connection, data)
        except ProtocolError as error:
            assert str(error)
            wrong += 1
    assert wrong > 500


def test_random_bytes_instead_of_a_hello_are_at_worst_an_error():
    for data in random_strings(1, 1000):
        try:
            assert heard(OpenFlowConnection(), data) == []
        except ProtocolError as error:
            assert str(error)


@pytest.mark.parametrize("event", [ofp.OFPFME_ADDED, ofp.OFPFME_REMOVED, ofp.OFPFME_MODIFIED])
def test_changes_by_others_are_told_with_their_owners_and_our_own_are_not(ready, event):
    assert heard(ready, peer.monitored(ofp.OFPFME_ABBREV, ofp.OFPFME_ABBREV)) == []
    for cookie, owner in ((0, None), (cookie_of(0), 0), (cookie_of(7), 7)):
        told = peer.monitored(ofp.OFPFME_ABBREV, event, cookie=cookie)
        assert heard(ready, told) == [Monitored(frozenset({owner}))]


def test_changes_in_tables_for_labels_are_told_and_in_tables_of_others_not(ready):
    for table, owners in ((1, {None}), (2, {None}), (3, set()), (15, set()), (16, {None}), (253, {None})):
        told = peer.monitored(ofp.OFPFME_ADDED, table=table)
        assert heard(ready, told) == ([Monitored(frozenset(owners))] if owners else [])


def test_a_role_is_asked_for_and_told(ready):
    for ask in (ready.ask_role, lambda: ready.claim(7)):
        request = ask()
        assert sent(ready) == [(ofp.OFPT_ROLE_REQUEST, request), (ofp.OFPT_BARRIER_REQUEST, request + 1)]
        told = heard(ready, peer.role_reply(request, MASTER, 7), peer.barrier(request + 1))
        assert told == [RoleTold(request, RoleReply(MASTER, 7))]


def test_a_switch_that_says_nothing_of_roles_is_waited_for_no_longer_than_for_the_barrier(ready):
    request = ready.ask_role()
    assert heard(ready, peer.barrier(request + 1)) == [RoleTold(request, None)]


def test_a_stale_claim_is_refused(ready):
    request = ready.claim(7)
    error = peer.error(request, ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE)
    (refused,) = heard(ready, error, peer.barrier(request + 1))
    assert isinstance(refused, BatchRefused) and refused.failure.stale


def test_a_role_that_nobody_asked_for_ends_the_connection(ready):
    with pytest.raises(ProtocolError, match="a role that nobody asked for"):
        heard(ready, peer.role_reply(9, MASTER, 7))


def test_who_is_the_master_no_more_hears_it_from_a_status_and_from_every_refusal(adding):
    connection, bundle, first, barrier = adding
    assert heard(connection, peer.role_status(SLAVE, 8)) == [RoleStatus(SLAVE, 8)]
    refusal = peer.error(first, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)
    assert heard(connection, refusal) == [RoleStatus(SLAVE, None)]
    assert heard(connection, peer.barrier(barrier)) == []
    ((_, discard),) = sent(connection)
    refusal = peer.error(discard, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)
    notice, refused = heard(connection, refusal)
    assert notice == RoleStatus(SLAVE, None)
    assert isinstance(refused, BatchRefused) and refused.request == bundle


def test_a_switch_that_knows_no_groups_has_none(ready):
    request = ready.list_groups()
    assert sent(ready) != []
    refusal = peer.error(request, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_MULTIPART)
    assert heard(ready, refusal) == [GroupsListed(request, ())]


def test_what_a_switch_has_no_table_for_is_refused_before_it_is_sent() -> None:
    connection = OpenFlowConnection()
    heard(connection, peer.hello(1, 4, 5, 6), peer.features(2, datapath=1, tables=4))
    sent(connection)
    with pytest.raises(
        SwitchError, match="it has 4 tables, and 17 are needed: labels take one for each port"
    ):
        connection.apply([LABELLED])
    assert sent(connection) == []
    connection.apply(OPS)
    assert sent(connection)
