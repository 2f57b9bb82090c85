"""Messages and bytes: os-ken's codec on one side, small values on the other.

Our own messages are made by os-ken. What a peer sent is read by os-ken as well, but only after a look at its
lengths: several of os-ken's parsers never end where a length inside a message is zero. What is said all the time is
packed and read by hand, at a tenth of the price: barriers, the beginning and the end of bundles, packets in and out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from flowsieve.errors import SwitchError
from flowsieve.flow import entry as flow_entry
from flowsieve.flow.diff import OpKind
from flowsieve.southbound.openflow.roles import RoleReply, RoleStatus, role_and_generation

VERSION = ofp.OFP_VERSION
PROTOCOL = ProtocolDesc(VERSION)
COOKIE = 0xF1055E1E << 32  # on every entry that is ours; the lower half says whose it is and what it is for
SERVICE_COOKIE = COOKIE | 1  # on service entries
GUARD_COOKIE = COOKIE | 2  # on those that say what is taken in, with the number of whose guard it is
NOT_OWNER = 0xFFFF_FFFF_0000_FFFF  # the part of a cookie that does not say whose it is
DETOUR_COOKIE = COOKIE | 3  # on those that lead around dead links; bits before the last four say around which
DETOUR_COOKIES = 0xFFFF_FFFF_FFFF_000F  # the bits by which these are told
ADMISSION_TABLE = 0  # where packets come in: service entries, and what hands events on to the next
CONTENT_TABLE = flow_entry.CONTENT_TABLE  # where events are sent on
DETOUR_TABLE = 2  # where those are sent that go around a dead link
OUR_TABLES = frozenset([ADMISSION_TABLE, CONTENT_TABLE, DETOUR_TABLE, *flow_entry.LABEL_TABLES])
LAST_LINK_PORT = 0xFFF  # of a link that is sent over by a group
LINK_GROUPS = range(0xF1050000, 0xF1050000 + LAST_LINK_PORT + 1)  # by their ports
BUNDLE_FLAGS = ofp.OFPBF_ATOMIC | ofp.OFPBF_ORDERED
COMMANDS = {
    OpKind.INSTALL: ofp.OFPFC_ADD,
    OpKind.MODIFY: ofp.OFPFC_MODIFY_STRICT,
    OpKind.REMOVE: ofp.OFPFC_DELETE_STRICT,
}
ETH_TYPES = {4: 0x0800, 6: 0x86DD}
SOURCE_FIELDS = {4: "ipv4_src", 6: "ipv6_src"}
FIELDS = {4: "ipv4_dst", 6: "ipv6_dst"}

# What an entry does that hands packets over, behind its meter.
HAND_OVER = struct.pack(
    "!HH4xHHIH6x",
    ofp.OFPIT_APPLY_ACTIONS,
    24,
    ofp.OFPAT_OUTPUT,
    16,
    ofp.OFPP_CONTROLLER,
    ofp.OFPCML_NO_BUFFER,
)
_HEADER = struct.Struct("!BBHI")  # version, type, length, xid
_UPDATED = struct.Struct("!B11xQ")  # table and cookie of an entry that was changed, behind length and kind
_BUNDLE_CONTROL = struct.Struct("!BBHIIHH")  # header, bundle, type, flags
_PACKET_IN = struct.Struct(
    "!12xH10xHH"
)  # behind header and buffer the length of the packet, then kind and length of a match
_IN_PORT = ofp.OFPXMC_OPENFLOW_BASIC << 16 | ofp.OFPXMT_OFB_IN_PORT << 9 | 4  # how the field begins
_PACKET_OUT = struct.Struct("!BBHIIIH6xHHIH6x")  # header, buffer, port, length of actions; one action
_LAST_TYPE = ofp.OFPT_BUNDLE_ADD_MESSAGE
_TABLE_FULL = ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL
_IS_SLAVE = ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE
_STALE = ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE


class ProtocolError(SwitchError):
    """The peer does not speak OpenFlow 1.4 as it should; the connection cannot go on."""


# Bytes into messages.


class OpenFlowFrame(NamedTuple):
    """One whole message, its header still in front."""

    version: int
    type: int
    xid: int
    data: bytes


class Frames:
    """Cuts a stream of bytes into messages, however it arrives in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[OpenFlowFrame]:
        """The messages that are whole by now; what is left waits for more."""
        buffer, at = self._rest + data, 0
        try:
            while len(buffer) - at >= _HEADER.size:
                version, kind, length, xid = _HEADER.unpack_from(buffer, at)
                if not 1 <= version <= 0x7F or kind > _LAST_TYPE or length < _HEADER.size:
                    raise ProtocolError(f"{buffer[at : at + 8].hex(' ')} begins no OpenFlow message")
                if len(buffer) - at < length:
                    return
                at += length
                yield OpenFlowFrame(version, kind, xid, buffer[at - length : at])
        finally:
            self._rest = buffer[at:]


