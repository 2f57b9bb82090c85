"""Where a controller remembers: alone, in a folder, or together with others, of which one leads, in etcd.

What it is given there is its own from then on: the journal, the right to the switches, and the secret that tokens and
keys come from.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Journal, Past
from flowsieve.control.memory.kept_claim import KeptClaim, Tenure, read_tenure, write_tenure
from flowsieve.control.memory.recovery import recover
from flowsieve.control.memory.sqlite_journal import SqliteJournal, look
from flowsieve.control.partitions.ownership import Ownership, OwnOwnership, SharedOwnership
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.errors import BadInput, JournalError
from flowsieve.serving.calls.tokens import SECRET_BYTES, keep_secret, kept_secret
from flowsieve.serving.config import Config
from flowsieve.serving.kept_values import FolderValues, KeptValues, SharedValues
from flowsieve.serving.site.site import Site
from flowsieve.serving.state_folder import check_folder
from flowsieve.southbound.fabric import Claim
from flowsieve.tasks import Tasks

JOURNAL, SECRET = "journal.db", "secret"
Appended = Callable[[int, float], None]


class OpenJournal(Journal, Protocol):
    """A journal that takes some room, and that is let go of in the end."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a controller has of its memory once that is its own."""

    journal: OpenJournal
    claim: Claim
    secret: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """By what hosts know a controller (tokens come from the secret), and switches (their claim)."""

    secret: bytes | None
    tenure: Tenure | None


class Memory(Protocol):
    """`win` it, `open` it, and leave off when it is `lost`."""

    @property
    def lost(self) -> asyncio.Event:
        """Set when another controller has it."""
        ...

    @property
    def doubt(self) -> str | None:
        """Why another controller may be the one that remembers by now, if so."""
        ...

    @property
    def told(self) -> Callable[[], Awaitable[Mapping[str, Any]]] | None:
        """What tells of all controllers that share it; None if nobody else can."""
        ...

    @property
    def ownership(self) -> Ownership:
        """Where it is kept who owns which partition."""
        ...

    def values(self, name: str) -> KeptValues:
        """Small values that are kept beside the journal, once it is this controller's own."""
        ...

    async def win(self) -> None:
        """Wait until this controller is the one that remembers."""
        ...

    async def open(self, base: str, appended: Appended, take_over: bool) -> Remembered:
        """All that there is; `base` names what it is about."""
        ...

    async def recovered(self, journal: Journal) -> tuple[ControlState, Ledger]:
        """The state that a journal that is open leads to, and what came of the requests."""
        ...

    async def look(self, base: str, schema: Schema) -> Past:
        """What was written so far, also by another; it changes nothing."""
        ...

    async def secret(self) -> bytes:
        """What tokens and keys come from; it is made by the first who asks for it."""
        ...

    async def identity(self) -> Identity:
        """By what clients and switches know this controller, as far as there is something."""
        ...

    async def become(self, identity: Identity) -> None:
        """Be known by that from now on; raises BadInput if it is known by another already."""
        ...

    async def leave(self) -> None:
        """Let another have it."""
        ...


class OwnMemory:
    """A folder; a second controller that wants it is told so."""

    doubt: str | None = None
    told: Callable[[], Awaitable[Mapping[str, Any]]] | None = None

    def __init__(self, config: Config, site: Site) -> None:
        self._config, self._site = config, site
        self._never = asyncio.Event()

    @property
    def lost(self) -> asyncio.Event:
        return self._never

    @property
    def ownership(self) -> Ownership:
        return OwnOwnership()

    def values(self, name: str) -> KeptValues:
        return FolderValues(self._site.folder / name)

    async def win(self) -> None:
        """Whoever opens the journal has it."""

    async def open(self, base: str, appended: Appended, take_over: bool) -> Remembered:
        check_folder(self._site.folder)
        journal = SqliteJournal(self._site.folder / JOURNAL, base, appended)
        try:
            claim = KeptClaim(self._site.claim_file, take_over)
            return Remembered(journal, claim, await self.secret())
        except BaseException:
            await journal.close()
            raise

    async def recovered(self, journal: Journal) -> tuple[ControlState, Ledger]:
        return recover(
            await journal.load(self._config.index.plan.schema),
            partial(self._config.fresh, self._site.topology),
        )

    async def look(self, base: str, schema: Schema) -> Past:
        return look(self._site.folder / JOURNAL, schema, base)

    async def secret(self) -> bytes:
        check_folder(self._site.folder)
        return kept_secret(self._site.folder / SECRET)

    async def identity(self) -> Identity:
        secret, claim = self._site.folder / SECRET, self._site.claim_file
        return Identity(
            secret.read_bytes() if secret.exists() else None,
            read_tenure(claim) if claim.exists() else None,
        )

    async def become(self, identity: Identity) -> None:
        check_folder(self._site.folder)
        check_stranger(await self.identity(), identity, str(self._site.folder))
        if identity.secret is not None:
            keep_secret(self._site.folder / SECRET, identity.secret)
        if identity.tenure is not None:
            write_tenure(self._site.claim_file, identity.tenure)

    async def leave(self) -> None:
        """Whoever closes the journal has left."""


