"""What a switch says, as bytes: the other end of the connections under test."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from os_ken.ofproto import ofproto_v1_4 as ofp

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.southbound.openflow.packed import Packer, match_bytes
from flowsieve.southbound.openflow.ports import Port
from flowsieve.southbound.openflow.wire import CONTENT_TABLE, COOKIE, Frames, OpenFlowFrame


def message(kind: int, xid: int, body: bytes = b"", version: int = 5) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def hello(*versions: int) -> bytes:
    """A hello that lists versions, as Open vSwitch's does; without any, a plain one of version 1.4."""
    if not versions:
        return message(ofp.OFPT_HELLO, 1)
    bitmap = sum(1 << version for version in versions)
    return message(ofp.OFPT_HELLO, 1, struct.pack("!HHI", 1, 8, bitmap), max(versions))


def features(xid: int, datapath: int = 7, tables: int = 254) -> bytes:
    return message(ofp.OFPT_FEATURES_REPLY, xid, struct.pack("!QIBBxxII", datapath, 0, tables, 0, 0, 0))


def barrier(xid: int) -> bytes:
    return message(ofp.OFPT_BARRIER_REPLY, xid)


def bundle(xid: int, number: int, what: int) -> bytes:
    return message(ofp.OFPT_BUNDLE_CONTROL, xid, struct.pack("!IHH", number, what, 3))


def error(xid: int, kind: int, code: int) -> bytes:
    return message(ofp.OFPT_ERROR, xid, struct.pack("!HH", kind, code) + bytes(64))


def role_reply(xid: int, role: int, generation: int) -> bytes:
    return message(ofp.OFPT_ROLE_REPLY, xid, struct.pack("!I4xQ", role, generation))


def role_status(role: int, generation: int) -> bytes:
    body = struct.pack("!IB3xQ", role, ofp.OFPCRR_MASTER_REQUEST, generation)
    return message(ofp.OFPT_ROLE_STATUS, 0, body)


def port_status(port: int, up: bool, reason: int = ofp.OFPPR_MODIFY) -> bytes:
    state = 0 if up else ofp.OFPPS_LINK_DOWN
    desc = struct.pack("!IHxx6sxx16sII", port, 40, bytes(6), b"s1-eth%d" % port, 0, state)
    return message(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", reason) + desc)


def ports(xid: int, *described: Port, more: bool = False) -> bytes:
    body = struct.pack("!HH4x", ofp.OFPMP_PORT_DESC, ofp.OFPMPF_REPLY_MORE if more else 0)
    for port in described:
        name = port.name.encode()
        body += struct.pack("!IHxx6sxx16sII", port.number, 40, port.mac, name, port.config, port.state)
    return message(ofp.OFPT_MULTIPART_REPLY, xid, body)


def no_groups(xid: int) -> bytes:
    return message(ofp.OFPT_MULTIPART_REPLY, xid, struct.pack("!HH4x", ofp.OFPMP_GROUP_DESC, 0))


def packet_in(port: int, data: bytes) -> bytes:
    match = struct.pack("!HHII4x", 1, 12, 0x80000004, port)
    head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(data), 0, 0, 0)
    return message(ofp.OFPT_PACKET_IN, 0, head + match + b"\0\0" + data)


def stats(xid: int, flows: Iterable[Flow], more: bool = False, cookie: int = COOKIE) -> bytes:
    body = struct.pack("!HH4x", ofp.OFPMP_FLOW, ofp.OFPMPF_REPLY_MORE if more else 0)
    for flow in flows:
        match = match_bytes(flow.match)
        instructions = Packer().pack(0, [FlowOp(OpKind.INSTALL, flow)])[48 + len(match) :]
        length = 48 + len(match) + len(instructions)
        head = length, CONTENT_TABLE, 0, 0, flow.priority, 0, 0, 0, 0, cookie, 0, 0
        body += struct.pack("!HBxIIHHHHHxxQQQ", *head)
        body += match + instructions
    return message(ofp.OFPT_MULTIPART_REPLY, xid, body)


def frames(data: bytes) -> list[OpenFlowFrame]:
    """Messages that we sent, told apart."""
    return list(Frames().feed(data))


def asks_for_entries(frame: OpenFlowFrame) -> bool:
    return frame.type == ofp.OFPT_MULTIPART_REQUEST and frame.data[8:10] == struct.pack("!H", ofp.OFPMP_FLOW)


def monitored(*events: int, cookie: int = 0, table: int = 0) -> bytes:
    """What a switch tells of entries that changed; our own changes come abbreviated, others with their cookie."""
    body = struct.pack("!HH4x", ofp.OFPMP_FLOW_MONITOR, 0)
    for event in events:
        if event == ofp.OFPFME_ABBREV:
            body += struct.pack("!HHI", 8, event, 7)
        else:
            match = struct.pack("!HH4x", ofp.OFPMT_OXM, 4)
            body += struct.pack("!HHBBHHH4xQ", 24 + len(match), event, table, 0, 0, 0, 0, cookie) + match
    return message(ofp.OFPT_MULTIPART_REPLY, 4, body)