class Hello(NamedTuple):
    """The versions that the peer speaks."""

    versions: frozenset[int]


class Failed(NamedTuple):
    """The peer could not do what the message with this xid asked."""

    table_full: bool
    reason: str
    slave: bool = False  # another controller is the master
    stale: bool = False  # … and that by a later generation than ours


class EchoRequest(NamedTuple):
    data: bytes


class EchoReply(NamedTuple):
    data: bytes


class Features(NamedTuple):
    datapath: int
    tables: int


class PacketIn(NamedTuple):
    """A packet that the switch hands to the controller."""

    port: int
    data: bytes


class ListKind(IntEnum):
    """What a switch lists, as its multipart messages number it."""

    ENTRIES = ofp.OFPMP_FLOW
    PORTS = ofp.OFPMP_PORT_DESC
    METERS = ofp.OFPMP_METER_CONFIG
    METER_COUNTS = ofp.OFPMP_METER
    GROUPS = ofp.OFPMP_GROUP_DESC


class PortStatus(NamedTuple):
    """A port came, went, or changed; `up` says whether it can carry packets now."""

    port: int
    name: str
    up: bool


class ListPart(NamedTuple):
    """A part of the answer to a request for a list; `kind` says of what."""

    kind: ListKind
    body: bytes
    more: bool


class Monitored(NamedTuple):
    """Somebody else than this connection has changed entries in our tables, of these owners; None is for what no owner
    has."""

    owners: frozenset[int | None]


class Barrier(NamedTuple):
    pass


class BundleReply(NamedTuple):
    bundle: int
    type: int


class Other(NamedTuple):
    """A message that we have no use for; it is not an error."""

    type: int


OpenFlowMessage = (
    Hello
    | Failed
    | EchoRequest
    | EchoReply
    | Features
    | RoleReply
    | RoleStatus
    | PacketIn
    | PortStatus
    | ListPart
    | Monitored
    | Barrier
    | BundleReply
    | Other
)


def decode(frame: OpenFlowFrame) -> OpenFlowMessage:
    """What a message says; a ProtocolError if it is not well-formed."""
    if frame.type != ofp.OFPT_HELLO and frame.version != VERSION:
        raise ProtocolError(f"a message has version {frame.version}; agreed was {VERSION} (OpenFlow 1.4)")
    try:
        return _DECODERS.get(frame.type, _other)(frame)
    except Exception as error:  # whatever os-ken makes of it: the peer sent it
        raise ProtocolError(
            f"a message of type {frame.type} and {len(frame.data)} bytes is malformed: {error}"
        ) from error


def _read(kind: type[Any], frame: OpenFlowFrame) -> Any:
    return kind.parser(PROTOCOL, frame.version, frame.type, len(frame.data), frame.xid, frame.data)


def _hello(frame: OpenFlowFrame) -> Hello:
    # Read by hand: the peer's version may be one whose messages look otherwise.
    for at, kind, length in _elements(frame.data, _HEADER.size):
        if kind == ofp.OFPHET_VERSIONBITMAP:
            words = struct.unpack_from(f"!{length // 4 - 1}I", frame.data, at + 4)
            bits = [32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1]
            return Hello(frozenset(bits))
    return Hello(frozenset(range(1, frame.version + 1)))