class SharedMemory:
    """An etcd that several controllers share; one of them leads, and the others wait for its end."""

    def __init__(self, config: Config, site: Site) -> None:
        from flowsieve.control.memory.follower import Follower
        from flowsieve.control.shared.etcd import Etcd  # not everybody has it
        from flowsieve.control.shared.leadership import Leadership

        control = config.control
        self._etcd = Etcd(control.etcd, control.name)
        self._base = config.base(site.topology)
        self._follower = Follower(self._etcd, config.index.plan.schema, partial(config.fresh, site.topology))
        about = {"calls": site.calls}
        self.leadership = Leadership(self._etcd, control.node, about, control.lease)

    @property
    def lost(self) -> asyncio.Event:
        return self.leadership.lost

    @property
    def doubt(self) -> str | None:
        return self.leadership.doubt

    @property
    def ownership(self) -> Ownership:
        return SharedOwnership(self.leadership)

    @property
    def told(self) -> Callable[[], Awaitable[Mapping[str, Any]]] | None:
        return self._told

    async def _told(self) -> Mapping[str, Any]:
        lead, doubt = self.leadership, self.doubt
        try:
            nodes = await lead.nodes()
        except JournalError as error:
            nodes, doubt = [], doubt or str(error)
        return {"node": lead.node, "leads": doubt is None, "doubt": doubt, "nodes": nodes}

    def values(self, name: str) -> KeptValues:
        return SharedValues(self.leadership, name)

    async def win(self) -> None:
        """Whoever could not go on with what is remembered does not wait for it."""
        from flowsieve.control.memory.etcd_journal import check_shared
        from flowsieve.control.shared.etcd import EtcdSilent

        with suppress(EtcdSilent):
            await check_shared(self._etcd, self._base)
        async with Tasks() as meanwhile:
            meanwhile.start(self._follower.follow())
            await self.leadership.win()

    async def open(self, base: str, appended: Appended, take_over: bool) -> Remembered:
        from flowsieve.control.memory.etcd_journal import EtcdJournal
        from flowsieve.control.shared.shared_claim import SharedClaim

        lead = self.leadership
        journal = await EtcdJournal.opened(lead, base, appended=appended)
        claim = await SharedClaim.opened(lead, take_over)
        return Remembered(journal, claim, await self.secret())

    async def recovered(self, journal: Journal) -> tuple[ControlState, Ledger]:
        return await self._follower.caught_up()

    async def look(self, base: str, schema: Schema) -> Past:
        from flowsieve.control.memory.etcd_journal import look_shared

        return await look_shared(self._etcd, schema, base)

    async def secret(self) -> bytes:
        found = await self._etcd.value(SECRET)
        if found is None:
            await self._etcd.commit({SECRET: secrets.token_bytes(SECRET_BYTES)}, absent=SECRET)
            found = await self._etcd.value(SECRET)
        assert found is not None
        return found

    async def identity(self) -> Identity:
        from flowsieve.control.shared.shared_claim import CLAIM

        secret, claim = await self._etcd.value(SECRET), await self._etcd.value(CLAIM)
        return Identity(secret, Tenure.read(claim) if claim is not None else None)

    async def become(self, identity: Identity) -> None:
        from flowsieve.control.shared.shared_claim import CLAIM

        check_stranger(await self.identity(), identity, "etcd")
        puts = {} if identity.secret is None else {SECRET: identity.secret}
        if identity.tenure is not None:
            puts[CLAIM] = identity.tenure.written().encode()
        await self.leadership.commit(puts)

    async def leave(self) -> None:
        await self.leadership.leave()
        await self._etcd.close()


def check_stranger(there: Identity, other: Identity, where: str) -> None:
    """Raise where somebody is known already who is not the other."""
    for known, new, what in (
        (there.secret, other.secret, "a secret, so that hosts have other tokens"),
        (there.tenure, other.tenure, "a claim to switches"),
    ):
        if known is not None and known != new:
            raise BadInput(f"{where} has {what}; right is a place where no controller has been")


async def looked_at(config: Config, site: Site) -> Past:
    """What a controller of this configuration would remember if it started now."""
    memory = memory_of(config, site)
    try:
        return await memory.look(config.base(site.topology), config.index.plan.schema)
    finally:
        await memory.leave()


def memory_of(config: Config, site: Site) -> Memory:
    """Where a controller of this configuration remembers."""
    return SharedMemory(config, site) if config.control.etcd else OwnMemory(config, site)
