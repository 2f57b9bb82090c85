"""A network grows by what is found, and keeps what it has."""

from __future__ import annotations

from dataclasses import replace

from as_described import FOUND, NETWORK, found
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.discovery.differences import DifferenceKind, differences
from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, SwitchPort
from flowsieve.control.discovery.growth import grown
from flowsieve.network.generators import ring
from flowsieve.network.topology import Topology


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
    links = tuple(FoundLink(SwitchPort(a, at), SwitchPort(b, to)) for (a, b), (at, to) in ports.items())
    host = FoundHost("ann", "02:00:00:00:00:01", (), SwitchPort("s1", 30))
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
    second = FoundLink(SwitchPort("s1", 5), SwitchPort("s2", 5))
    itself = FoundLink(SwitchPort("s1", 6), SwitchPort("s1", 7))
    elsewhere = FoundLink(SwitchPort("s1", 2), SwitchPort("s3", 9))  # ann should be there
    beside = replace(FOUND.hosts[0], name="dee", mac="02:00:00:00:00:09")
    moved = replace(FOUND.hosts[1], place=SwitchPort("s2", 9))
    odd = replace(
        FOUND, links=(*FOUND.links, second, itself, elsewhere), hosts=(FOUND.hosts[0], moved, beside)
    )
    assert grown(NETWORK, odd) is NETWORK
    kinds = [each.kind for each in differences(odd, NETWORK)]
    assert kinds == [DifferenceKind.LINK_UNKNOWN] * 3 + [DifferenceKind.HOST_ELSEWHERE]


@given(networks(), networks())
def test_growing_by_anything_keeps_every_port_that_was_known(known: Topology, other: Topology) -> None:
    new = grown(known, found(other))
    for switch in known.switches:
        assert numbers(known, switch).items() <= numbers(new, switch).items()
    assert list(new.hosts)[: len(known.hosts)] == list(known.hosts)
    assert grown(new, found(other)) is new
