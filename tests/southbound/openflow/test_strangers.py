"""What entries of others may match and do, told from the bytes that a switch sends."""

from __future__ import annotations

from typing import Any

import pytest
from os_ken.ofproto import ofproto_v1_4 as ofp
from os_ken.ofproto import ofproto_v1_4_parser as parser

from flowsieve.flow.others import Foreign, SentCopy
from flowsieve.header.address import Prefix
from flowsieve.header.tag import LABEL_GROUPS
from flowsieve.southbound.openflow.entries import SwitchEntry
from flowsieve.southbound.openflow.fabric import GROUPS
from flowsieve.southbound.openflow.strangers import foreign, foreign_in
from flowsieve.southbound.openflow.wire import (
    ADMISSION_TABLE,
    CONTENT_TABLE,
    COOKIE,
    GUARD_COOKIE,
    SERVICE_COOKIE,
)

IPV6 = {"eth_type": 0x86DD}
EVENTS = IPV6 | {"ipv6_dst": ("ff00::", "ff00::")}
FF = Prefix.parse("ff00::/8")
ONWARDS = parser.OFPInstructionGotoTable(CONTENT_TABLE)


def entry(
    fields: dict[str, Any],
    *actions: Any,
    more: tuple[Any, ...] = (),
    table: int = CONTENT_TABLE,
    cookie: int = 0,
) -> SwitchEntry:
    match, instructions = bytearray(), bytearray()
    parser.OFPMatch(**fields).serialize(match, 0)
    apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, list(actions))] if actions else []
    for each in (*apply, *more):
        each.serialize(instructions, len(instructions))
    return SwitchEntry(cookie, 3000, bytes(match), bytes(instructions), table)


def admitting(*given: Any, **more: Any) -> SwitchEntry:
    return entry(*given, table=ADMISSION_TABLE, **more)


def out(port: int) -> Any:
    return parser.OFPActionOutput(port)


def told(*given: Any, **more: Any) -> Foreign:
    found = foreign(entry(*given, **more))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"eth_type": 0x0806},
        {"eth_type": 0x88CC},
        IPV6 | {"ip_proto": 6},
        IPV6 | {"ip_proto": 17, "udp_dst": 53},
        {"vlan_vid": 0x1007},
        {"eth_dst": "01:80:c2:00:00:0e"},
        {"eth_dst": "02:00:00:00:00:01"},
    ],
)
def test_what_no_event_has_is_matched_by_none(fields: dict[str, Any]) -> None:
    assert foreign(entry(fields)) is None


@pytest.mark.parametrize(
    ("fields", "reach", "certain", "in_port"),
    [
        ({}, None, True, None),
        (IPV6, Prefix(6, 0, 0), True, None),
        (EVENTS, FF, True, None),
        (EVENTS | {"ip_proto": 17, "udp_dst": 9559}, FF, True, None),
        (EVENTS | {"vlan_vid": 0}, FF, True, None),
        (EVENTS | {"in_port": 3}, FF, True, 3),
        ({"eth_dst": ("01:00:00:00:00:00", "01:00:00:00:00:00")}, None, True, None),
        ({"eth_dst": "33:33:00:00:00:00"}, None, False, None),
        (EVENTS | {"ipv6_src": "fd00::1"}, FF, False, None),
        (EVENTS | {"ip_dscp": 4}, FF, False, None),
        (IPV6 | {"ipv6_dst": ("ff00::1", "ff00::f")}, FF, False, None),
        (
            {"eth_type": 0x0800, "ipv4_dst": ("225.128.0.0", "255.128.0.0")},
            Prefix.parse("225.128.0.0/9"),
            True,
            None,
        ),
    ],
)
def test_what_a_match_asks_of_events(
    fields: dict[str, Any], reach: Prefix | None, certain: bool, in_port: int | None
) -> None:
    found = told(fields)
    assert (found.reach, found.certain, found.in_port) == (reach, certain, in_port)


def test_what_an_entry_does_is_read_action_by_action() -> None:
    assert told(EVENTS).copies == ()
    assert told(EVENTS, out(2), parser.OFPActionDecNwTtl(), out(3)).copies == (SentCopy(2), SentCopy(3))
    assert told(EVENTS, out(ofp.OFPP_CONTROLLER), out(ofp.OFPP_LOCAL)).copies == ()
    changed = told(
        EVENTS,
        out(2),
        parser.OFPActionSetField(eth_dst="33:33:00:00:00:09"),
        out(3),
        parser.OFPActionSetField(ipv6_dst="ff02::9"),
        out(4),
    )
    nine = Prefix.parse("ff02::9/128")
    assert changed.copies == (SentCopy(2), SentCopy(3, 0x333300000009), SentCopy(4, 0x333300000009, nine))
    assert changed.riddle is None
    assert told(EVENTS, out(ofp.OFPP_NORMAL)).floods
    assert told(EVENTS, out(2), more=(parser.OFPInstructionMeter(1),)).perhaps
    assert told(EVENTS).text == "table=1 priority=3000 eth_type=0x86dd,ipv6_dst=ff00::/ff00:: -> drop"


