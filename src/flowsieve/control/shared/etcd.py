"""etcd, as far as controllers need it: keys below one name, read together, and changed while a fence holds.

Any of its servers will do; when one does not answer, the next is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aetcd

from flowsieve.control.shared.servers import Server
from flowsieve.errors import BadInput, JournalError

T = TypeVar("T")

ANSWER_SECONDS = 1.0  # for one server
LEASE_OVER = "lease not found"  # as etcd says it
LARGEST = 1_000_000  # bytes of a value; etcd takes requests of 1.5 MB
_OPTIONS = {"grpc.max_receive_message_length": -1, "grpc.enable_retries": 0}
# What says nothing of the request, and another server may do better.
_ELSEWHERE = (aetcd.ConnectionFailedError, aetcd.ConnectionTimeoutError)


class EtcdSilent(JournalError):
    """No server of etcd answers; whether it has done what it was asked is unknown."""


class LeaseOver(JournalError):
    """What was to hang on a lease cannot: it is over."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A key that somebody holds, and the number that it got when it was made: one who holds it later has a higher."""

    key: str
    number: int


@dataclass(frozen=True, slots=True)
class Holder:
    """What a key has, the fence that it is, and the number of the store when it was read."""

    value: bytes
    fence: Fence
    revision: int


class Etcd:
    """All keys are below `name`, so that several networks may share an etcd."""

    def __init__(self, servers: Sequence[str], name: str, patience: float = ANSWER_SECONDS) -> None:
        self.servers = [Server.parse(each) for each in servers]
        if not self.servers:
            raise BadInput("etcd has no server; right is a list of them, such as 127.0.0.1:2379")
        self.name = name
        self._patience = patience
        self._next = 0
        self._client: aetcd.Client | None = None

    def key(self, path: str) -> bytes:
        """A key's whole name."""
        return f"/flowsieve/{self.name}/{path}".encode()

    async def value(self, path: str) -> bytes | None:
        """What a key has; None if there is no such key."""
        holder = await self.holder(path)
        return None if holder is None else holder.value

    async def holder(self, path: str) -> Holder | None:
        """What a key has, and since when it is there; None if there is no such key."""
        found = await self._ask(lambda client: client.get(self.key(path)))
        if found is None:
            return None
        return Holder(found.value, Fence(path, found.create_revision), found.header.revision)

    async def below(self, path: str) -> dict[str, bytes]:
        """All keys that begin so, in their order, with what they have at one moment."""
        whole = self.key(path)
        found = await self._ask(lambda client: client.get_prefix(whole, sort_order="ascend"))
        return {path + each.key[len(whole) :].decode(): each.value for each in found}

    async def between(self, first: str, end: str) -> dict[str, bytes]:
        """All keys from one up to and without another, in their order, with what they have at one moment."""
        root = len(self.key(""))
        found = await self._ask(
            lambda client: client.get_range(self.key(first), self.key(end), sort_order="ascend")
        )
        return {each.key[root:].decode(): each.value for each in found}

    async def commit(
        self,
        puts: Mapping[str, bytes],
        deletes: Sequence[tuple[str, str]] = (),
        *,
        fence: Fence | None = None,
        absent: str | None = None,
        lease: int | None = None,
    ) -> bool:
        """Change keys, all or none; whether the fence held, and the `absent` key was not there.

        `deletes` are ranges, from a key up to and without another.
        """

        def work(client: aetcd.Client) -> Awaitable[tuple[bool, object]]:
            say = client.transactions
            conditions = []
            if fence is not None:
                conditions.append(say.create(self.key(fence.key)) == fence.number)
            if absent is not None:
                conditions.append(say.create(self.key(absent)) == 0)
            done = [say.delete(self.key(first), self.key(end)) for first, end in deletes]
            done += [say.put(self.key(path), value, lease) for path, value in puts.items()]
            changed: Awaitable[tuple[bool, object]] = client.transaction(conditions, done, [])
            return changed

        succeeded, _ = await self._ask(work)
        return bool(succeeded)

    async def gone(self, holder: Holder, within: float) -> None:
        """Returns when a key is not as it was any more, or after so many seconds."""
        whole, after = self.key(holder.fence.key), holder.revision + 1
        with suppress(TimeoutError, EtcdSilent, aetcd.WatchTimeoutError):
            async with asyncio.timeout(within):
                await self._ask(lambda client: client.watch_once(whole, start_revision=after))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _closed(client)

    async def _ask(self, work: Callable[[aetcd.Client], Awaitable[T]]) -> T:
        """Have one server do something, the first that answers."""
        trouble = ""
        for _ in self.servers:
            client, server = self._at(), self.servers[self._next]
            try:
                return await work(client)
            except _ELSEWHERE as error:
                trouble = f"{server}: {error}"
                await self._leave(client)
            except asyncio.CancelledError:
                if client is self._client or _being_cancelled():
                    raise
                trouble = f"{server}: somebody else gave it up meanwhile"
            except aetcd.ClientError as error:
                if LEASE_OVER in str(error):
                    raise LeaseOver(f"etcd at {server} says: {error}") from None
                raise JournalError(f"etcd at {server} says: {error}") from None
        raise EtcdSilent(f"no server of etcd answers ({trouble})")

    def _at(self) -> aetcd.Client:
        if self._client is None:
            server = self.servers[self._next]
            self._client = aetcd.Client(server.host, server.port, timeout=self._patience, options=_OPTIONS)
        return self._client

    async def _leave(self, client: aetcd.Client) -> None:
        """Ask the next server from now on, unless somebody else has found that out as well."""
        if client is self._client:
            self._client = None
            self._next = (self._next + 1) % len(self.servers)
            await _closed(client)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _closed(client: Any) -> None:
    with suppress(Exception):  # it may be in any state
        await client.close()
