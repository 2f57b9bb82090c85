"""Links are found by what crosses them in both directions, hosts by what they send; liars find no belief."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.discovery.differences import differences
from flowsieve.control.discovery.discovery_state import MOST_ADDRESSES, MOST_HOSTS, DiscoveryState
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.discovery.growth import grown
from flowsieve.errors import BadInput, BadTopology
from flowsieve.network.generators import ring
from flowsieve.network.lldp import Beacon
from flowsieve.network.names import Names, SwitchId
from flowsieve.network.topology import Topology
from flowsieve.southbound.fabric import PuntedPacket

KEY = b"what only the controller knows"
NETWORK = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"ann": "s1", "bob": "s2", "cy": "s3", "dee": "s3"}
)
MACS = {host: f"02:00:00:00:00:{n:02x}" for n, host in enumerate(NETWORK.hosts, 1)}


def said(mac: str, address: str = "fd00:f::1") -> bytes:
    """A packet of a host, as far as headers go."""
    ethernet = bytes.fromhex(f"333300000001{mac.replace(':', '')}86dd")
    return ethernet + bytes.fromhex("6000000000081140") + IPv6Address(address).packed + bytes(24)


class Cables:
    """A network whose switches only do what discovery needs, with cables that can be pulled."""

    def __init__(self, network: Topology, names: Names | None = None) -> None:
        self.network = network
        self.names = names or Names(
            {SwitchId(f"id of {switch}"): switch for switch in network.switches},
            {mac: host for host, mac in MACS.items()},
        )
        self.discovery = DiscoveryState(self.names, KEY)
        self.now = 100.0
        self.far: dict[SwitchPort, SwitchPort] = {}
        self.last: dict[SwitchPort, bytes] = {}  # what each port sent last
        for link in network.links:
            a, b = self.place(link.a, link.b), self.place(link.b, link.a)
            self.far |= {a: b, b: a}
        for switch in network.switches:
            self.discovery.connected(switch, self.ports(switch))

    def place(self, switch: str, near: str) -> SwitchPort:
        return SwitchPort(switch, self.network.port(switch, near))

    def ports(self, switch: str) -> dict[int, bool]:
        return dict.fromkeys(range(1, len(self.network.neighbours(switch)) + 1), True)

    def round(self) -> None:
        """All switches send their beacons, and a second goes by."""
        for switch in self.network.switches:
            for port, frame in self.discovery.beacons(switch, self.now):
                self.last[SwitchPort(switch, port)] = frame
                if far := self.far.get(SwitchPort(switch, port)):
                    self.come(far, frame)
        self.now += 1.0

    def come(self, place: SwitchPort, data: bytes) -> None:
        self.discovery.heard(PuntedPacket(place.switch, place.port, data), self.now)

    def speak(self, host: str) -> None:
        endpoint = self.network.endpoint(host)
        self.come(SwitchPort(endpoint.switch, endpoint.port), said(MACS[host], endpoint.address))

    @property
    def edges(self) -> set[frozenset[str]]:
        return {link.edge for link in self.discovery.findings(self.now).links}


def test_a_whole_network_is_found_as_it_is() -> None:
    cables = Cables(NETWORK)
    cables.round()
    for host in NETWORK.hosts:
        cables.speak(host)
    findings = cables.discovery.findings(cables.now)
    assert differences(findings, NETWORK) == ()
    assert findings.one_sided == ()
    assert [host.name for host in findings.hosts] == ["ann", "bob", "cy", "dee"]
    assert findings.hosts[3].addresses == ("fd00:f::4",)
    made = grown(Topology(NETWORK.switches, (), {}), findings)
    for switch in NETWORK.switches:
        near = NETWORK.neighbours(switch)
        assert [made.number(switch, each) for each in near] == [NETWORK.port(switch, each) for each in near]
    assert cables.discovery.rejected == 0


def test_a_link_is_there_until_three_intervals_have_gone_by_in_silence() -> None:
    cables = Cables(NETWORK)
    cables.round()
    del cables.far[SwitchPort("s1", 1)], cables.far[SwitchPort("s2", 1)]
    for seconds in range(1, 4):
        assert (frozenset(("s1", "s2")) in cables.edges) == (seconds < 3)
        cables.round()
    assert cables.edges == {frozenset(("s2", "s3")), frozenset(("s3", "s1"))}


def test_a_link_that_carries_one_direction_only_is_one_sided_and_makes_no_topology() -> None:
    cables = Cables(NETWORK)
    del cables.far[SwitchPort("s1", 1)]  # what s1 sends is lost
    cables.round()
    findings = cables.discovery.findings(cables.now)
    assert findings.one_sided == ((SwitchPort("s2", 1), SwitchPort("s1", 1)),)
    assert frozenset(("s1", "s2")) not in cables.edges
    made = grown(Topology(NETWORK.switches, (), {}), findings)
    assert {frozenset((link.a, link.b)) for link in made.links} == cables.edges


def test_a_cable_that_moves_is_found_at_its_new_place_with_the_next_beacons() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.discovery.port_changed("s2", 7, True)
    cables.far |= {SwitchPort("s1", 1): SwitchPort("s2", 7), SwitchPort("s2", 7): SwitchPort("s1", 1)}
    del cables.far[SwitchPort("s2", 1)]
    cables.discovery.port_changed("s2", 1, False)
    cables.round()
    assert "plugged into other ports: s1 (port 1) - s2 (port 7)" in str(
        differences(cables.discovery.findings(cables.now), NETWORK)[0]
    )


def test_a_port_that_goes_down_takes_its_link_and_hosts_along_at_once() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.speak("ann")
    cables.discovery.port_changed("s1", 1, False)
    cables.discovery.port_changed("s1", 3, False)
    findings = cables.discovery.findings(cables.now)
    assert frozenset(("s1", "s2")) not in cables.edges
    assert findings.one_sided == ()
    assert findings.hosts == ()
    assert {port for port, _ in cables.discovery.beacons("s1", cables.now)} == {2}


def test_a_switch_that_disconnects_is_forgotten_and_found_again() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.discovery.disconnected("s2")
    assert cables.discovery.findings(cables.now).switches == ("s1", "s3")
    assert cables.edges == {frozenset(("s3", "s1"))}
    assert cables.discovery.beacons("s2", cables.now) == []
    cables.discovery.connected("s2", cables.ports("s2"))
    cables.round()
    assert len(cables.edges) == 3


def test_a_frame_that_is_played_back_makes_no_link() -> None:
    cables = Cables(NETWORK)
    cables.round()
    before = cables.discovery.findings(cables.now)
    host_port, other = SwitchPort("s1", 3), SwitchPort("s3", 3)
    cables.come(host_port, cables.last[SwitchPort("s2", 2)])  # heard at s3 before
    assert "heard before" in (cables.discovery.last_rejection or "")
    old = cables.last[other]  # a host got this one and keeps it
    for _ in range(3):
        cables.round()
    cables.come(host_port, old)
    assert "too old" in (cables.discovery.last_rejection or "")
    assert cables.discovery.rejected == 2
    assert cables.discovery.findings(cables.now) == before


def test_a_frame_that_comes_too_late_makes_no_link_though_none_was_sent_since() -> None:
    cables = Cables(NETWORK)
    cables.far.clear()
    cables.round()
    cables.now += 2.0
    cables.come(SwitchPort("s2", 1), cables.last[SwitchPort("s1", 1)])
    assert "too old" in (cables.discovery.last_rejection or "")
    assert cables.discovery.findings(cables.now).one_sided == ()


def test_a_host_that_sends_our_frame_back_makes_no_link() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.come(SwitchPort("s1", 3), cables.last[SwitchPort("s1", 3)])
    assert "hears itself" in (cables.discovery.last_rejection or "")
    assert len(cables.edges) == 3


@pytest.mark.parametrize(
    "frame",
    [
        Beacon(SwitchId("id of s2"), port=3, count=1).frame(b"a key that somebody guessed"),
        Beacon(SwitchId("id of s2"), port=3, count=10_000).frame(KEY),  # signed, and never sent
        Beacon(SwitchId("nobody"), port=1, count=1).frame(KEY),
        b"",
        bytes(14),
    ],
)
def test_a_frame_that_we_did_not_send_changes_nothing_and_is_counted(frame: bytes) -> None:
    cables = Cables(NETWORK)
    cables.round()
    before = cables.discovery.findings(cables.now)
    cables.come(SwitchPort("s1", 3), frame)
    assert cables.discovery.findings(cables.now) == before
    assert cables.discovery.rejected == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["s1", "s2", "s3", "s9"]), st.integers(0, 5), st.binary(max_size=90)),
        max_size=20,
    )
)
def test_random_packets_find_no_link(packets: list[tuple[str, int, bytes]]) -> None:
    cables = Cables(NETWORK)
    for switch, port, data in packets:
        cables.come(SwitchPort(switch, port), data)
    findings = cables.discovery.findings(cables.now)
    assert findings.links == findings.one_sided == ()


def test_a_packet_of_a_host_that_comes_over_a_link_puts_the_host_nowhere() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.come(SwitchPort("s2", 1), said(MACS["ann"]))
    assert cables.discovery.findings(cables.now).hosts == ()
    cables.speak("ann")
    cables.come(SwitchPort("s2", 1), said(MACS["ann"]))
    (host,) = cables.discovery.findings(cables.now).hosts
    assert host.place == SwitchPort("s1", 3)


def test_a_host_heard_before_the_switch_behind_its_port_is_no_host() -> None:
    cables = Cables(NETWORK)
    cables.come(SwitchPort("s2", 1), said(MACS["ann"]))
    assert len(cables.discovery.findings(cables.now).hosts) == 1
    cables.round()
    assert cables.discovery.findings(cables.now).hosts == ()


def test_a_host_that_moves_is_where_it_spoke_last() -> None:
    cables = Cables(NETWORK)
    cables.round()
    cables.speak("ann")
    cables.come(SwitchPort("s3", 4), said(MACS["ann"]))
    (host,) = cables.discovery.findings(cables.now).hosts
    assert host.place == SwitchPort("s3", 4)
    (difference,) = differences(cables.discovery.findings(cables.now), NETWORK)
    assert str(difference) == "host ann is at port 4 of switch s3; it should be at port 3 of switch s1"


def test_a_host_that_invents_senders_gets_a_bounded_place() -> None:
    cables = Cables(NETWORK)
    cables.speak("bob")
    for n in range(1000):
        cables.come(SwitchPort("s1", 3), said(f"02:00:00:01:{n >> 8:02x}:{n & 255:02x}"))
        cables.come(SwitchPort("s2", 3), said(MACS["bob"], f"fd00:f::{n & 255:x}"))
    hosts = cables.discovery.findings(cables.now).hosts
    assert len([host for host in hosts if host.place.switch == "s1"]) == MOST_HOSTS
    (bob,) = [host for host in hosts if host.place.switch == "s2"]
    assert len(bob.addresses) == MOST_ADDRESSES
    assert hosts[MOST_HOSTS - 1].mac == "02:00:00:01:03:e7"  # the last ones stay


def test_switches_are_found_by_the_names_that_labs_give_them() -> None:
    network = ring(4)  # s0 to s3, numbered from 1
    names = Names({SwitchId(f"{n}"): switch for n, switch in enumerate(network.switches, 1)})
    cables = Cables(network, names)
    cables.round()
    assert differences(cables.discovery.findings(cables.now), network) == ()


def test_a_switch_without_an_identity_is_refused() -> None:
    with pytest.raises(BadTopology, match="nobody said"):
        DiscoveryState(Names(), KEY).connected("berlin", {})


@pytest.mark.parametrize("wrong", [{"interval": 0.0}, {"interval": 4000.0}, {"kept": 0}])
def test_intervals_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="right is"):
        DiscoveryState(Names(), KEY, **wrong)  # type: ignore[arg-type]


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Rounds, pulled and plugged cables, switches that leave and return, in any order."""
    what = st.sampled_from(["round", "pull", "plug", "leave", "return"])
    return draw(st.lists(st.tuples(what, st.integers(0, 2)), max_size=30))


@given(stories())
def test_after_any_story_three_quiet_rounds_show_what_is_there(story: list[tuple[str, int]]) -> None:
    cables = Cables(NETWORK)
    whole, pulled, left = dict(cables.far), set(), set()
    for what, n in story:
        switch, link = NETWORK.switches[n], NETWORK.links[n]
        ends = {cables.place(link.a, link.b), cables.place(link.b, link.a)}
        if what == "round":
            cables.round()
        elif what == "pull":
            pulled |= ends
        elif what == "plug":
            pulled -= ends
        elif what == "leave":
            left.add(switch)
            cables.discovery.disconnected(switch)
        else:
            left.discard(switch)
            cables.discovery.connected(switch, cables.ports(switch))
        cables.far = {near: far for near, far in whole.items() if near not in pulled}
    for _ in range(3):
        cables.round()
    expected = {
        frozenset((near.switch, far.switch))
        for near, far in cables.far.items()
        if not {near.switch, far.switch} & left
    }
    assert cables.edges == expected
    findings = cables.discovery.findings(cables.now)
    if findings.switches and not findings.one_sided:
        assert differences(findings, grown(Topology(findings.switches, (), {}), findings)) == ()
