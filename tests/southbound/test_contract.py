"""What a controller may rely on, whatever the switches are: embedded ones, or Open vSwitch's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from vswitch import OpenVSwitch, wait_for

from flowsieve.errors import BadTopology, SwitchError, TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Action, Deliver, Flow, Output
from flowsieve.flow.flat import look_up
from flowsieve.flow.table_chain import met
from flowsieve.header.address import Prefix, address_text
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.match import Masked, Match, PrefixMatch, match_on, parse_match
from flowsieve.network.topology import Topology
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import Switches, Ticket
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

PORTS, ROOM = 4, 5
NETWORK = Topology.make(
    [("s1", "s2"), ("s2", "small"), ("small", "s1")],
    {f"{switch}h{i}": switch for switch in ("s1", "s2", "small") for i in range(PORTS - 2)},
)


@dataclass(frozen=True)
class Bench:
    """Three empty switches; the one named `small` has room for five entries."""

    switches: Switches

    def apply(self, *ops: FlowOp, switch: str = "s1") -> Ticket:
        ticket = self.switches.apply(switch, ops)
        self.switches.settle()
        return ticket

    def table(self, switch: str = "s1") -> set[Flow]:
        flows = self.switches.read(switch)
        assert len(set(flows)) == len(flows)
        return set(flows)


@pytest.fixture(scope="module")
def over_openflow(open_vswitch: OpenVSwitch) -> Iterator[tuple[OpenVSwitch, OpenFlowSwitches]]:
    addresses = {
        name: open_vswitch.add_bridge(name, PORTS, limit=ROOM if name == "small" else None)
        for name in NETWORK.switches
    }
    with OpenFlowSwitches(OpenFlowFabric(addresses)) as switches:
        switches.wait_connected()
        yield open_vswitch, switches


@pytest.fixture(params=["embedded", pytest.param("openflow", marks=pytest.mark.real)])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "embedded":
        return Bench(EmbeddedNetwork(NETWORK, capacity={"small": ROOM}))
    open_vswitch, switches = request.getfixturevalue("over_openflow")
    for name in NETWORK.switches:
        emptied(open_vswitch, switches, name)
    return Bench(switches)


def emptied(open_vswitch: OpenVSwitch, switches: OpenFlowSwitches, name: str) -> None:
    """Take all entries out of a switch, and have its controller notice."""
    open_vswitch.ofctl("del-flows", name)
    assert switches.read(name) == ()


def flow(prefix: str, *ports: int, priority: int | None = None) -> Flow:
    parsed = Prefix.parse(prefix)
    return Flow(
        PrefixMatch(parsed), 1000 + parsed.length if priority is None else priority, tuple(map(Output, ports))
    )


def install(*given: object, **more: int) -> FlowOp:
    return FlowOp(OpKind.INSTALL, flow(*given, **more))


def modify(*given: object, **more: int) -> FlowOp:
    return FlowOp(OpKind.MODIFY, flow(*given, **more))


def remove(*given: object, **more: int) -> FlowOp:
    return FlowOp(OpKind.REMOVE, flow(*given, **more))


def after(flows: set[Flow], ops: list[FlowOp]) -> set[Flow]:
    """What a table holds after operations: the definition."""
    table = {flow.key: flow for flow in flows}
    for op in ops:
        if op.kind is OpKind.REMOVE:
            table.pop(op.flow.key, None)
        elif op.kind is OpKind.INSTALL or op.flow.key in table:
            table[op.flow.key] = op.flow
    return set(table.values())


def test_a_switch_begins_empty(bench):
    assert bench.table() == set()


@pytest.mark.parametrize(
    "prefix",
    [
        "ff0e::/16",
        "ff0e:c000::/19",
        "ff0e:8000::1/128",
        "ff1e:0:0:1::/64",
        "225.128.0.0/9",
        "225.168.3.7/32",
        "239.1.0.0/17",
    ],
)
def test_what_is_read_back_is_what_was_installed(bench, prefix):
    ticket = bench.apply(install(prefix, 1, 3))
    assert (ticket.switch, ticket.done, ticket.error) == ("s1", 1, None)
    assert ticket.done_at is not None
    assert bench.table() == {flow(prefix, 1, 3)}
    assert bench.table("s2") == set()


MASKS = [
    ("ff1e::5/ffff::f", None),
    ("ff1e::40/ffff::40", "fd00::5/ffff::f"),
    ("ff1e::/ffff::", "fd00::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff0e::7/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fd00::1/ffff::1"),
    ("225.128.0.1/255.128.0.3", "10.0.0.1/255.0.0.1"),
]


def labelled(dst: str, src: str | None, *ports: int, priority: int = 1000) -> Flow:
    return Flow(parse_match(dst, src), priority, tuple(map(Output, ports)))


@pytest.mark.parametrize(("dst", "src"), MASKS)
def test_masks_of_source_and_destination_are_read_back(bench, dst, src):
    assert bench.apply(FlowOp(OpKind.INSTALL, labelled(dst, src, 1, 3))).error is None
    assert bench.table() == {labelled(dst, src, 1, 3)}
    bench.apply(FlowOp(OpKind.MODIFY, labelled(dst, src, 2)), install("ff0e::/16", 1))
    assert bench.table() == {labelled(dst, src, 2), flow("ff0e::/16", 1)}
    bench.apply(FlowOp(OpKind.REMOVE, labelled(dst, src)))
    assert bench.table() == {flow("ff0e::/16", 1)}


@pytest.mark.real
def test_open_vswitch_forwards_by_masks_as_a_look_up_does(over_openflow):
    open_vswitch, switches = over_openflow
    emptied(open_vswitch, switches, "s1")
    dice = random.Random(5)

    def some(most: int) -> int:
        return sum(1 << bit for bit in dice.sample((0, 1, 64, 110), dice.randrange(most + 1)))

    def match() -> Match:
        source, destination = some(2), some(2)
        return match_on(
            Masked(6, source & some(4), source),
            Masked(6, 0xFF0E << 112 | some(4) & destination, 0xFFFF << 112 | destination),
        )

    narrowest_last = sorted({match() for _ in range(30)}, key=lambda each: each.rank)
    table = [
        Flow(each, 1000 + number, tuple(map(Output, sorted(dice.sample((2, 3, 4), 2)))))
        for number, each in enumerate(narrowest_last)
    ]
    switches.apply("s1", [FlowOp(OpKind.INSTALL, each) for each in table])
    switches.settle()
    assert switches.read("s1") == tuple(sorted(table))
    found = set()
    for _ in range(40):
        source, destination = some(4), 0xFF0E << 112 | some(4)
        packet = f"in_port=1,udp6,nw_ttl=9,ipv6_src={address_text(6, source)}"
        told = open_vswitch.appctl("ofproto/trace", "s1", f"{packet},ipv6_dst={address_text(6, destination)}")
        wanted = look_up(table, 6, destination, source)
        found.add(wanted)
        ports = tuple(map(int, re.findall(r"^ +output:(\d+)$", told, re.MULTILINE)))
        assert ports == (wanted.ports if wanted else ()), told
    assert len(found) > 5


@pytest.mark.real
def test_open_vswitch_passes_packets_from_table_to_table(over_openflow):
    open_vswitch, switches = over_openflow
    emptied(open_vswitch, switches, "s1")

    def entry(dst: str, priority: int, table: int, onward: int | None, *ports: int) -> Flow:
        return Flow(parse_match(dst), priority, tuple(map(Output, ports)), table=table, onward=onward)

    table = [
        entry("ff1e::/16", 1000, 1, 16),
        entry("ff1e::/ffff:8000::", 1002, 16, 17),
        entry("ff1e::/16", 1001, 16, 17, 2),
        entry("ff1e::/ffff:6000::", 1002, 17, None),
        entry("ff1e::/16", 1001, 17, None, 3, 4),
    ]
    switches.apply("s1", [FlowOp(OpKind.INSTALL, each) for each in table])
    switches.settle()
    assert switches.read("s1") == tuple(sorted(table))
    for bits in range(8):
        to = 0xFF1E << 112 | bits << 109
        packet = f"in_port=1,udp6,nw_ttl=9,ipv6_src=fd00::1,ipv6_dst={address_text(6, to)}"
        told = open_vswitch.appctl("ofproto/trace", "s1", packet)
        ports = list(map(int, re.findall(r"^ +output:(\d+)$", told, re.MULTILINE)))
        assert ports == [port for flow in met(table, 6, to) for port in flow.ports], told
        assert told.count("dec_ttl") <= 2, "once in the content's table, however many tables follow"
    switches.apply("s1", [FlowOp(OpKind.MODIFY, entry("ff1e::/16", 1001, 17, None, 3))])
    switches.apply("s1", [FlowOp(OpKind.REMOVE, table[1])])
    switches.settle()
    left = {*table[2:4], table[0], entry("ff1e::/16", 1001, 17, None, 3)}
    assert set(switches.read("s1")) == left


def test_ports_are_read_back_in_their_order(bench):
    bench.apply(install("ff0e::/16", 3, 1, 4, 2))
    assert bench.table() == {flow("ff0e::/16", 3, 1, 4, 2)}


HOSTS = {
    6: [Deliver(port, 0x333300000000 + port, Prefix(6, 0xFF02 << 112 | port, 128)) for port in (2, 3)],
    4: [Deliver(port, 0x01005E000000 + port, Prefix(4, 224 << 24 | port, 32)) for port in (2, 3)],
}


def delivered(group: str, *ports: int) -> Flow:
    """An entry that sends out of ports as it is, and then to the hosts."""
    prefix = Prefix.parse(group)
    return Flow(PrefixMatch(prefix), 1000, (*map(Output, ports), *HOSTS[prefix.family]))


@pytest.mark.parametrize("group", ["ff0e::/16", "225.128.0.0/9"])
@pytest.mark.parametrize("ports", [(), (1,), (1, 4)])
def test_deliveries_to_hosts_are_read_back_as_such(bench, group, ports):
    new = delivered(group, *ports)
    assert bench.apply(FlowOp(OpKind.INSTALL, new)).error is None
    assert bench.table() == {new}
    assert {one.ports for one in bench.table()} == {tuple(sorted((*ports, 2, 3)))}
    bench.apply(modify(group, 1, 2, priority=1000))
    assert bench.table() == {flow(group, 1, 2, priority=1000)}
    bench.apply(FlowOp(OpKind.MODIFY, new))
    assert bench.table() == {new}


def labels_delivered() -> list[Flow]:
    """Entries that send what has the first bit of a label to a host, the second to another, and all to a link."""

    def entry(dst: str, priority: int, table: int, onward: int | None, *actions: Action) -> Flow:
        return Flow(parse_match(dst), priority, actions, table=table, onward=onward)

    return [
        entry("ff1e::/16", 1000, 1, 16),
        entry("ff1e::/17", 1002, 16, 17),
        entry("ff1e::/16", 1001, 16, 17, HOSTS[6][0]),
        entry("ff1e::/ffff:4000::", 1002, 17, 18),
        entry("ff1e::/16", 1001, 17, 18, HOSTS[6][1]),
        entry("ff1e::/16", 1001, 18, None, Output(4)),
    ]


def test_deliveries_from_which_packets_go_on_are_read_back_as_such(bench):
    table = labels_delivered()
    assert bench.apply(*(FlowOp(OpKind.INSTALL, each) for each in table)).error is None
    assert bench.table() == set(table)
    both = Flow(table[2].match, 1001, (Output(1), *HOSTS[6]), table=16, onward=17)
    assert bench.apply(FlowOp(OpKind.MODIFY, both)).error is None
    assert bench.table() == {*table, both} - {table[2]}


@pytest.mark.real
def test_what_is_readdressed_for_a_host_goes_on_as_it_came(over_openflow):
    open_vswitch, switches = over_openflow
    emptied(open_vswitch, switches, "s1")
    switches.apply("s1", [FlowOp(OpKind.INSTALL, each) for each in labels_delivered()])
    switches.settle()
    sent = {port: len(open_vswitch.sent("s1", port)) for port in (2, 3, 4)}
    for bits, hosts in ((0, ()), (1, (3,)), (2, (2,)), (3, (2, 3))):
        to = (0xFF1E << 112 | bits << 110).to_bytes(16)
        came = UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), bytes(15) + b"\1", to, 9, 9, b"%d" % bits)
        open_vswitch.appctl("netdev-dummy/receive", "s1-1", build(came).hex())
        wait_for(lambda more=sent[4]: len(open_vswitch.sent("s1", 4)) > more, "the copy for the link")
        gone = {port: open_vswitch.sent("s1", port)[n:] for port, n in sent.items()}
        sent = {port: sent[port] + len(some) for port, some in gone.items()}
        onward = replace(came, hops=came.hops - 1)
        assert gone.pop(4) == [build(onward)]
        for each in HOSTS[6]:
            readdressed = {
                "destination_mac": each.mac.to_bytes(6),
                "destination": each.address.first.to_bytes(16),
            }
            copy = build(replace(onward, **readdressed))
            assert gone[each.port] == ([copy] if each.port in hosts else []), (bits, each.port)


@pytest.mark.parametrize(
    ("actions", "what"),
    [
        ((HOSTS[4][0],), "no destination for ff0e::/16"),
        ((HOSTS[6][0], Output(1)), "the output to port 1 comes after a delivery"),
    ],
)
def test_what_a_delivery_would_spoil_is_refused(bench, actions, what):
    op = FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1000, actions))
    try:
        error = bench.apply(op).error
    except SwitchError as raised:
        error = raised
    assert isinstance(error, SwitchError)
    assert what in str(error)
    assert bench.table() == set()


def test_an_entry_without_ports_drops_and_is_an_entry(bench):
    bench.apply(install("ff0e::/16"))
    assert bench.table() == {flow("ff0e::/16")}


def test_a_second_install_changes_nothing(bench):
    bench.apply(install("ff0e::/16", 1))
    assert bench.apply(install("ff0e::/16", 1)).done == 1
    assert bench.table() == {flow("ff0e::/16", 1)}


def test_an_install_over_an_entry_replaces_it(bench):
    bench.apply(install("ff0e::/16", 1))
    bench.apply(install("ff0e::/16", 2, 3))
    assert bench.table() == {flow("ff0e::/16", 2, 3)}


def test_a_modify_changes_the_ports(bench):
    bench.apply(install("ff0e::/16", 1), install("ff0e:8000::/17", 2))
    bench.apply(modify("ff0e::/16", 2, 3))
    assert bench.table() == {flow("ff0e::/16", 2, 3), flow("ff0e:8000::/17", 2)}


def test_a_modify_of_what_is_not_there_does_nothing(bench):
    ticket = bench.apply(modify("ff0e::/16", 1))
    assert (ticket.done, ticket.error) == (1, None)
    assert bench.table() == set()


def test_a_removal_takes_out_exactly_one_entry(bench):
    kept = [
        install("ff0e::/16", 1),
        install("ff0e:c000::/18", 2),
        install("ff0e:8000::/17", 1, priority=2000),
    ]
    bench.apply(*kept, install("ff0e:8000::/17", 2))
    bench.apply(remove("ff0e:8000::/17", 2))
    assert bench.table() == {op.flow for op in kept}


def test_a_removal_does_not_look_at_the_ports(bench):
    bench.apply(install("ff0e::/16", 1))
    bench.apply(remove("ff0e::/16", 2, 3))
    assert bench.table() == set()


def test_a_removal_of_what_is_not_there_does_nothing(bench):
    bench.apply(install("ff0e::/16", 1))
    ticket = bench.apply(remove("ff0e::/17", 1))
    assert (ticket.done, ticket.error) == (1, None)
    assert bench.table() == {flow("ff0e::/16", 1)}


def test_entries_of_one_match_and_two_priorities_are_two(bench):
    bench.apply(install("ff0e::/16", 1, priority=1000), install("ff0e::/16", 2, priority=2000))
    bench.apply(modify("ff0e::/16", 3, priority=2000))
    assert bench.table() == {flow("ff0e::/16", 1, priority=1000), flow("ff0e::/16", 3, priority=2000)}


def test_operations_of_a_batch_are_done_in_their_order(bench):
    ops = [
        install("ff0e::/16", 1),
        modify("ff0e::/16", 2),
        remove("ff0e::/16"),
        modify("ff0e::/16", 3),
        install("ff0e:8000::/17", 1),
        remove("ff0e:8000::/17"),
        install("ff0e:8000::/17", 4),
    ]
    assert bench.apply(*ops).done == len(ops)
    assert bench.table() == {flow("ff0e:8000::/17", 4)}


def test_batches_are_done_in_the_order_in_which_they_were_asked_for(bench):
    tickets = [bench.switches.apply("s1", [install("ff0e::/16", port)]) for port in (1, 2, 3, 4)]
    bench.switches.settle()
    assert [(ticket.done, ticket.error) for ticket in tickets] == [(1, None)] * 4
    assert bench.table() == {flow("ff0e::/16", 4)}


def test_nothing_to_do_is_done_too(bench):
    ticket = bench.apply()
    assert (ticket.done, ticket.error) == (0, None)
    assert ticket.done_at is not None


def test_a_batch_can_be_large(bench):
    flows = {flow(f"ff0e:{i:x}::/32", 1 + i % PORTS) for i in range(1, 2001)}
    assert bench.apply(*(FlowOp(OpKind.INSTALL, one) for one in flows)).done == 2000
    assert bench.table() == flows


@pytest.mark.parametrize("seed", range(10))
def test_random_operations_do_what_they_mean(bench, seed):
    draw = random.Random(seed)
    table: set[Flow] = set()
    make: list[Callable[..., FlowOp]] = [install, install, modify, remove]
    for _ in range(5):
        ops = []
        for _ in range(draw.randrange(1, 40)):
            length = draw.randrange(16, 20)
            prefix = Prefix(6, 0xFF0E << length - 16 | draw.getrandbits(length - 16), length)
            ports = draw.sample(range(1, PORTS + 1), draw.randrange(PORTS + 1))
            ops.append(draw.choice(make)(str(prefix), *ports, priority=draw.choice((1000, 2000))))
        assert bench.apply(*ops).done == len(ops)
        table = after(table, ops)
        assert bench.table() == table


def small_batch(count: int) -> list[FlowOp]:
    return [install(f"ff0e:{i:x}::/32", 1) for i in range(1, count + 1)]


def test_a_full_table_takes_no_more(bench):
    bench.apply(*small_batch(ROOM), switch="small")
    before = bench.table("small")
    ticket = bench.apply(install("ff0e:ffff::/32", 1), switch="small")
    assert isinstance(ticket.error, TableFull)
    assert (ticket.error.switch, ticket.error.needed, ticket.error.capacity) == ("small", ROOM + 1, ROOM)
    assert ticket.done == 0
    assert ticket.done_at is not None
    assert bench.table("small") == before


@pytest.mark.real
def test_a_full_table_for_labels_is_told_with_what_it_holds(open_vswitch):
    def entry(number: int, table: int) -> FlowOp:
        match = parse_match(f"ff1e::{number}/128")
        return FlowOp(OpKind.INSTALL, Flow(match, 1000, (Output(1),), table=table))

    address = open_vswitch.add_bridge("labels", PORTS, limit=ROOM, table=16)
    with OpenFlowSwitches(OpenFlowFabric({"labels": address})) as switches:
        switches.wait_connected()
        switches.apply("labels", [entry(number, table) for table in (16, 17) for number in range(1, ROOM)])
        switches.settle()
        before = switches.read("labels")
        ticket = switches.apply("labels", [entry(number, 16) for number in range(ROOM, 9)])
        switches.settle()
        assert isinstance(ticket.error, TableFull)
        found = ticket.error.needed, ticket.error.capacity, ticket.error.at, ticket.error.table
        assert found == (ROOM + 1, ROOM, 1, 16)
        assert "at least 6 entries in table 16 and has room for 5" in str(ticket.error)
        assert switches.read("labels") == before


def test_of_a_batch_that_does_not_fit_as_much_is_done_as_the_ticket_says(bench):
    bench.apply(*small_batch(2), switch="small")
    ops = [remove("ff0e:1::/32"), *small_batch(ROOM + 2)]
    before = bench.table("small")
    ticket = bench.apply(*ops, switch="small")
    assert isinstance(ticket.error, TableFull)
    assert ticket.error.capacity == ROOM
    assert bench.table("small") == after(before, ops[: ticket.done])


def test_a_full_table_can_still_change_and_shrink(bench):
    bench.apply(*small_batch(ROOM), switch="small")
    ops = [
        install("ff0e:1::/32", 2),
        modify("ff0e:2::/32", 3),
        remove("ff0e:3::/32"),
        install("ff0e:9::/32", 4),
    ]
    before = bench.table("small")
    assert bench.apply(*ops, switch="small").error is None
    assert bench.table("small") == after(before, ops)


def test_a_refused_batch_leaves_the_next_one_alone(bench):
    tickets = [
        bench.switches.apply("small", small_batch(ROOM + 1)),
        bench.switches.apply("small", [remove("ff0e:1::/32"), install("ff0e:9::/32", 2)]),
    ]
    bench.switches.settle()
    assert isinstance(tickets[0].error, TableFull)
    assert tickets[1].error is None
    assert flow("ff0e:9::/32", 2) in bench.table("small")


@pytest.mark.parametrize("ask", ["apply", "read"])
def test_a_switch_that_is_not_there_is_named(bench, ask):
    with pytest.raises(BadTopology, match="there is no switch 's3'"):
        bench.switches.apply("s3", []) if ask == "apply" else bench.switches.read("s3")