@pytest.mark.parametrize(
    "strange",
    [
        entry(EVENTS, parser.OFPActionGroup(7)),
        entry(EVENTS, parser.OFPActionPushVlan()),
        entry(EVENTS, parser.OFPActionSetField(eth_src="02:00:00:00:00:01"), out(2)),
        entry(EVENTS, out(ofp.OFPP_IN_PORT)),
        entry(EVENTS, more=(parser.OFPInstructionGotoTable(7),)),
        entry(EVENTS, more=(parser.OFPInstructionActions(ofp.OFPIT_WRITE_ACTIONS, [out(2)]),)),
        entry(EVENTS)._replace(instructions=b"\0\4\0\0"),
        entry(EVENTS)._replace(instructions=b"\0\4\0\x10" + bytes(4) + b"\0\0\0\0" + bytes(4)),
    ],
)
def test_what_is_not_understood_is_a_riddle(strange: SwitchEntry) -> None:
    found = foreign(strange)
    assert found is not None
    assert found.riddle is not None


def test_ours_what_is_in_our_groups_and_what_reaches_none_of_them_is_not_told() -> None:
    held = [
        admitting(EVENTS, more=(ONWARDS,), cookie=GUARD_COOKIE),
        entry(EVENTS, cookie=COOKIE),
        entry(IPV6 | {"ipv6_dst": ("ff0e:c000::", "ffff:e000::")}),
        entry(IPV6 | {"ipv6_dst": ("fd00::", "ff00::")}),
        entry(EVENTS, table=CONTENT_TABLE + 1),
        entry(IPV6 | {"ip_proto": 17, "udp_dst": 7421, "ipv6_dst": "ff02::f10e:c0:1"}, cookie=SERVICE_COOKIE),
        entry(EVENTS),
        entry(EVENTS | {"in_port": 4}, cookie=SERVICE_COOKIE),  # no service entry of ours matches events
    ]
    assert [each.in_port for each in foreign_in(held, GROUPS)] == [None, 4]


def test_a_table_before_the_contents_comes_first_and_has_to_let_events_go_on() -> None:
    opening = admitting(EVENTS, more=(ONWARDS,), cookie=GUARD_COOKIE)._replace(priority=5)
    (miss,) = foreign_in([], GROUPS)
    assert (miss.certain, miss.reach, miss.copies, miss.ahead) == (True, None, (), 1)
    assert foreign_in([opening], GROUPS) == ()
    higher, lower = admitting(EVENTS), admitting(EVENTS)._replace(priority=4)
    guard = admitting(EVENTS | {"in_port": 3}, cookie=COOKIE)._replace(priority=4000)
    (found,) = foreign_in([opening, higher, lower], GROUPS)
    assert (found.certain, found.ahead, found.rank) == (True, 1, (1 << 16) + 3000)
    (found,) = foreign_in([opening, guard, higher], GROUPS)
    assert not found.certain
    (found,) = foreign_in([opening, admitting(EVENTS, more=(ONWARDS,))], GROUPS)
    assert (found.goes_on, found.riddle) == (True, None)


def test_in_tables_for_labels_what_reaches_beyond_them_is_told_for_each_group_that_comes_there() -> None:
    receivers, bloom = ({"eth_type": 0x86DD, "ipv6_dst": (f"{tag}::", "ffff::")} for tag in ("ff1e", "ff1d"))
    opening = admitting(EVENTS, more=(ONWARDS,), cookie=GUARD_COOKIE)._replace(priority=5)
    ours = entry(receivers, out(2), table=16, cookie=COOKIE)._replace(priority=1001)

    def found(strange: SwitchEntry, *beside: SwitchEntry) -> tuple[Foreign, ...]:
        return foreign_in([opening, *beside, strange], GROUPS)

    (there,) = found(entry(EVENTS, out(3), table=16), ours)
    assert (str(there.reach), there.certain, there.ahead) == ("ff1e::/16", True, 0)
    assert there.text.startswith("table=16 priority=3000")
    assert not any(there.within(group) for group in GROUPS if group not in LABEL_GROUPS), "no dz come there"
    also = entry(bloom, out(2), table=16, cookie=COOKIE)._replace(priority=3000)
    assert [(str(each.reach), each.certain) for each in found(entry({}, table=16), ours, also)] == [
        ("ff1e::/16", True),
        ("ff1d::/16", False),
    ]
    assert found(entry(EVENTS, table=16)._replace(priority=1000), ours) == (), "ours come before it"
    assert found(entry(EVENTS, table=17), ours) == (), "nothing comes there"
    assert found(entry(receivers, table=16), ours) == (), "it is set right by whoever owns labels"
