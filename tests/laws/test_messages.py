"""OpenFlow messages: the packed encoder is os-ken's to the byte, and what is read is what was packed."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.flow.diff import Change, FlowOp, OpKind, flow_op
from flowsieve.flow.entry import Deliver, Flow, Output
from flowsieve.flow.entry_steps import EntrySteps, PortActions
from flowsieve.flow.owner import MAX_OWNER
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.encoding import encoding_of
from flowsieve.header.match import Masked, Match, PrefixMatch, match_on
from flowsieve.index.dz import Dz
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


@st.composite
def dzs(draw: st.DrawFn) -> Dz:
    length = draw(st.integers(0, 23))
    return Dz(draw(st.integers(0, (1 << length) - 1)), length)


def port_sets():
    return st.lists(st.integers(1, 12), unique=True, max_size=5).map(sorted).map(tuple)


@given(
    header=st.sampled_from(["ipv4", "ipv6"]),
    entries=st.lists(
        st.tuples(dzs(), st.none() | port_sets(), st.none() | port_sets()).filter(
            lambda each: each[1] != each[2]
        ),
        max_size=8,
    ),
    delivering=st.frozensets(st.integers(1, 12)),
    owner=st.integers(0, MAX_OWNER),
    first=st.integers(0, (1 << 32) - 9),
    bundle=st.none() | st.integers(0, (1 << 32) - 1),
    decrement=st.booleans(),
    grouped=st.frozensets(st.integers(1, 12)),
)
def test_steps_are_packed_as_the_operations_that_they_are(
    header, entries, delivering, owner, first, bundle, decrement, grouped
):
    encoding, packer = encoding_of(header), Packer(decrement, grouped)
    width = WIDTH[encoding.family]
    deliveries = {port: Deliver(port, port, Prefix(encoding.family, port, width)) for port in delivering}
    changes = [Change(dz, old, new) for dz, old, new in entries]
    steps = EntrySteps(changes, encoding, PortActions(deliveries), owner)
    plain = [flow_op(change, encoding, deliveries) for change in changes]
    plain = [FlowOp(op.kind, replace(op.flow, owner=owner)) for op in plain]
    assert (list(steps), [op.flow.owner for op in steps]) == (plain, [owner] * len(plain))
    for _ in range(2):  # what it remembers is right as well
        assert packer.pack(first, steps, bundle) == packer.pack(first, plain, bundle)


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
