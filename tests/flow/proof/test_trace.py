"""The way of one packet through the tables."""

from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.proof.trace import Step, trace
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch, parse_match
from flowsieve.network.topology import Topology

TRIANGLE = Topology.make([("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"h1": "s1", "h2": "s2", "h3": "s3"})


def to(switch: str, *neighbours: str) -> Flow:
    ports = tuple(Output(TRIANGLE.port(switch, near)) for near in neighbours)
    return Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1000, ports)


def steps(**flows: Flow) -> tuple[Step, ...]:
    return trace(TRIANGLE, {switch: [flow] for switch, flow in flows.items()}, "h1", 6, 0xFF0E << 112)


def test_each_step_names_the_entry_and_where_the_packet_went():
    s1, s2 = to("s1", "s2"), to("s2", "h2", "s1")
    assert steps(s1=s1, s2=s2) == (Step("s1", "h1", s1, ("s2",)), Step("s2", "s1", s2, ("h2",)))


def test_a_miss_is_a_step_without_an_entry():
    assert steps() == (Step("s1", "h1", None, ()),)


def test_a_packet_on_a_loop_is_followed_once_round():
    s1, s2, s3 = to("s1", "s2"), to("s2", "s3"), to("s3", "s1")
    assert [(step.switch, step.came_from) for step in steps(s1=s1, s2=s2, s3=s3)] == [
        ("s1", "h1"),
        ("s2", "s1"),
        ("s3", "s2"),
        ("s1", "s3"),
    ]


def test_a_port_that_is_not_there_leads_nowhere():
    astray = Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1000, (Output(9), Output(3)))
    assert steps(s1=astray) == (Step("s1", "h1", astray, ()),)


def test_entries_that_look_at_the_source_tell_packets_apart():
    match = parse_match("ff0e::/ffff::", "fd00::1/ffff::1")
    tables = {"s1": [Flow(match, 1000, (Output(1),))]}
    (miss,) = trace(TRIANGLE, tables, "h1", 6, 0xFF0E << 112, source=0xFD00 << 112)
    assert (miss.flow, miss.out) == (None, ())
    hit = trace(TRIANGLE, tables, "h1", 6, 0xFF0E << 112, source=0xFD00 << 112 | 1)[0]
    assert hit.flow in tables["s1"]
