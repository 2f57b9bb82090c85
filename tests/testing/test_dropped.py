"""What the machine under a lab dropped is counted where it happened."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.machine import environment
from flowsieve.network.generators import line
from flowsieve.testing.dropped import Dropped, dropped

GROUP, PORT = "ff0e::7", 40123
PACKETS = 2_000  # more than a queue holds
PATIENCE_SECONDS = 20.0


@pytest.fixture
def pair() -> Iterator[Lab]:
    """Two switches with a host each, that send everything to everybody."""
    with running(line(2)) as lab:
        for switch in lab.topology.switches:
            words = [
                "ovs-ofctl",
                "-O",
                "OpenFlow14",
                "add-flow",
                f"unix:{lab.management(switch)}",
                "actions=flood",
            ]
            subprocess.run(words, check=True, env=environment())
        yield lab


def taking(lab: Lab, host: str) -> socket.socket:
    """A socket of a host that hears the group, with room for all that may come."""
    with lab.inside(host):
        own = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        index = socket.if_nametoindex(HOST_INTERFACE)
    own.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    own.setsockopt(
        socket.IPPROTO_IPV6,
        socket.IPV6_JOIN_GROUP,
        socket.inet_pton(socket.AF_INET6, GROUP) + struct.pack("@I", index),
    )
    own.bind(("::", PORT))
    own.settimeout(PATIENCE_SECONDS)
    return own


def send(lab: Lab, host: str, count: int) -> None:
    with lab.inside(host), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex(HOST_INTERFACE))
        for number in range(count):
            own.sendto(number.to_bytes(4), (GROUP, PORT))


def came(own: socket.socket, total: int, lab: Lab, before: Dropped) -> int:
    """How many packets come, until those that came and those that were dropped are all."""
    found, end = 0, time.monotonic() + PATIENCE_SECONDS
    own.settimeout(0.2)
    while time.monotonic() < end:
        try:
            own.recv(64)
            found += 1
        except TimeoutError:
            if found + dropped(lab).since(before).by_machine >= total:
                break
    return found


@pytest.mark.real
def test_what_switches_did_not_take_in_time_is_counted_at_the_port_where_it_waited(pair: Lab) -> None:
    first, second = pair.topology.hosts
    with ExitStack() as stack:
        own = stack.enter_context(taking(pair, second))
        send(pair, first, 10)
        assert [int.from_bytes(own.recv(64)) for _ in range(10)] == list(range(10))
        before = dropped(pair)
        pair.signal_vswitchd(signal.SIGSTOP)
        try:
            send(pair, first, PACKETS)
        finally:
            pair.signal_vswitchd(signal.SIGCONT)
        found = came(own, PACKETS, pair, before)
        lost = dropped(pair).since(before)
        assert lost.queues[pair.interface(pair.topology.hosts[first], first)] > 0
        assert found + sum(lost.queues.values()) == PACKETS, lost
        assert (lost.decisions, lost.hosts, lost.limits) == (0, 0, 0)


@pytest.mark.real
def test_what_a_host_did_not_read_in_time_is_counted_there(pair: Lab) -> None:
    first, second = pair.topology.hosts
    with taking(pair, second) as own:
        own.setsockopt(socket.SOL_SOCKET, 33, 1)  # SO_RCVBUFFORCE: the least that there is
        before = dropped(pair)
        send(pair, first, 200)
        assert came(own, 200, pair, before) < 200
        lost = dropped(pair).since(before)
    assert lost.hosts > 0
    assert lost.limits == 0


def test_switches_that_were_started_anew_count_from_nothing() -> None:
    before = Dropped({"s0.1": 40, "s0.2": 3}, decisions=7, hosts=2)
    after = Dropped({"s0.1": 4, "s0.2": 3, "s1.1": 1}, decisions=9, hosts=2)
    assert after.since(before) == Dropped({"s0.1": 4, "s1.1": 1}, decisions=2)
    assert after.since(before).by_machine == 7
