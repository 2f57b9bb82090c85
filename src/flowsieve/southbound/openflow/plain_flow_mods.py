"""Flow-mods by os-ken: the plain twin of `packed.Packer`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Deliver
from flowsieve.header.address import WIDTH, address_text
from flowsieve.southbound.openflow.packed import CLONES, NICIRA
from flowsieve.southbound.openflow.wire import (
    BUNDLE_FLAGS,
    COMMANDS,
    CONTENT_TABLE,
    ETH_TYPES,
    FIELDS,
    LINK_GROUPS,
    PROTOCOL,
    SOURCE_FIELDS,
    cookie_of,
    entry_mod,
    to_bytes,
)


def flow_mod(xid: int, op: FlowOp, decrement: bool, grouped: Collection[int] = ()) -> bytes:
    """An operation on an entry; the plain twin of `packed.Packer`."""
    return to_bytes(_flow_mod(op, decrement, grouped), xid)


def bundled_flow_mod(
    xid: int, bundle: int, op: FlowOp, decrement: bool, grouped: Collection[int] = ()
) -> bytes:
    """The same inside a bundle."""
    message = _flow_mod(op, decrement, grouped)
    return to_bytes(parser.OFPBundleAddMsg(PROTOCOL, bundle, BUNDLE_FLAGS, message, []), xid)


def _flow_mod(op: FlowOp, decrement: bool, grouped: Collection[int]) -> Any:
    family = op.flow.match.family
    fields: dict[str, object] = {"eth_type": ETH_TYPES[family]}
    for name, part in zip((SOURCE_FIELDS[family], FIELDS[family]), op.flow.match.parts, strict=True):
        if part is not None and part.mask:
            value, mask = (address_text(family, number) for number in (part.value, part.mask))
            fields[name] = (value, mask) if part.mask + 1 != 1 << WIDTH[family] else value
    flow, instructions = op.flow, []
    if op.kind is not OpKind.REMOVE and (flow.actions or flow.onward is not None):
        actions = [parser.OFPActionDecNwTtl()] if decrement and flow.table == CONTENT_TABLE else []
        for action in flow.actions:
            if isinstance(action, Deliver):
                copy = _delivery(action)
                actions += copy if flow.onward is None else [_clone(copy)]
            elif action.port in grouped:
                actions += [parser.OFPActionGroup(LINK_GROUPS[action.port])]
            else:
                actions += [parser.OFPActionOutput(action.port)]
        if actions:
            instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
        if flow.onward is not None:
            instructions.append(parser.OFPInstructionGotoTable(flow.onward))
    match, cookie = parser.OFPMatch(**fields), cookie_of(flow.owner)
    return entry_mod(COMMANDS[op.kind], flow.table, cookie, flow.priority, match, instructions)


def _delivery(action: Deliver) -> list[Any]:
    family = action.address.family
    return [
        parser.OFPActionSetField(eth_dst=action.mac.to_bytes(6).hex(":")),
        parser.OFPActionSetField(**{FIELDS[family]: address_text(family, action.address.first)}),
        parser.OFPActionOutput(action.port),
    ]


def _clone(actions: list[Any]) -> Any:
    """What os-ken has no class for: a subtype, padding, and the actions."""
    packed = bytearray()
    for action in actions:
        action.serialize(packed, len(packed))
    return parser.OFPActionExperimenterUnknown(NICIRA, CLONES.to_bytes(2) + bytes(6) + bytes(packed))
