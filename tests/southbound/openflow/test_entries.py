"""The entries that a switch tells of: which of them are flows, and of which prefix."""

from __future__ import annotations

import random
import struct

import pytest

from flowsieve.flow.entry import Deliver, Flow, Output
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import Masked, MaskedMatch, PrefixMatch, parse_match
from flowsieve.southbound.openflow.entries import SwitchEntry, entries_in, match_in, within
from flowsieve.southbound.openflow.packed import Packer, goto, match_bytes
from flowsieve.southbound.openflow.tables import sorted_out
from flowsieve.southbound.openflow.wire import CONTENT_TABLE, COOKIE, ProtocolError


def prefixes(family: int) -> list[Prefix]:
    """Of every length, two of them."""
    dice = random.Random(family)
    return [
        Prefix(family, dice.getrandbits(length), length)
        for length in range(WIDTH[family] + 1)
        for _ in range(2)
    ]


@pytest.mark.parametrize("family", [4, 6])
def test_a_prefix_is_read_from_the_match_that_it_makes(family: int) -> None:
    for prefix in prefixes(family):
        match = PrefixMatch(prefix)
        assert match_in(match_bytes(match)) == match


@pytest.mark.parametrize("family", [4, 6])
def test_what_differs_from_the_match_of_a_prefix_in_one_byte_is_none_or_that_of_another(family: int) -> None:
    dice = random.Random(family)
    for prefix in prefixes(family):
        match = bytearray(match_bytes(PrefixMatch(prefix)))
        match[dice.randrange(4, len(match))] ^= 1 << dice.randrange(8)
        found = match_in(bytes(match))
        assert found is None or (found != PrefixMatch(prefix) and match_bytes(found) == match)


def test_a_match_with_a_gap_in_its_mask_is_a_masked_one_and_with_bits_beyond_it_none() -> None:
    match = bytearray(match_bytes(PrefixMatch(Prefix(6, 0xFF0E, 16))))
    match[31] = 0x0F  # the mask is ff0f
    assert match_in(bytes(match)) == MaskedMatch(None, Masked.parse("ff0e::/ff0f::"))
    match = bytearray(match_bytes(PrefixMatch(Prefix(6, 0xFF0E, 16))))
    match[16] = 1  # behind the mask
    assert match_in(bytes(match)) is None


def stats(match: bytes, priority: int = 1016, cookie: int = COOKIE) -> bytes:
    length = 48 + len(match)
    return (
        struct.pack("!HBxIIHHHHHxxQQQ", length, CONTENT_TABLE, 7, 8, priority, 0, 0, 0, 0, cookie, 5, 6)
        + match
    )


def test_entries_are_read_one_after_the_other() -> None:
    first, second = (match_bytes(PrefixMatch(Prefix(6, 0xFF0E << n, 16 + n))) for n in (0, 3))
    found = list(entries_in(stats(first) + stats(second, 9, 4)))
    assert found == [
        SwitchEntry(COOKIE, 1016, first, b"", CONTENT_TABLE, 5),
        SwitchEntry(4, 9, second, b"", CONTENT_TABLE, 5),
    ]
    assert found[0].flow == Flow(PrefixMatch(Prefix(6, 0xFF0E, 16)), 1016, ())
    output = struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, 3, 0xFFFF)
    assert found[0]._replace(instructions=output).flow == Flow(
        PrefixMatch(Prefix(6, 0xFF0E, 16)), 1016, (Output(3),)
    )


@pytest.mark.parametrize("cut", [1, 40, 47, 55, 60, 90])
def test_an_entry_that_is_cut_off_is_told(cut: int) -> None:
    whole = stats(match_bytes(PrefixMatch(Prefix(6, 0xFF0E, 16))))
    with pytest.raises(ProtocolError, match=r"cut off|does not add up"):
        list(entries_in(whole[:cut]))


def test_entries_for_labels_are_kept_in_order_in_their_tables_and_nothing_else_there() -> None:
    labels, events = (match_bytes(parse_match(dst)) for dst in ("ff1e::/ffff:8000::", "ff0e::/16"))
    ours = SwitchEntry(COOKIE, 1002, labels, goto(17), 16)
    others = SwitchEntry(7, 9, labels, b"", 20)
    entries = [
        ours,
        others,
        SwitchEntry(COOKIE, 1000, events, b"", 16),
        SwitchEntry(COOKIE, 1002, labels, b"", 3),
    ]
    groups = [Prefix.parse("ff0e::/16"), Prefix.parse("ff1e::/16")]
    assert within(entries, groups) == [ours, others]
    flows = [Flow(parse_match("ff1e::/ffff:8000::"), 1002, (), table=16, onward=17), others.flow]
    assert sorted_out([ours, others], [ours.flow, others.flow]) == (tuple(flows), (), ())


def test_an_entry_that_goes_back_is_no_flow() -> None:
    match = match_bytes(parse_match("ff1e::/16"))
    assert SwitchEntry(COOKIE, 1000, match, goto(16), 1).flow is not None
    assert SwitchEntry(COOKIE, 1000, match, goto(16), 16).flow is None


def test_a_delivery_is_made_in_a_clone_just_where_packets_go_on() -> None:
    """Without one they would go on with the host's address, and what is not as it should be is no flow."""
    match, host = parse_match("ff1e::/16"), Deliver(3, 0x333300000003, Prefix.parse("ff02::f10e:0:3/128"))
    ends, goes_on = (Flow(match, 1001, (Output(1), host), table=16, onward=onward) for onward in (None, 17))
    packer = Packer()
    entries = [
        SwitchEntry(COOKIE, 1001, match_bytes(match), packer.instructions(each), 16)
        for each in (ends, goes_on)
    ]
    assert [entry.flow for entry in entries] == [ends, goes_on]
    assert entries[1].instructions.hex(" ", 4) == (
        "00040060 00000000 00000010 00000001 ffe50000 00000000"  # output
        " ffff0048 00002320 002a0000 00000000"  # clone
        " 00190010 80000606 33330000 00030000 00190018 80003610 ff020000 00000000 0000f10e 00000003"
        " 00000010 00000003 ffe50000 00000000"
        " 00010008 11000000"  # goto
    )
    plain, cloned = (entry.instructions for entry in entries)
    assert entries[0]._replace(instructions=plain + goto(17)).flow is None
    assert entries[1]._replace(instructions=cloned[:-8]).flow is None
    longer = cloned[:-8] + cloned[8:24] + goto(17)  # an output after the delivery
    assert entries[1]._replace(instructions=longer[:2] + b"\0\x70" + longer[4:]).flow is None
    other = cloned.replace(bytes.fromhex("002a"), bytes.fromhex("002b"))
    assert entries[1]._replace(instructions=other).flow is None
