"""The embedded network: switches, links, hosts and a clock."""

import numpy as np
import pytest

from flowsieve.errors import BadInput, BadTopology, SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.flat import key_of
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.network.topology import Link, Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork

LINE = Topology.make([Link("s1", "s2", 1.0), Link("s2", "s3", 2.0)], {"h1": "s1", "h2": "s2", "h3": "s3"})
TRIANGLE = Topology.make([("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"h1": "s1", "h2": "s2", "h3": "s3"})
ADDRESS = "ff0e:c800::"


def install(network: EmbeddedNetwork, switch: str, *neighbours: str, prefix: str = "ff0e::/16") -> None:
    ports = tuple(Output(network.topology.port(switch, near)) for near in neighbours)
    network.apply(switch, [FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix.parse(prefix)), 1000, ports))])


def keys(address: int, copies: int = 1) -> tuple[np.ndarray, np.ndarray]:
    hi, lo = key_of(6, address)
    return np.full(copies, hi, np.uint64), np.full(copies, lo, np.uint64)


@pytest.fixture
def line() -> EmbeddedNetwork:
    """Everything goes everywhere."""
    network = EmbeddedNetwork(LINE)
    for switch in LINE.switches:
        install(network, switch, *LINE.neighbours(switch))
    return network


def test_a_packet_reaches_all_others_and_not_its_sender(line):
    line.send("h2", ADDRESS, payload="hello")
    line.settle()
    assert [(d.host, d.dst, d.payload, d.hops) for d in line.deliveries] == [
        ("h1", ADDRESS, "hello", 2),
        ("h3", ADDRESS, "hello", 2),
    ]


def test_links_take_their_time(line):
    line.send("h1", ADDRESS)
    line.advance(0.0015)
    assert [d.host for d in line.deliveries] == ["h2"]
    line.settle()
    assert {d.host: d.at for d in line.deliveries} == pytest.approx({"h2": 0.0011, "h3": 0.0031})


def test_packets_between_switches_are_counted(line):
    line.send("h1", ADDRESS)
    line.settle()
    line.deliver(["h3", "h3"], *keys(0xFF0E << 112, 2))
    assert line.link_packets == {("s1", "s2"): 1, ("s2", "s1"): 2, ("s2", "s3"): 1, ("s3", "s2"): 2}


def test_entries_count_their_packets_on_both_paths(line):
    line.send("h1", ADDRESS)
    line.settle()
    line.deliver(["h2"], *keys(0xFF0E << 112))
    assert [list(line.packets(switch).values()) for switch in LINE.switches] == [[2], [2], [2]]


def test_a_table_miss_drops():
    network = EmbeddedNetwork(LINE)
    network.send("h1", ADDRESS)
    network.settle()
    assert network.deliveries == []


def test_an_address_of_another_family_meets_other_entries(line):
    line.send("h1", "225.128.0.0")
    line.settle()
    assert line.deliveries == []
    install(line, "s1", "s2", prefix="225.128.0.0/9")
    install(line, "s2", "h2", prefix="225.128.0.0/9")
    line.send("h1", "225.168.0.0")
    line.settle()
    assert [(d.host, d.dst) for d in line.deliveries] == [("h2", "225.168.0.0")]


def test_a_packet_on_a_loop_runs_out_of_hops():
    network = EmbeddedNetwork(TRIANGLE)
    for a, b in (("s1", "s2"), ("s2", "s3"), ("s3", "s1")):
        install(network, a, b)
    network.send("h1", ADDRESS)
    network.settle()
    assert network.expired == 1
    assert sum(network.link_packets.values()) == 63
    assert network.deliver(["h1"], *keys(0xFF0E << 112)).expired == 1
    assert network.expired == 2


def test_packets_that_multiply_on_loops_are_stopped():
    full = Topology.make([(a, b) for a in "abcd" for b in "abcd" if a < b], {"h1": "a"})
    network = EmbeddedNetwork(full)
    for switch in full.switches:
        install(network, switch, *full.linked(switch))
    with pytest.raises(SwitchError, match="multiplies on a loop"):
        network.deliver(["h1"], *keys(0xFF0E << 112))


