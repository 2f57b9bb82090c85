"""Addresses that are kept from others before anybody is served there."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from flowsieve.southbound.socket_address import ReservedAddress, SocketAddress


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"welcome")
        transport.close()


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(whole())


def where(reserved: ReservedAddress) -> SocketAddress:
    """Its address, with the port that the system chose."""
    name = reserved._server.sockets[0].getsockname()
    return SocketAddress(path=name) if isinstance(name, str) else SocketAddress(host=name[0], port=name[1])


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_who_dials_a_reserved_address_is_served_later_and_nobody_else_can_listen_there(
    tmp_path: Path, kind: str
) -> None:
    address = SocketAddress.parse(f"unix:{tmp_path}/sock" if kind == "unix" else "tcp:127.0.0.1:0")

    async def story() -> None:
        reserved = await address.reserve(8)
        reader, writer = await where(reserved).dial()
        with pytest.raises(OSError) as taken:
            await where(reserved).reserve(8)
        assert taken.value.errno == errno.EADDRINUSE
        await reserved.serve(Greeter)
        assert await reader.read() == b"welcome"
        writer.close()
        await writer.wait_closed()
        reserved.close()
        with pytest.raises(OSError):
            await address.dial()

    play(story)


def test_a_socket_is_removed_once_and_not_that_of_a_successor(tmp_path: Path) -> None:
    address = SocketAddress.parse(f"unix:{tmp_path}/sock")

    async def story() -> None:
        first = await address.reserve(8)
        first.close()
        assert not (tmp_path / "sock").exists()
        second = await address.reserve(8)
        first.close()
        assert (tmp_path / "sock").exists()
        second.close()

    play(story)
