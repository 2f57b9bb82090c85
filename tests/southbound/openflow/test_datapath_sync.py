"""Questions to the datapath that many wait for."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path
from typing import cast

import pytest

from flowsieve.southbound.openflow import datapath_sync as lag
from flowsieve.southbound.openflow.datapath_sync import DatapathBehind, DatapathSync
from flowsieve.southbound.socket_address import SocketAddress


class Daemon:
    """Answers what it is asked; if it sleeps, only when it is dialled once more."""

    def __init__(self, sleeps: bool = False) -> None:
        self.rounds = self.purges = 0
        self.transports: list[asyncio.Transport] = []
        self._sleeps = sleeps
        self._owed: list[tuple[asyncio.Transport, bytes]] = []

    def dialled(self, transport: asyncio.Transport) -> None:
        self.transports.append(transport)
        for earlier, answers in self._owed:
            earlier.write(answers)
        self._owed.clear()

    def asked(self, transport: asyncio.Transport, data: bytes) -> None:
        self.rounds += data.count(b"revalidator/wait")
        self.purges += data.count(b"revalidator/purge")
        answers = b'{"id": 0, "result": "s1\\ns2", "error": null}' * data.count(b"method")
        if self._sleeps:
            self._owed.append((transport, answers))
        else:
            transport.write(answers)

    async def listen(self, path: Path) -> asyncio.Server:
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(path))
        return await self.serve(door)

    async def serve(self, door: socket.socket) -> asyncio.Server:
        daemon = self

        class Answering(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast(asyncio.Transport, transport)
                daemon.dialled(self.transport)

            def data_received(self, data: bytes) -> None:
                daemon.asked(self.transport, data)

        return await asyncio.get_running_loop().create_unix_server(Answering, sock=door)

    def die(self) -> None:
        for transport in self.transports:
            transport.abort()


def test_one_sleeping_daemon_is_woken_up(tmp_path: Path) -> None:
    async def main() -> None:
        daemon, path = Daemon(sleeps=True), tmp_path / "control"
        async with await daemon.listen(path), asyncio.timeout(5):
            datapath = DatapathSync(SocketAddress(path=str(path)), 100.0)
            await datapath.follow()
            assert (daemon.rounds, daemon.purges) == (2, 0)
            await datapath.follow(removed=True)
            assert (daemon.rounds, daemon.purges) == (3, 1)
            datapath.close()
            daemon.die()

    asyncio.run(main())


def test_a_daemon_that_was_started_anew_is_asked_anew(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "control"
        datapath = DatapathSync(SocketAddress(path=str(path)), 100.0)
        for _ in range(3):
            daemon = Daemon()
            async with await daemon.listen(path), asyncio.timeout(5):
                await datapath.follow()
                assert daemon.rounds == 2
                daemon.die()
            path.unlink()
        datapath.close()

    asyncio.run(main())


def test_those_who_come_while_it_is_asked_get_a_question_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        async with await daemon.listen(path), asyncio.timeout(5):
            datapath = DatapathSync(SocketAddress(path=str(path)), 100.0)
            first = asyncio.create_task(datapath.follow())
            while not daemon.rounds:
                await asyncio.sleep(0)
            await asyncio.gather(first, *(datapath.follow(removed=n == 3) for n in range(9)))
            assert (daemon.rounds, daemon.purges) == (3, 1)
            datapath.close()
            daemon.die()

    asyncio.run(main())


def test_what_could_not_be_purged_is_purged_by_the_next_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "LONGEST", 0.1)

    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        silent = socket.socket(socket.AF_UNIX)
        silent.bind(str(path))
        silent.listen(64)
        datapath = DatapathSync(SocketAddress(path=str(path)), 0.0)
        with pytest.raises(DatapathBehind, match="no word from the datapath"):
            await datapath.follow(removed=True)
        silent.close()
        path.unlink()
        await datapath.follow()  # there is nobody
        async with await daemon.listen(path), asyncio.timeout(5):
            await datapath.follow()
            assert (daemon.rounds, daemon.purges) == (1, 1)
            await datapath.follow()
            assert (daemon.rounds, daemon.purges) == (3, 1)
            datapath.close()
            daemon.die()

    asyncio.run(main())


def test_what_is_cached_is_thrown_away_once_for_all_batches_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "TOGETHER", 60.0)

    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        async with await daemon.listen(path), asyncio.timeout(60):
            datapath = DatapathSync(SocketAddress(path=str(path)), 100.0)
            with datapath.batch():
                first = asyncio.create_task(datapath.follow(removed=True))
                await datapath.follow()  # without a removal there is nothing to wait for
                assert (daemon.rounds, daemon.purges) == (2, 0) and not first.done()
            await asyncio.gather(first, datapath.follow(removed=True))
            assert (daemon.rounds, daemon.purges) == (3, 1)
            monkeypatch.setattr(lag, "TOGETHER", 0.01)
            with datapath.batch():  # one that takes long holds up nobody
                await datapath.follow(removed=True)
            assert (daemon.rounds, daemon.purges) == (4, 2)
            datapath.close()
            daemon.die()

    asyncio.run(main())


def test_closing_tells_those_who_wait(tmp_path: Path) -> None:
    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        async with await daemon.listen(path), asyncio.timeout(5):
            datapath = DatapathSync(SocketAddress(path=str(path)), 100.0)
            waiting = asyncio.create_task(datapath.follow())
            while not daemon.transports:
                await asyncio.sleep(0)
            datapath.close()
            with pytest.raises(DatapathBehind, match="closed before the datapath has followed"):
                await waiting
            daemon.die()

    asyncio.run(main())


def test_one_that_is_too_busy_to_be_dialled_is_there_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "LONGEST", 0.1)

    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))
            door.listen(1)
            waiting = fill(path)
            datapath = DatapathSync(SocketAddress(path=str(path)), 0.0)
            with pytest.raises(DatapathBehind, match="no word from the datapath"):
                await datapath.follow()
            monkeypatch.setattr(lag, "LONGEST", 5.0)
            following = asyncio.create_task(datapath.follow())
            await asyncio.sleep(0.02)
            assert not following.done()
            async with await daemon.serve(door), asyncio.timeout(5):
                await following
                assert daemon.rounds == 2
                datapath.close()
                daemon.die()
            for own in waiting:
                own.close()

    asyncio.run(main())


def fill(path: Path) -> list[socket.socket]:
    """Callers, as many as are kept waiting at once."""
    callers = []
    for _ in range(100):
        own = socket.socket(socket.AF_UNIX)
        own.setblocking(False)
        callers.append(own)
        try:
            own.connect(str(path))
        except BlockingIOError:
            return callers
    raise AssertionError("there is always room")


def test_nobody_to_ask_is_told_once_and_again_when_there_was_somebody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        daemon, path = Daemon(), tmp_path / "control"
        datapath = DatapathSync(SocketAddress(path=str(path)), 0.0)
        for _ in range(3):
            await datapath.follow()
        assert caplog.text.count("nobody at unix:") == 1
        async with await daemon.listen(path), asyncio.timeout(5):
            await datapath.follow()
            daemon.die()
        path.unlink()
        await datapath.follow()
        assert caplog.text.count("nobody at unix:") == 2
        datapath.close()

    asyncio.run(main())


def test_one_that_could_never_be_asked_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        datapath = DatapathSync(SocketAddress(host="127.0.0.1", port=1), 0.0)
        await datapath.follow()
        assert "nobody at tcp:127.0.0.1:1" in caplog.text
        datapath.close()

    asyncio.run(main())


def test_one_that_may_not_be_asked_has_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is there is not done without because of what is wrong with us: too many open files, say."""

    def too_many(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    async def main() -> None:
        datapath = DatapathSync(SocketAddress(path=str(tmp_path / "control")), 0.0)
        monkeypatch.setattr(lag, "_dialled_at_once", too_many)
        with pytest.raises(DatapathBehind, match="Too many open files"):
            await datapath.follow()
        datapath.close()

    asyncio.run(main())
