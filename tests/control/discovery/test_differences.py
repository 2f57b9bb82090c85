"""What is found is held against what was described, in sentences."""

from __future__ import annotations

from dataclasses import replace

from as_described import FOUND, NETWORK

from flowsieve.control.discovery.differences import DifferenceKind, differences
from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, SwitchPort


def told(findings: Findings, **options: frozenset[frozenset[str]]) -> list[tuple[DifferenceKind, str]]:
    return [(each.kind, str(each)) for each in differences(findings, NETWORK, **options)]


def test_a_network_that_is_as_described_differs_in_nothing() -> None:
    assert told(FOUND) == []


def test_a_missing_link_is_told_unless_it_is_known_to_be_closed() -> None:
    without = replace(FOUND, links=FOUND.links[:1])
    assert told(without) == [
        (DifferenceKind.LINK_MISSING, "the link s2 (port 2) - s3 (port 1) is missing: nothing comes over it")
    ]
    assert told(without, closed=frozenset({frozenset(("s2", "s3"))})) == []


def test_a_link_in_other_ports_is_told_once() -> None:
    wrong = FoundLink(SwitchPort("s2", 2), SwitchPort("s3", 4))
    assert told(replace(FOUND, links=(FOUND.links[0], wrong))) == [
        (
            DifferenceKind.WRONG_PORT,
            "the link s2 (port 2) - s3 (port 1) is plugged into other ports: s2 (port 2) - s3 (port 4)",
        )
    ]


def test_a_link_that_nobody_described_is_told_with_what_should_be_there() -> None:
    more = FoundLink(SwitchPort("s1", 2), SwitchPort("s3", 4))
    assert told(replace(FOUND, links=(*FOUND.links, more))) == [
        (
            DifferenceKind.LINK_UNKNOWN,
            "the link s1 (port 2) - s3 (port 4) is not in the configuration "
            "(port 2 of switch s1 should lead to ann)",
        )
    ]


def test_a_second_link_beside_a_described_one_is_told() -> None:
    more = FoundLink(SwitchPort("s1", 5), SwitchPort("s2", 5))
    assert told(replace(FOUND, links=(*FOUND.links, more))) == [
        (
            DifferenceKind.LINK_UNKNOWN,
            "the link s1 (port 5) - s2 (port 5) is a second one beside that described",
        )
    ]


def test_a_switch_linked_with_itself_is_told() -> None:
    loop = FoundLink(SwitchPort("s1", 5), SwitchPort("s1", 6))
    assert [kind for kind, _ in told(replace(FOUND, links=(*FOUND.links, loop)))] == [
        DifferenceKind.LINK_UNKNOWN
    ]


def test_a_link_heard_in_one_direction_is_told() -> None:
    ends = SwitchPort("s2", 2), SwitchPort("s3", 1)
    assert told(replace(FOUND, links=FOUND.links[:1], one_sided=(ends,))) == [
        (
            DifferenceKind.ONE_SIDED,
            "the link s2 (port 2) - s3 (port 1) is heard in one direction only: "
            "from port 2 of switch s2 at port 1 of switch s3",
        )
    ]
    strange = SwitchPort("s1", 7), SwitchPort("s3", 7)
    assert [kind for kind, _ in told(replace(FOUND, one_sided=(strange,)))] == [DifferenceKind.ONE_SIDED]


def test_switches_that_are_not_there_or_not_known_are_told_and_their_links_are_not_told_again() -> None:
    assert told(Findings(("s1", "s2", "s9"), FOUND.links[:1], (), FOUND.hosts[:1])) == [
        (
            DifferenceKind.SWITCH_UNKNOWN,
            "switch s9 is connected, and the configuration has none of that name",
        ),
        (DifferenceKind.SWITCH_MISSING, "switch s3 is not connected"),
    ]


def test_a_host_elsewhere_is_told_with_both_places() -> None:
    moved = replace(FOUND.hosts[0], place=SwitchPort("s2", 9))
    assert told(replace(FOUND, hosts=(moved,))) == [
        (
            DifferenceKind.HOST_ELSEWHERE,
            "host ann is at port 9 of switch s2; it should be at port 2 of switch s1",
        )
    ]


def test_a_host_without_a_name_is_taken_for_the_one_that_should_be_there() -> None:
    stranger = FoundHost("h02ff", "02:ff:00:00:00:00", (), FOUND.hosts[0].place)
    assert told(replace(FOUND, hosts=(stranger,))) == []
    lost = replace(stranger, place=SwitchPort("s2", 9))
    assert told(replace(FOUND, hosts=(lost,))) == [
        (
            DifferenceKind.HOST_UNKNOWN,
            "a host that nobody named, 02:ff:00:00:00:00, sends from port 9 of switch s2",
        )
    ]
