"""Many switches over OpenFlow: real ones, and scripted ones for what real ones seldom do."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import peer
import pytest
from vswitch import PATIENCE_S, PATIENT, SOON, OpenVSwitch, wait_for

from flowsieve.errors import BadInput, SwitchError, Unacknowledged
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.fabric import (
    Connected,
    Disconnected,
    PortChanged,
    PuntedPacket,
    SwitchEvent,
    Ticket,
)
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches
from flowsieve.southbound.openflow.wire import COOKIE, Frames


def flow(prefix: str, *ports: int) -> Flow:
    parsed = Prefix.parse(prefix)
    return Flow(PrefixMatch(parsed), 984 + parsed.length, tuple(map(Output, ports)))


def install(prefix: str, *ports: int) -> FlowOp:
    return FlowOp(OpKind.INSTALL, flow(prefix, *ports))


def apply(switches: OpenFlowSwitches, switch: str, *ops: FlowOp) -> Ticket:
    ticket = switches.apply(switch, ops)
    switches.settle()
    return ticket


class Heard:
    """All that was reported, and a way to wait for more."""

    def __init__(self) -> None:
        self.events: list[SwitchEvent] = []

    def __call__(self, event: SwitchEvent) -> None:
        self.events.append(event)

    def count(self, kind: type[SwitchEvent]) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    def wait(self, kind: type[SwitchEvent], count: int) -> None:
        wait_for(lambda: self.count(kind) >= count, f"{count} times {kind.__name__}")


# Real switches.

numbers = iter(range(1, 1000))


@pytest.fixture
def bridge(open_vswitch: OpenVSwitch) -> tuple[str, str]:
    """A new bridge with four ports: its name and address."""
    name = f"b{next(numbers)}"
    return name, open_vswitch.add_bridge(name, 4)


@pytest.fixture
def real(
    bridge: tuple[str, str], request: pytest.FixtureRequest
) -> Iterator[tuple[str, OpenFlowSwitches, Heard]]:
    """Its name, the connection to it, and what was heard; `indirect` with a timing of its own."""
    name, address = bridge
    heard, timing = Heard(), getattr(request, "param", PATIENT)
    with OpenFlowSwitches(OpenFlowFabric({name: address}, timing=timing, report=heard)) as switches:
        switches.wait_connected(PATIENCE_S)
        yield name, switches, heard


@pytest.mark.real
def test_what_others_put_elsewhere_is_neither_read_nor_touched(real, open_vswitch):
    name, switches, _ = real
    foreign = "ipv6,ipv6_dst=fd00::/16,priority=7,actions=output:1"
    open_vswitch.ofctl("add-flow", name, foreign)
    open_vswitch.ofctl("add-flow", name, "arp,priority=8,actions=drop")
    apply(switches, name, install("ff0e:8000::/17", 1))
    assert switches.read(name) == (flow("ff0e:8000::/17", 1),)
    assert "ipv6_dst=fd00::/16" in open_vswitch.ofctl("dump-flows", name)
    assert "arp" in open_vswitch.ofctl("dump-flows", name)


@pytest.mark.real
def test_what_others_put_into_our_groups_is_read_or_expelled(real, open_vswitch):
    name, switches, _ = real
    for entry in (
        "table=1,ipv6,ipv6_dst=ff0e:8000::/17,priority=1001,actions=output:2",
        "table=1,ipv6,ipv6_dst=ff0e:4000::/18,in_port=1,priority=1002,actions=output:2",
        "ipv6,ipv6_dst=ff0e:4000::/18,priority=1002,actions=output:2",
        "table=1,udp6,ipv6_dst=ff15::1/ffff::ffff,priority=3,actions=output:2",
        "table=1,ip,nw_dst=225.128.0.0/9,priority=1000,actions=set_field:10.0.0.1->nw_dst,output:3",
        f"cookie={COOKIE:#x},ipv6,in_port=2,priority=4,actions=drop",
    ):
        open_vswitch.ofctl("add-flow", name, entry)
    assert switches.read(name) == (flow("ff0e:8000::/17", 2),)
    assert len(open_vswitch.ofctl("dump-flows", name, "--no-stats").split("\n")) == 2


@pytest.mark.real
def test_our_entries_bear_our_cookie(real, open_vswitch):
    name, switches, _ = real
    apply(switches, name, install("ff0e::/16", 1))
    assert f"cookie={COOKIE:#x}" in open_vswitch.ofctl("dump-flows", name)


def packet(family: int, hops: int) -> bytes:
    """A UDP packet to a group address."""
    udp = struct.pack("!HHHH", 9, 9, 12, 0) + b"data"
    if family == 6:
        source, destination = Prefix.parse("fd00::1/128"), Prefix.parse("ff0e:c800::/128")
        ends = source.first.to_bytes(16) + destination.first.to_bytes(16)
        return (
            bytes.fromhex("333300000001 020000000001 86dd")
            + struct.pack("!IHBB", 6 << 28, 12, 17, hops)
            + ends
            + udp
        )
    ends = bytes([10, 0, 0, 1, 225, 168, 0, 1])
    head = struct.pack("!BBHHHBBH", 0x45, 0, 32, 0, 0, hops, 17, 0)
    return bytes.fromhex("01005e280001 020000000001 0800") + head + ends + udp


@pytest.mark.real
@pytest.mark.parametrize(("family", "prefix", "at"), [(6, "ff0e:c000::/19", 21), (4, "225.160.0.0/11", 22)])
def test_hop_limits_are_decremented_and_run_out(real, open_vswitch, family, prefix, at):
    name, switches, _ = real
    apply(switches, name, install(prefix, 2, 3))
    for hops in (64, 1, 2):
        open_vswitch.appctl("netdev-dummy/receive", f"{name}-1", packet(family, hops).hex())
    for port in (2, 3):
        wait_for(lambda port=port: len(open_vswitch.sent(name, port)) >= 2, "forwarding")
        assert [one[at] for one in open_vswitch.sent(name, port)] == [63, 1]
    assert open_vswitch.sent(name, 4) == []


@pytest.mark.real
def test_without_decrement_packets_are_left_as_they_are(bridge, open_vswitch):
    name, address = bridge
    with OpenFlowSwitches(OpenFlowFabric({name: address}, decrement=False)) as switches:
        apply(switches, name, install("ff0e:c000::/19", 2))
        assert switches.read(name) == (flow("ff0e:c000::/19", 2),)
        open_vswitch.appctl("netdev-dummy/receive", f"{name}-1", packet(6, 1).hex())
        wait_for(lambda: open_vswitch.sent(name, 2), "forwarding")
        assert open_vswitch.sent(name, 2) == [packet(6, 1)]


@pytest.mark.real
def test_packets_go_out_and_come_in(real, open_vswitch):
    name, switches, heard = real
    switches.call(switches.fabric.send_packet(name, 3, packet(6, 9)))
    wait_for(lambda: open_vswitch.sent(name, 3), "the packet")
    assert open_vswitch.sent(name, 3) == [packet(6, 9)]
    open_vswitch.ofctl("add-flow", name, "ipv6,priority=1,actions=controller")
    open_vswitch.appctl("netdev-dummy/receive", f"{name}-1", packet(6, 9).hex())
    heard.wait(PuntedPacket, 1)
    assert heard.events[-1] == PuntedPacket(name, 1, packet(6, 9))


@pytest.mark.real
def test_a_port_that_goes_down_is_told(real, open_vswitch):
    name, _, heard = real
    down, up = (PortChanged(name, 2, state) for state in (False, True))
    open_vswitch.appctl("netdev-dummy/set-admin-state", f"{name}-2", "down")
    wait_for(lambda: down in heard.events, "the port going down")
    open_vswitch.appctl("netdev-dummy/set-admin-state", f"{name}-2", "up")
    wait_for(lambda: up in heard.events, "the port coming up")


@pytest.mark.real
def test_the_datapath_is_asked_whether_it_has_followed(bridge, open_vswitch):
    name, address = bridge
    with OpenFlowSwitches(OpenFlowFabric({name: address}, control=open_vswitch.control)) as switches:
        assert apply(switches, name, install("ff0e::/16", 2)).done == 1
    with OpenFlowSwitches(
        OpenFlowFabric({name: address}, control=f"unix:{open_vswitch.rundir}/none")
    ) as switches:
        assert apply(switches, name, install("ff0e::/16", 3)).done == 1


@pytest.mark.real
@pytest.mark.parametrize("real", [SOON], indirect=True, ids=["soon"])
def test_a_stopped_switch_is_unknown_until_it_was_read(real, open_vswitch):
    name, switches, heard = real
    apply(switches, name, install("ff0e::/16", 1))
    open_vswitch.signal(SIGSTOP)
    try:
        tickets = [switches.apply(name, [install(f"ff0e:{i}::/32", 2)]) for i in range(1, 4)]
        switches.settle()
    finally:
        open_vswitch.signal(SIGCONT)
    assert all(isinstance(ticket.error, Unacknowledged) and ticket.done == 0 for ticket in tickets)
    assert f"no answer within {SOON.answer:g} s" in str(tickets[0].error)
    heard.wait(Connected, 2)
    assert set(switches.fabric.unknown) == {name}
    refused = apply(switches, name, install("ff0e:9::/32", 2))
    assert isinstance(refused.error, Unacknowledged)
    found = switches.read(name)  # what was in the switch's buffer when we gave up was never committed
    assert found == (flow("ff0e::/16", 1),)
    assert switches.fabric.unknown == {}
    assert apply(switches, name, install("ff0e:9::/32", 2)).done == 1


@pytest.mark.real
@pytest.mark.parametrize("real", [SOON], indirect=True, ids=["soon"])
def test_a_silent_switch_is_noticed_without_asking_it_anything(real, open_vswitch):
    _, _, heard = real
    open_vswitch.signal(SIGSTOP)
    try:
        heard.wait(Disconnected, 1)
    finally:
        open_vswitch.signal(SIGCONT)
    assert isinstance(heard.events[1], Disconnected)
    assert heard.events[1].reason == f"no sign of life within {SOON.silence:g} s"
    heard.wait(Connected, 2)


@pytest.mark.real
def test_a_switch_that_was_killed_comes_back_empty(real, open_vswitch):
    name, switches, heard = real
    apply(switches, name, install("ff0e::/16", 1))
    open_vswitch.signal(SIGKILL)
    heard.wait(Disconnected, 1)
    assert isinstance(apply(switches, name, install("ff0e:8000::/17", 1)).error, Unacknowledged)
    open_vswitch.start_vswitchd()
    heard.wait(Connected, 2)
    assert switches.read(name) == ()
    assert apply(switches, name, install("ff0e:8000::/17", 1)).done == 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.real
def test_a_switch_can_dial_us(bridge, open_vswitch):
    name, _ = bridge
    address = f"tcp:127.0.0.1:{free_port()}"
    open_vswitch.vsctl("set", "bridge", name, "other_config:datapath-id=00000000000000ab")
    with OpenFlowSwitches(OpenFlowFabric({}, listen=address, identities={name: switch_id(0xAB)})) as switches:
        open_vswitch.vsctl("set-controller", name, address)
        switches.wait_connected(PATIENCE_S)
        assert apply(switches, name, install("ff0e::/16", 1)).done == 1
        assert switches.read(name) == (flow("ff0e::/16", 1),)
    open_vswitch.vsctl("del-controller", name)


# Scripted switches.


class Scripted:
    """A switch on a socket that shakes hands and then does as it is told, on each connection something else."""

    def __init__(self, path: Path, *acts: Callable[[socket.socket], None]) -> None:
        self.address = f"unix:{path}"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._acts = acts
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        for act in self._acts:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # shut down
            connection.settimeout(10)
            with connection, contextlib.suppress(ConnectionError):
                connection.sendall(peer.hello(5) + peer.features(2))
                act(connection)


def until(connection: socket.socket, kind: int) -> int:
    """Read until a message of this type came; its xid."""
    data = b""
    while True:
        more = connection.recv(65536)
        assert more, "the connection was closed"
        data += more
        for frame in peer.frames(data):
            if frame.type == kind:
                return frame.xid


def hang_up_in_a_bundle(connection: socket.socket) -> None:
    until(connection, 34)


def babble_in_a_bundle(connection: socket.socket) -> None:
    until(connection, 34)
    connection.sendall(b"\xff" * 100)
    while connection.recv(1 << 16):
        pass


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (hang_up_in_a_bundle, "the peer closed the connection"),
        (babble_in_a_bundle, "begins no OpenFlow message"),
    ],
)
def test_a_connection_lost_in_a_bundle_leaves_the_switch_unknown(tmp_path, act, reason):
    with (
        Scripted(tmp_path / "s1", act, serve_an_empty_table) as switch,
        OpenFlowSwitches(OpenFlowFabric({"s1": switch.address}, timing=PATIENT)) as switches,
    ):
        ticket = apply(switches, "s1", install("ff0e::/16", 1))
        assert isinstance(ticket.error, Unacknowledged)
        assert (ticket.error.switch, ticket.done) == ("s1", 0)
        assert reason in ticket.error.reason
        assert switches.read("s1") == ()
        assert switches.fabric.unknown == {}


def test_a_switch_that_is_not_there_is_reported_with_its_address(tmp_path):
    timing = Timing(connect=0.05, first_retry=0.01)
    with OpenFlowSwitches(OpenFlowFabric({"s1": f"unix:{tmp_path}/none"}, timing=timing)) as switches:
        tickets = [switches.apply("s1", [install("ff0e::/16", 1)]) for _ in range(20)]
        switches.settle()
        for ticket in tickets:
            assert "switch s1 is not connected" in str(ticket.error)
            assert f"unix:{tmp_path}/none" in str(ticket.error)
        with pytest.raises(SwitchError, match="switch s1 is not connected"):
            switches.read("s1")
        with pytest.raises(SwitchError, match="switch s1 is not connected"):
            switches.wait_connected(0.05)


def test_closing_answers_what_is_under_way(tmp_path):
    switches = OpenFlowSwitches(OpenFlowFabric({"s1": f"unix:{tmp_path}/none"}, timing=Timing(connect=60)))
    switches.start()
    ticket = switches.apply("s1", [install("ff0e::/16", 1)])
    switches.close()
    switches.settle()
    assert isinstance(ticket.error, SwitchError)
    late = apply(switches, "s1", install("ff0e::/16", 1))
    assert "closed" in str(late.error)
    with pytest.raises(SwitchError, match="closed"):
        switches.read("s1")


def serve_an_empty_table(connection: socket.socket) -> None:
    """Answer signs of life and listings until the connection is closed."""
    stream = Frames()
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            for frame in stream.feed(data):
                if peer.asks_for_entries(frame):
                    connection.sendall(peer.stats(frame.xid, []))
                elif frame.type == 2:
                    connection.sendall(peer.message(3, frame.xid, frame.data[8:]))


def test_random_bytes_to_our_port_harm_nobody(tmp_path):
    draw = random.Random(5)
    place = str(tmp_path / "port")
    with (
        OpenFlowSwitches(
            OpenFlowFabric({}, listen=f"unix:{place}", identities={"s1": switch_id(7)})
        ) as switches,
        socket.socket(socket.AF_UNIX) as good,
    ):
        good.connect(place)
        good.sendall(peer.hello(5) + peer.features(2, datapath=7))
        switches.wait_connected()
        answering = threading.Thread(target=serve_an_empty_table, args=[good], daemon=True)
        answering.start()
        for _ in range(1000):
            with socket.socket(socket.AF_UNIX) as noise, contextlib.suppress(ConnectionError):
                noise.connect(place)
                noise.sendall(draw.randbytes(draw.randrange(1, 200)))
        assert switches.read("s1") == ()
        assert switches.fabric.unknown == {}
        switches.close()
        answering.join()


def test_an_address_in_use_is_no_place_to_listen():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        switches = OpenFlowSwitches(OpenFlowFabric({}, listen=f"tcp:127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(SwitchError, match="address already in use"):
            switches.start()
        switches.close()


@pytest.mark.parametrize(
    "address", ["", "s1", "unix:", "tcp:host", "tcp:host:x", "tcp:host:65536", "udp:a:1"]
)
def test_a_bad_address_is_refused(address):
    with pytest.raises(BadInput, match="is no address; right is unix:"):
        OpenFlowSwitches(OpenFlowFabric({"s1": address}))


@pytest.mark.parametrize(
    ("op", "what"),
    [
        (FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix(6, 0xFF0E, 16)), 65536, ())), "no priority 65536"),
        (install("ff0e::/16", 1, 0), "no port 0"),
    ],
)
def test_what_no_message_can_say_is_refused(op, what):
    with pytest.raises(SwitchError, match=what):
        OpenFlowSwitches(OpenFlowFabric({"s1": "unix:none"})).apply("s1", [op])
