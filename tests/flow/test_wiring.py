"""A topology as numbers."""

from flowsieve.flow.wiring import Wiring
from flowsieve.network.topology import Topology

TOPOLOGY = Topology.make([("s1", "s2"), ("s2", "s3")], {"h1": "s2", "h2": "s1"})


def test_every_slot_leads_where_its_port_leads():
    wiring = Wiring.of(TOPOLOGY)
    for number, switch in enumerate(TOPOLOGY.switches):
        assert wiring.ports(number) == len(TOPOLOGY.neighbours(switch))
        for port, near in enumerate(TOPOLOGY.neighbours(switch), 1):
            slot = int(wiring.first[number]) + port - 1
            assert (wiring.near(slot), wiring.beyond(slot)) == (switch, near)


def test_the_far_end_of_the_far_end_is_where_one_started():
    wiring = Wiring.of(TOPOLOGY)
    links = [slot for slot in range(wiring.slots) if wiring.far[slot] >= 0]
    assert [int(wiring.far[wiring.far[slot]]) for slot in links] == links
    assert len(links) == 4


def test_a_host_is_found_at_its_home():
    wiring = Wiring.of(TOPOLOGY)
    assert [wiring.beyond(int(slot)) for slot in wiring.home] == ["h1", "h2"]
    assert [wiring.near(int(slot)) for slot in wiring.home] == ["s2", "s1"]