def test_packets_meet_a_slow_switch_as_it_is_at_that_moment():
    network = EmbeddedNetwork(LINE, updates_per_second={"s2": 50})
    install(network, "s1", "s2")
    install(network, "s2", "h2")
    network.send("h1", ADDRESS, payload="early")
    network.advance(0.02)
    assert len(network.read("s2")) == 1
    network.send("h1", ADDRESS, payload="late")
    network.settle()
    assert [d.payload for d in network.deliveries] == ["late"]


def test_capacity_is_per_switch_and_the_peak_is_remembered():
    network = EmbeddedNetwork(LINE, capacity={"s1": 1})
    flows = [Flow(PrefixMatch(Prefix.parse(f"ff0e::/{length}")), 1000, (Output(1),)) for length in (16, 17)]
    ops = [FlowOp(OpKind.INSTALL, flow) for flow in flows]
    assert isinstance(network.apply("s1", ops).error, TableFull)
    assert network.apply("s2", ops).error is None
    network.apply("s2", [FlowOp(OpKind.REMOVE, flow) for flow in flows])
    assert [network.peak(switch) for switch in LINE.switches] == [1, 2, 0]
    assert network.read("s1") == (flows[0],)


def test_a_batch_gives_a_row_per_copy_in_the_order_of_the_packets(line):
    batch = line.deliver(np.array([2, 0, 0]), *keys(0xFF0E << 112, 3))
    assert batch.event.tolist() == [0, 0, 1, 1, 2, 2]
    assert [sorted(batch.host[batch.event == e].tolist()) for e in range(3)] == [[0, 1], [1, 2], [1, 2]]


def test_a_batch_meets_the_tables_after_a_change(line):
    assert len(line.deliver(["h1"], *keys(0xFF0E << 112)).host) == 2
    install(line, "s2", "h2")
    assert line.deliver(["h1"], *keys(0xFF0E << 112)).host.tolist() == [1]


def test_a_batch_has_room_for_deliveries_that_its_beginning_did_not_show(line):
    silent, loud = keys(0, 5000), keys(0xFF0E << 112, 5000)
    hi, lo = (np.concatenate(halves) for halves in zip(silent, loud, strict=True))
    batch = line.deliver(np.zeros(10_000, int), hi, lo)
    assert batch.rows.tolist() == [0] * 5001 + list(range(2, 10_001, 2))
    assert batch.host.reshape(-1, 2).tolist() == [[1, 2]] * 5000


def test_an_empty_batch_delivers_nothing(line):
    assert len(line.deliver([], *keys(0, 0)).event) == 0


def test_a_switch_with_more_than_64_ports_serves_them_all():
    star = Topology.make([], {f"h{i}": "s1" for i in range(150)}, switches=["s1"])
    network = EmbeddedNetwork(star)
    install(network, "s1", *star.neighbours("s1"))
    batch = network.deliver(["h70"], *keys(0xFF0E << 112))
    assert sorted(batch.host.tolist()) == [h for h in range(150) if h != 70]


def test_unknown_names_are_refused_with_a_hint(line):
    for call in (
        lambda: line.read("s4"),
        lambda: line.apply("s4", []),
        lambda: line.peak("s4"),
        lambda: line.send("h4", ADDRESS),
        lambda: line.deliver(["h4"], *keys(0)),
        lambda: EmbeddedNetwork(LINE, capacity={"s4": 1}),
    ):
        with pytest.raises(BadTopology, match=r"'[sh]4'; there are '[sh]1'"):
            call()


def test_bad_figures_are_refused(line):
    with pytest.raises(BadTopology, match="updates per second 0"):
        EmbeddedNetwork(LINE, updates_per_second=0)
    with pytest.raises(BadInput, match="no host number 3"):
        line.deliver(np.array([3]), *keys(0))
    with pytest.raises(BadInput, match="2 publishers for 1"):
        line.deliver(["h1", "h2"], *keys(0))
    with pytest.raises(BadInput, match="'h2' is not an address"):
        line.send("h1", "h2")
    with pytest.raises(BadInput, match="not an address of family 4"):
        line.send("h1", 1 << 32, family=4)
