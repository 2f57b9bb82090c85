"""The last hop on real switches: a host gets events at its own group, whole, and switches at the event's."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations

import pytest

from flowsieve.content.schema import Schema
from flowsieve.control.label_controller import LabelController
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Deliver, content_flow
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.proof.verify import Verdict
from flowsieve.header.address import address_text
from flowsieve.header.encoding import Encoding, encoding_of
from flowsieve.index.dz import Dz
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.hosts import PORT, Hosts
from flowsieve.lab.lab import Lab, running
from flowsieve.network.topology import Topology
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

pytestmark = pytest.mark.real

NETWORK = Topology.make([("s1", "s2")], {"a": "s1", "b": "s1", "c": "s1", "d": "s2", "e": "s2"})
EVENTS = 50
PATIENCE_S = 5.0


def joined(lab: Lab, host: str, family: int, group: str) -> socket.socket:
    """A UDP socket of an application: what is addressed otherwise, or has a bad checksum, never gets to it."""
    with lab.inside(host):
        interface = socket.if_nametoindex(HOST_INTERFACE)
        receiver = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_DGRAM)
        receiver.settimeout(PATIENCE_S)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == 6:
            request = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@i", interface)
            receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
            receiver.bind((group, PORT, 0, interface))
        else:
            request = struct.pack("4s4si", socket.inet_aton(group), bytes(4), interface)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            receiver.bind((group, PORT))
    return receiver


@contextmanager
def delivering(family: int, encoding: Encoding) -> Iterator[tuple[Lab, Hosts, ExitStack]]:
    """A lab in which all events go to all hosts; `e` alone has no address of its own for them."""
    with running(NETWORK) as lab, ExitStack() as sockets:
        last = {switch: dict(ports) for switch, ports in deliveries_of(lab.topology, family).items()}
        del last["s2"][NETWORK.port("s2", "e")]
        with (
            Hosts(lab) as hosts,
            OpenFlowSwitches(OpenFlowFabric(lab.switch_addresses, control=f"unix:{lab.control}")) as switches,
        ):
            for switch in NETWORK.switches:
                ports = range(1, len(NETWORK.neighbours(switch)) + 1)
                flow = content_flow(encoding, Dz(0, 0), ports, last[switch])
                ticket = switches.apply(switch, [FlowOp(OpKind.INSTALL, flow)])
                switches.settle()
                assert ticket.error is None
                assert switches.read(switch) == (flow,)
            yield lab, hosts, sockets


@pytest.mark.parametrize("family", [6, 4])
def test_each_host_gets_events_at_its_own_group_and_neighbours_at_the_events(family):
    encoding = encoding_of("ipv6" if family == 6 else "ipv4")
    cells = [Dz(number, 16) for number in range(EVENTS)]
    with delivering(family, encoding) as (lab, hosts, sockets):
        own = {
            host: sockets.enter_context(joined(lab, host, family, _group(lab, host, family)))
            for host in "abcd"
        }
        second = sockets.enter_context(joined(lab, "b", family, _group(lab, "b", family)))
        plain = [sockets.enter_context(joined(lab, "e", family, encoding.text(cell))) for cell in cells[:10]]
        for number, cell in enumerate(cells):
            hosts.send(0, family, encoding.address_of(cell), b"event %d" % number)
        expected = {b"event %d" % number for number in range(EVENTS)}
        for receiver in (own["b"], own["c"], own["d"], second):
            assert {receiver.recv(100) for _ in range(EVENTS)} == expected
            assert _nothing_more(receiver)
        for number, receiver in enumerate(plain):
            assert receiver.recv(100) == b"event %d" % number
        assert _nothing_more(own["a"])  # it has sent them itself


def _nothing_more(receiver: socket.socket) -> bool:
    receiver.setblocking(False)
    try:
        receiver.recv(100)
    except BlockingIOError:
        return True
    return False


def _group(lab: Lab, host: str, family: int) -> str:
    _, address = lab.addresses(host).events(family)
    return address_text(family, address.first)


def test_deliveries_name_every_port_to_a_host():
    with running(NETWORK) as lab:
        found = deliveries_of(lab.topology, 6)
        assert {switch: sorted(ports) for switch, ports in found.items()} == {"s1": [2, 3, 4], "s2": [2, 3]}
        assert isinstance(found["s2"][3], Deliver)
        assert str(found["s2"][3].address) == "ff02::f10e:0:5/128"
        assert found["s2"][3].mac == 0x333300000005


def test_each_host_that_a_label_names_gets_it_at_its_own_group():
    """Also where several are on one switch: applications with plain UDP sockets get what is for their host."""
    deliveries = deliveries_of(NETWORK, 6)
    labelling = Labelling.make(NETWORK, deliveries=deliveries)
    names = list(NETWORK.hosts)
    with running(NETWORK) as lab, ExitStack() as sockets:
        control = f"unix:{lab.control}"
        hosts = sockets.enter_context(Hosts(lab))
        fabric = OpenFlowFabric(lab.switch_addresses, control=control)
        switches = sockets.enter_context(OpenFlowSwitches(fabric))
        controller = LabelController(labelling, Schema.parse({"a": {"type": "bool"}}), switches)
        controller.repair()
        assert controller.tables() == {
            switch: tuple(sorted(flows)) for switch, flows in labelling.tables().items()
        }
        assert controller.verify() == Verdict()
        own = {host: sockets.enter_context(joined(lab, host, 6, _group(lab, host, 6))) for host in names}
        wanted = [named for count in range(len(names)) for named in combinations(names[1:], count)]
        for number, named in enumerate(wanted):
            for address in labelling.labels.addresses(named):
                hosts.send(0, 6, address, b"event %d" % number)
        for host in names[1:]:
            mine = {b"event %d" % number for number, named in enumerate(wanted) if host in named}
            assert {own[host].recv(100) for _ in mine} == mine
        for receiver in own.values():
            assert _nothing_more(receiver)
