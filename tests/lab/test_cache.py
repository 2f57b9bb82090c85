"""What a datapath caches: what it has because of an entry goes with the entry, and nobody can fill it."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import Gate, Guard
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.match import PrefixMatch
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.vswitchd import ask
from flowsieve.network.topology import Topology
from flowsieve.southbound.openflow.fabric import OpenFlowFabric

NETWORK = Topology.make([], {"a": "s1", "b": "s1"}, switches=["s1"])
WIDE, NARROW = Prefix.parse("ff0e:8000::/17"), Prefix.parse("ff0e:8080::/25")
INSIDE_BOTH = "ff0e:8081::"
SECONDS = 10.0
FORGED = 300  # addresses


def entry(kind: OpKind, prefix: Prefix) -> FlowOp:
    to_b = (Output(NETWORK.port("s1", "b")),)
    return FlowOp(kind, Flow(PrefixMatch(prefix), 1000 + prefix.length - 16, to_b))


def send(lab: Lab, address: str) -> None:
    with lab.inside("a"), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        index = socket.if_nametoindex(HOST_INTERFACE)
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sender.sendto(b"event", (address, 9559))


def cached(lab: Lab) -> list[str]:
    """The decisions that the datapath has cached for events."""
    return [line for line in ask(lab, "dpctl/dump-flows").splitlines() if "dst=ff0e" in line]


@pytest.mark.real
def test_a_removed_entry_leaves_no_cached_decision_behind() -> None:
    async def main(lab: Lab) -> None:
        addresses = {"s1": f"unix:{lab.management('s1')}"}
        async with (
            asyncio.timeout(3 * SECONDS),
            OpenFlowFabric(addresses, control=f"unix:{lab.control}") as fabric,
        ):
            await fabric.wait_connected()
            await fabric.apply("s1", [entry(OpKind.INSTALL, WIDE), entry(OpKind.INSTALL, NARROW)])
            end = time.monotonic() + SECONDS
            while not cached(lab) and time.monotonic() < end:
                send(lab, INSIDE_BOTH)
                await asyncio.sleep(0.01)
            assert any("/ffff:ff80::" in line for line in cached(lab))
            await fabric.apply("s1", [entry(OpKind.REMOVE, NARROW)])
            assert not any("/ffff:ff80::" in line for line in cached(lab))

    with running(NETWORK) as lab:
        asyncio.run(main(lab))


@pytest.mark.real
def test_a_host_that_forges_sources_leaves_few_decisions() -> None:
    async def main(lab: Lab) -> None:
        addresses = {"s1": f"unix:{lab.management('s1')}"}
        own, port = Prefix.parse(lab.addresses("a").ipv6), NETWORK.port("s1", "a")
        guard = Guard(Prefix.parse("ff0e::/16"), False, (Gate(port, own, (WIDE,)),))
        async with (
            asyncio.timeout(12 * SECONDS),
            OpenFlowFabric(addresses, control=f"unix:{lab.control}") as fabric,
        ):
            await fabric.wait_connected()
            await fabric.apply("s1", [entry(OpKind.INSTALL, WIDE)])
            await fabric.guard("s1", guard)
            forge(lab, own.first)
            while (await fabric.refusals("s1"))[port].outside < FORGED:
                await asyncio.sleep(0.05)
            assert (
                1 <= len(cached(lab)) <= 40
            )  # one for each bit at which some of them differ, not for each of them

    with running(NETWORK) as lab:
        asyncio.run(main(lab))


def forge(lab: Lab, own: int) -> None:
    """Send an event from each of many addresses, some of them near the host's own."""
    to = Prefix.parse(INSIDE_BOTH).first.to_bytes(16)
    with lab.inside("a"), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((HOST_INTERFACE, 0))
        for number in range(1, FORGED + 1):
            source = (own + 2 * number if number % 2 else own ^ number << 112).to_bytes(16)
            wire.send(build(UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), source, to, 9, 9, b"forged")))
            if number % 50 == 0:
                time.sleep(0.05)  # a port of the switch has room for some more