def _elements(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Place, type and length of each element in a list of elements padded to eight bytes."""
    while at < len(data):
        kind, length = struct.unpack_from("!HH", data, at)
        if length < 4 or at + length > len(data):
            raise ValueError(f"an element of length {length} at byte {at} of {len(data)}")
        yield at, kind, length
        at += (length + 7) // 8 * 8


def _failed(frame: OpenFlowFrame) -> Failed:
    message = _read(parser.OFPErrorMsg, frame)
    if message.type == ofp.OFPET_EXPERIMENTER:
        return Failed(False, f"error {message.exp_type} of experimenter {message.experimenter:#x}")
    why = message.type, message.code
    reason = f"{ofp.ofp_error_type_to_str(message.type)} {ofp.ofp_error_code_to_str(*why)}"
    return Failed(why == _TABLE_FULL, reason, slave=why == _IS_SLAVE, stale=why == _STALE)


def _packet_in(frame: OpenFlowFrame) -> PacketIn:
    data, port = frame.data, None
    total, kind, length = _PACKET_IN.unpack_from(data)
    at, end = _PACKET_IN.size, _PACKET_IN.size - 4 + length
    begin = _PACKET_IN.size - 4 + (length + 7) // 8 * 8 + 2  # two bytes of padding
    if kind != ofp.OFPMT_OXM or length < 4 or begin > len(data):
        raise ValueError(f"a match of kind {kind} and length {length} in {len(data)} bytes")
    while at < end:
        (head,) = struct.unpack_from("!I", data, at)
        size = head & 0xFF
        if at + 4 + size > end:
            raise ValueError(f"a field of {size} bytes at byte {at} of a match up to {end}")
        if head == _IN_PORT:
            (port,) = struct.unpack_from("!I", data, at + 4)
        at += 4 + size
    if port is None:
        raise ValueError("it does not say at which port the packet came in")
    return PacketIn(port, data[begin : begin + total])


def _port_status(frame: OpenFlowFrame) -> PortStatus:
    for _ in _elements(frame.data, ofp.OFP_PORT_STATUS_DESC_OFFSET + ofp.OFP_PORT_SIZE):
        pass  # only the lengths matter
    message = _read(parser.OFPPortStatus, frame)
    port = message.desc
    down = message.reason == ofp.OFPPR_DELETE or port.config & ofp.OFPPC_PORT_DOWN
    name = port.name.rstrip(b"\0").decode(errors="replace")
    return PortStatus(port.port_no, name, not (down or port.state & ofp.OFPPS_LINK_DOWN))


def _list_part(frame: OpenFlowFrame) -> ListPart | Monitored | Other:
    kind, flags = struct.unpack_from("!HH", frame.data, _HEADER.size)
    if kind == ofp.OFPMP_FLOW_MONITOR:
        return Monitored(frozenset(owner for event, owner in _updates(frame.data) if event in _FOREIGN))
    if kind not in set(ListKind):
        return Other(frame.type)
    return ListPart(ListKind(kind), frame.data[16:], bool(flags & ofp.OFPMPF_REPLY_MORE))


def _updates(data: bytes) -> Iterator[tuple[int, int | None]]:
    """What kind each update about our tables is, and whose entry it is about; our own changes come abbreviated."""
    at = 16
    while at < len(data):
        length, event = struct.unpack_from("!HH", data, at)
        if length < 8 or length % 8 or at + length > len(data):
            raise ValueError(f"an update of length {length} at byte {at} of {len(data)}")
        table, cookie = _UPDATED.unpack_from(data, at + 4) if length >= 24 else (CONTENT_TABLE, 0)
        if table in OUR_TABLES:
            yield event, owner_of(cookie)
        at += length


def _bundle_reply(frame: OpenFlowFrame) -> BundleReply:
    if len(frame.data) > _BUNDLE_CONTROL.size:
        for _ in _elements(frame.data, _BUNDLE_CONTROL.size):
            pass  # properties, of which only the lengths matter
    _, _, _, _, bundle, kind, _ = _BUNDLE_CONTROL.unpack_from(frame.data)
    return BundleReply(bundle, kind)


def _other(frame: OpenFlowFrame) -> Other:
    return Other(frame.type)


# Changes that others made, and a monitor that missed some.
_FOREIGN = {ofp.OFPFME_ADDED, ofp.OFPFME_REMOVED, ofp.OFPFME_MODIFIED, ofp.OFPFME_RESUMED}
_DECODERS: dict[int, Callable[[OpenFlowFrame], OpenFlowMessage]] = {
    ofp.OFPT_HELLO: _hello,
    ofp.OFPT_ERROR: _failed,
    ofp.OFPT_ECHO_REQUEST: lambda frame: EchoRequest(frame.data[8:]),
    ofp.OFPT_ECHO_REPLY: lambda frame: EchoReply(frame.data[8:]),
    ofp.OFPT_FEATURES_REPLY: lambda frame: _features(_read(parser.OFPSwitchFeatures, frame)),
    ofp.OFPT_ROLE_REPLY: lambda frame: RoleReply(*role_and_generation(frame.data)),
    ofp.OFPT_ROLE_STATUS: lambda frame: RoleStatus(*role_and_generation(frame.data)),
    ofp.OFPT_PACKET_IN: _packet_in,
    ofp.OFPT_PORT_STATUS: _port_status,
    ofp.OFPT_MULTIPART_REPLY: _list_part,
    ofp.OFPT_BARRIER_REPLY: lambda frame: Barrier(),
    ofp.OFPT_BUNDLE_CONTROL: _bundle_reply,
}


# Messages into bytes.


def hello(xid: int) -> bytes:
    return to_bytes(parser.OFPHello(PROTOCOL, [parser.OFPHelloElemVersionBitmap([VERSION])]), xid)


def echo_request(xid: int) -> bytes:
    return to_bytes(parser.OFPEchoRequest(PROTOCOL, b""), xid)


def echo_reply(xid: int, data: bytes) -> bytes:
    return to_bytes(parser.OFPEchoReply(PROTOCOL, data), xid)


def _features(message: Any) -> Features:
    return Features(message.datapath_id, message.n_tables)


def features_request(xid: int) -> bytes:
    return to_bytes(parser.OFPFeaturesRequest(PROTOCOL), xid)


def send_all(xid: int) -> bytes:
    """Have the switch tell us about ports and packets.

    Open vSwitch tells a peer that dialled it nothing unless that asks for a length of packets other than 0.
    """
    return to_bytes(parser.OFPSetConfig(PROTOCOL, ofp.OFPC_FRAG_NORMAL, ofp.OFPCML_NO_BUFFER), xid)


def barrier(xid: int) -> bytes:
    return _HEADER.pack(VERSION, ofp.OFPT_BARRIER_REQUEST, _HEADER.size, xid)


def bundle_control(xid: int, bundle: int, what: int) -> bytes:
    size = _BUNDLE_CONTROL.size
    return _BUNDLE_CONTROL.pack(VERSION, ofp.OFPT_BUNDLE_CONTROL, size, xid, bundle, what, BUNDLE_FLAGS)


def bundle_add(xid: int, bundle: int, message: bytes) -> bytes:
    """A message put into a bundle; both have the same xid."""
    head = struct.pack(
        "!BBHIIxxH", VERSION, ofp.OFPT_BUNDLE_ADD_MESSAGE, 16 + len(message), xid, bundle, BUNDLE_FLAGS
    )
    return head + message


def entries_request(xid: int) -> bytes:
    """Ask for all entries: those of others too, wherever events may meet them."""
    return to_bytes(parser.OFPFlowStatsRequest(PROTOCOL, table_id=ofp.OFPTT_ALL), xid)


def monitor_request(xid: int) -> bytes:
    """Have the switch tell us when somebody changes entries.

    It tells of all tables, also of those that are not ours: of monitors for all of ours, each would be asked each time.
    """
    message = parser.OFPFlowMonitorRequest(
        PROTOCOL,
        monitor_id=1,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        monitor_flags=ofp.OFPFMF_ADD | ofp.OFPFMF_REMOVED | ofp.OFPFMF_MODIFY,
        table_id=ofp.OFPTT_ALL,
        command=ofp.OFPFMC_ADD,
        match=parser.OFPMatch(),
    )
    return to_bytes(message, xid)


def packet_out(xid: int, port: int, data: bytes) -> bytes:
    """Have the switch send a packet out of a port."""
    size, output = _PACKET_OUT.size + len(data), ofp.OFP_ACTION_OUTPUT_SIZE
    source = ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, output
    action = ofp.OFPAT_OUTPUT, output, port, ofp.OFPCML_MAX
    return _PACKET_OUT.pack(VERSION, ofp.OFPT_PACKET_OUT, size, xid, *source, *action) + data


def packet_in_again(xid: int, port: int, data: bytes) -> bytes:
    """Have the switch look up a packet in its tables, the first one first, as if it had come in on a port."""
    message = parser.OFPPacketOut(
        PROTOCOL, ofp.OFP_NO_BUFFER, port, [parser.OFPActionOutput(ofp.OFPP_TABLE)], data
    )
    return to_bytes(message, xid)


def cookie_of(owner: int | None) -> int:
    """The cookie of an owner's content entries; what removes an entry of nobody's may bear any."""
    return COOKIE | (owner or 0) << 16


def owner_of(cookie: int) -> int | None:
    """The owner of an entry with a cookie; None if it is no owner's."""
    return cookie >> 16 & 0xFFFF if cookie >> 32 == COOKIE >> 32 else None


def entry_mod(
    command: int, table: int, cookie: int, priority: int, match: Any, instructions: Sequence[Any]
) -> Any:
    """What makes, changes or removes an entry of a table, as a message of os-ken's."""
    return parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        table_id=table,
        command=command,
        priority=priority,
        out_port=ofp.OFPP_ANY,  # with os-ken's own 0, a removal would remove nothing
        out_group=ofp.OFPG_ANY,
        match=match,
        instructions=instructions,
    )


def to_bytes(message: Any, xid: int) -> bytes:
    """A message of os-ken's."""
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)
