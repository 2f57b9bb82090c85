"""What a datapath has cached because of an entry goes with the entry: kept, it would outlive later changes."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
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
