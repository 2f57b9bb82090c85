"""Switches that cannot be served, or reached, are told of, and once."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import peer
import pytest
from vswitch import PATIENCE_S, PATIENT

from flowsieve.errors import BadInput
from flowsieve.southbound.fabric import Connected, Disconnected, SwitchEvent
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.socket_address import SocketAddress


async def turned_away(place: str, hello: bytes) -> None:
    """Dial, say hello, and be hung up on."""
    reader, writer = await asyncio.open_unix_connection(place)
    writer.write(hello)
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionResetError:
        pass
    writer.close()


def test_a_switch_of_another_version_that_dials_us_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        place = str(tmp_path / "port")
        async with (
            asyncio.timeout(PATIENCE_S),
            OpenFlowFabric({}, listen=f"unix:{place}", identities={"s1": switch_id(7)}),
        ):
            for _ in range(3):
                await turned_away(place, peer.hello(4))

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    (told,) = [record.getMessage() for record in caplog.records]
    assert "is turned away: the peer speaks the versions 4; right is 5 (OpenFlow 1.4)" in told


def test_a_switch_that_is_dialled_is_not_taken_when_it_dials_us(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[SwitchEvent] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(peer.hello(5) + peer.features(2, datapath=7))
        while await reader.read(1 << 16):
            pass
        writer.close()
        gone.set()

    gone = asyncio.Event()

    async def story() -> None:
        place, there = str(tmp_path / "port"), str(tmp_path / "s1")
        server = await asyncio.start_unix_server(answer, there)
        async with (
            asyncio.timeout(PATIENCE_S),
            server,
            OpenFlowFabric(
                {"s1": f"unix:{there}"},
                listen=f"unix:{place}",
                identities={"s1": switch_id(7)},
                report=heard.append,
            ) as fabric,
        ):
            await fabric.wait_connected(PATIENCE_S)
            for _ in range(3):
                await turned_away(place, peer.hello(5) + peer.features(2, datapath=7))
            assert heard == [Connected("s1")]
        async with asyncio.timeout(PATIENCE_S):
            await gone.wait()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    (told,) = [record.getMessage() for record in caplog.records]
    assert "switch s1 is dialled at unix:" in told


@pytest.mark.parametrize("address", [SocketAddress(path="/none/s1"), SocketAddress(host="a..b", port=6653)])
def test_why_a_switch_cannot_be_dialled_is_told_and_once(address: SocketAddress) -> None:
    heard: list[SwitchEvent] = []

    async def story() -> None:
        fabric = OpenFlowFabric({"s1": "unix:/none/s1"}, timing=PATIENT, report=heard.append)
        fabric._addresses["s1"] = address
        async with asyncio.timeout(PATIENCE_S), fabric:
            while not heard:
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.1)  # some more attempts

    asyncio.run(story())
    (told,) = heard
    assert isinstance(told, Disconnected) and told.reason.startswith(f"{address}: ")


@pytest.mark.parametrize("name", ["a..b", ".", "x" * 64])
def test_a_name_that_cannot_be_looked_up_is_no_address(name: str) -> None:
    with pytest.raises(BadInput, match="is no address; right is"):
        SocketAddress.parse(f"tcp:{name}:6653")
    assert SocketAddress.parse("tcp:[fd00::1]:6653").host == "fd00::1"
