"""OpenFlow messages: the packed encoder is os-ken's to the byte, and what is read is what was packed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Deliver, Flow, Output
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import Masked, Match, PrefixMatch, match_on
from flowsieve.southbound.openflow import plain_flow_mods, wire
from flowsieve.southbound.openflow.entries import SwitchEntry, entries_in
from flowsieve.southbound.openflow.packed import Packer, match_bytes


@st.composite
def prefixes(draw: st.DrawFn) -> Prefix:
    family = draw(st.sampled_from((4, 6)))
    length = draw(st.integers(0, WIDTH[family]) | st.sampled_from((0, 1, 16, WIDTH[family])))
    return Prefix(family, draw(st.integers(0, (1 << length) - 1)), length)


def masked(family: int) -> st.SearchStrategy[Masked]:
    whole = (1 << WIDTH[family]) - 1
    masks = st.integers(0, whole) | st.sampled_from((0, 1, whole, whole - 1, 0xFF << WIDTH[family] - 8))
    return st.builds(lambda value, mask: Masked(family, value & mask, mask), st.integers(0, whole), masks)


@st.composite
def masked_matches(draw: st.DrawFn) -> Match:
    """Of any bits; some are prefixes after all."""
    family = draw(st.sampled_from((4, 6)))
    return match_on(draw(st.none() | masked(family)), draw(masked(family)))


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    match = draw(st.builds(PrefixMatch, prefixes()) | masked_matches())
    family, ports = match.family, st.integers(1, 12) | st.integers(1, 0xFFFFFF00)
    macs, addresses = st.integers(0, (1 << 48) - 1), st.integers(0, (1 << WIDTH[family]) - 1)
    whole = st.builds(Prefix, st.just(family), addresses, st.just(WIDTH[family]))
    plain = draw(st.lists(st.builds(Output, ports), max_size=6))
    delivered = draw(st.lists(st.builds(Deliver, ports, macs, whole), max_size=3))
    table = draw(st.integers(0, 253))
    onward = draw(st.none() | st.integers(table + 1, 254))
    return Flow(match, draw(st.integers(0, 0xFFFF)), (*plain, *delivered), table=table, onward=onward)


@given(
    ops=st.lists(st.builds(FlowOp, st.sampled_from(OpKind), flows()), min_size=1, max_size=4),
    first=st.integers(0, (1 << 32) - 5),
    bundle=st.none() | st.integers(0, (1 << 32) - 1),
    decrement=st.booleans(),
    grouped=st.frozensets(st.integers(1, 12)),
)
def test_packed_flow_mods_are_os_kens_to_the_byte(ops, first, bundle, decrement, grouped):
    numbered = list(enumerate(ops, first))
    if bundle is None:
        plain = [plain_flow_mods.flow_mod(xid, op, decrement, grouped) for xid, op in numbered]
    else:
        plain = [
            plain_flow_mods.bundled_flow_mod(xid, bundle, op, decrement, grouped) for xid, op in numbered
        ]
    assert Packer(decrement, grouped).pack(first, ops, bundle) == b"".join(plain)


@given(
    flow=flows(),
    decrement=st.booleans(),
    cookie=st.integers(0, (1 << 64) - 1),
    grouped=st.frozensets(st.integers(1, 12)),
)
def test_an_entry_is_read_as_the_flow_that_was_packed(flow, decrement, cookie, grouped):
    message = Packer(decrement, grouped).pack(1, [FlowOp(OpKind.INSTALL, flow)])
    match = match_bytes(flow.match)
    entry = SwitchEntry(cookie, flow.priority, match, message[48 + len(match) :], flow.table)
    assert entry.flow == flow
    assert entry.destination is not None and flow.match.within(entry.destination)
    if isinstance(flow.match, PrefixMatch):
        assert entry.destination == flow.match.destination
    assert (entry.owner is None) == (cookie >> 32 != wire.COOKIE >> 32)


@given(match=st.binary(max_size=80), instructions=st.binary(max_size=80), cut=st.integers(0, 200))
def test_no_bytes_break_the_reading_of_entries(match, instructions, cut):
    match = struct.pack("!HH", 1, 4 + len(match)) + match + bytes(-(4 + len(match)) % 8)
    head = struct.pack("!HBxIIHHHHHxxQQQ", 48 + len(match) + len(instructions), *(0,) * 11)
    body = head + match + instructions
    (entry,) = entries_in(body)
    assert (entry.match, entry.instructions) == (match, instructions)
    if entry.flow is not None:
        assert match_bytes(entry.flow.match) == match
    if 0 < cut < len(body):
        with pytest.raises(wire.ProtocolError):
            list(entries_in(body[:cut]))
