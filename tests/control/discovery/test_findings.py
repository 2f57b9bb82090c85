"""What is found is held against what was described, in sentences."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.discovery.differences import DifferenceKind, differences
from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, Place
from flowsieve.control.discovery.growth import grown
from flowsieve.network.generators import ring
from flowsieve.network.topology import Topology

NETWORK = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1", "bob": "s3", "cy": "s3"})


def found(topology: Topology) -> Findings:
    """What discovery finds where all is as described."""

    def place(switch: str, near: str) -> Place:
        return Place(switch, topology.number(switch, near))

    links = [FoundLink(place(link.a, link.b), place(link.b, link.a)) for link in topology.links]
    hosts = [
        FoundHost(host, f"02:00:00:00:00:{n:02x}", (topology.endpoint(host).address,), place(switch, host))
        for n, (host, switch) in enumerate(topology.hosts.items())
    ]
    return Findings(topology.switches, tuple(links), (), tuple(hosts))


FOUND = found(NETWORK)


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
    wrong = FoundLink(Place("s2", 2), Place("s3", 4))
    assert told(replace(FOUND, links=(FOUND.links[0], wrong))) == [
        (
            DifferenceKind.WRONG_PORT,
            "the link s2 (port 2) - s3 (port 1) is plugged into other ports: s2 (port 2) - s3 (port 4)",
        )
    ]


def test_a_link_that_nobody_described_is_told_with_what_should_be_there() -> None:
    more = FoundLink(Place("s1", 2), Place("s3", 4))
    assert told(replace(FOUND, links=(*FOUND.links, more))) == [
        (
            DifferenceKind.LINK_UNKNOWN,
            "the link s1 (port 2) - s3 (port 4) is not in the configuration "
            "(port 2 of switch s1 should lead to ann)",
        )
    ]


def test_a_second_link_beside_a_described_one_is_told() -> None:
    more = FoundLink(Place("s1", 5), Place("s2", 5))
    assert told(replace(FOUND, links=(*FOUND.links, more))) == [
        (
            DifferenceKind.LINK_UNKNOWN,
            "the link s1 (port 5) - s2 (port 5) is a second one beside that described",
        )
    ]


def test_a_switch_linked_with_itself_is_told() -> None:
    loop = FoundLink(Place("s1", 5), Place("s1", 6))
    assert [kind for kind, _ in told(replace(FOUND, links=(*FOUND.links, loop)))] == [
        DifferenceKind.LINK_UNKNOWN
    ]


def test_a_link_heard_in_one_direction_is_told() -> None:
    ends = Place("s2", 2), Place("s3", 1)
    assert told(replace(FOUND, links=FOUND.links[:1], one_sided=(ends,))) == [
        (
            DifferenceKind.ONE_SIDED,
            "the link s2 (port 2) - s3 (port 1) is heard in one direction only: "
            "from port 2 of switch s2 at port 1 of switch s3",
        )
    ]
    strange = Place("s1", 7), Place("s3", 7)
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
    moved = replace(FOUND.hosts[0], place=Place("s2", 9))
    assert told(replace(FOUND, hosts=(moved,))) == [
        (
            DifferenceKind.HOST_ELSEWHERE,
            "host ann is at port 9 of switch s2; it should be at port 2 of switch s1",
        )
    ]


def test_a_host_without_a_name_is_taken_for_the_one_that_should_be_there() -> None:
    stranger = FoundHost("h02ff", "02:ff:00:00:00:00", (), FOUND.hosts[0].place)
    assert told(replace(FOUND, hosts=(stranger,))) == []
    lost = replace(stranger, place=Place("s2", 9))
    assert told(replace(FOUND, hosts=(lost,))) == [
        (
            DifferenceKind.HOST_UNKNOWN,
            "a host that nobody named, 02:ff:00:00:00:00, sends from port 9 of switch s2",
        )
    ]


def topology_found(findings: Findings) -> Topology:
    """What is found where nothing was known."""
    return grown(Topology(findings.switches, (), {}), findings)


def test_a_topology_is_made_of_what_was_found() -> None:
    assert topology_found(FOUND) == NETWORK


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    switches = [f"s{n}" for n in range(draw(st.integers(1, 7)))]
    pairs = [(a, b) for a in switches for b in switches if a < b]
    links = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    homes = draw(st.lists(st.sampled_from(switches), max_size=8))
    plain = Topology.make(links, {f"h{n}": home for n, home in enumerate(homes)}, switches)
    own = {
        switch: dict(zip(near, draw(st.permutations([3 * n + 1 for n in range(len(near))])), strict=True))
        for switch in draw(st.sets(st.sampled_from(switches)))
        if (near := plain.neighbours(switch))
    }
    return Topology.make(links, plain.hosts, switches, own)


def numbers(topology: Topology, switch: str) -> dict[str, int]:
    return {near: topology.number(switch, near) for near in topology.neighbours(switch)}


@given(networks(), st.randoms())
def test_what_is_found_of_any_topology_makes_one_with_the_same_ports(
    network: Topology, random: object
) -> None:
    findings = found(network)
    made = topology_found(findings)
    assert differences(findings, made) == ()
    assert made.switches == network.switches
    for switch in network.switches:
        assert numbers(made, switch) == numbers(network, switch)
    links, hosts = list(findings.links), list(findings.hosts)
    random.shuffle(links)  # type: ignore[attr-defined]
    random.shuffle(hosts)  # type: ignore[attr-defined]
    assert topology_found(replace(findings, links=tuple(links), hosts=tuple(hosts))) == made


def test_hosts_keep_the_order_of_their_addresses() -> None:
    network = Topology.make([("s1", "s2")], {"b": "s2", "a": "s1", "c": "s2"})
    assert list(topology_found(found(network)).hosts) == ["b", "a", "c"]


def test_ports_in_any_order_and_with_gaps_make_a_topology() -> None:
    ports = {("s0", "s1"): (1, 2), ("s1", "s2"): (1, 2), ("s2", "s0"): (1, 9)}
    links = tuple(FoundLink(Place(a, at), Place(b, to)) for (a, b), (at, to) in ports.items())
    host = FoundHost("ann", "02:00:00:00:00:01", (), Place("s1", 30))
    made = topology_found(Findings(ring(3).switches, links, (), (host,)))
    assert {(a, b): (made.number(a, b), made.number(b, a)) for a, b in ports} == ports
    assert made.behind("s1", 30) == "ann"


def test_a_network_grows_by_what_is_found_and_keeps_what_it_was() -> None:
    small = Topology.make([("s1", "s2")], {"ann": "s1"})
    new = grown(small, FOUND)
    assert new.switches == NETWORK.switches
    assert list(new.hosts) == ["ann", "bob", "cy"]
    assert differences(FOUND, new) == ()
    assert grown(new, FOUND) is new
    assert grown(new, Findings(())) is new  # what is not heard of now stays known


def test_what_does_not_fit_is_left_out_and_stays_a_difference() -> None:
    second = FoundLink(Place("s1", 5), Place("s2", 5))
    itself = FoundLink(Place("s1", 6), Place("s1", 7))
    elsewhere = FoundLink(Place("s1", 2), Place("s3", 9))  # ann should be there
    beside = replace(FOUND.hosts[0], name="dee", mac="02:00:00:00:00:09")
    moved = replace(FOUND.hosts[1], place=Place("s2", 9))
    odd = replace(
        FOUND, links=(*FOUND.links, second, itself, elsewhere), hosts=(FOUND.hosts[0], moved, beside)
    )
    assert grown(NETWORK, odd) is NETWORK
    kinds = [kind for kind, _ in told(odd)]
    assert kinds == [DifferenceKind.LINK_UNKNOWN] * 3 + [DifferenceKind.HOST_ELSEWHERE]


@given(networks(), networks())
def test_growing_by_anything_keeps_every_port_that_was_known(known: Topology, other: Topology) -> None:
    new = grown(known, found(other))
    for switch in known.switches:
        assert numbers(known, switch).items() <= numbers(new, switch).items()
    assert list(new.hosts)[: len(known.hosts)] == list(known.hosts)
    assert grown(new, found(other)) is new
