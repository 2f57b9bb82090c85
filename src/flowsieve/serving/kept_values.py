"""Small values that a controller keeps beside its journal, each under a name: in files, or in a shared etcd."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from flowsieve.errors import JournalError

if TYPE_CHECKING:
    from flowsieve.control.shared.leadership import Leadership


class KeptValues(Protocol):
    """Values by their names, which are letters, digits and dashes."""

    async def all(self) -> dict[str, bytes]:
        """All that is kept."""
        ...

    async def keep(self, name: str, value: bytes) -> None:
        """Have a value in place of the one before; it is kept when this returns."""
        ...

    async def forget(self, name: str) -> None: ...


class FolderValues:
    """A file for each value, whole at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def all(self) -> dict[str, bytes]:
        return await asyncio.to_thread(self._all)

    async def keep(self, name: str, value: bytes) -> None:
        await asyncio.to_thread(self._keep, name, value)

    async def forget(self, name: str) -> None:
        await asyncio.to_thread((self._folder / name).unlink, missing_ok=True)

    def _all(self) -> dict[str, bytes]:
        try:
            found = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
            return {path.name: path.read_bytes() for path in found if not path.name.startswith(".")}
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be read: {error.strerror}") from None

    def _keep(self, name: str, value: bytes) -> None:
        new = self._folder / f".{name}"
        try:
            self._folder.mkdir(exist_ok=True)
            with new.open("wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._folder / name)
        except OSError as error:
            raise JournalError(f"{new} cannot be written: {error.strerror}") from None


class SharedValues:
    """A key for each value, which only the controller that leads changes."""

    def __init__(self, leadership: Leadership, name: str) -> None:
        self._leadership, self._root = leadership, f"{name}/"

    async def all(self) -> dict[str, bytes]:
        found = await self._leadership.etcd.below(self._root)
        return {path.removeprefix(self._root): value for path, value in found.items()}

    async def keep(self, name: str, value: bytes) -> None:
        await self._leadership.commit({self._root + name: value})

    async def forget(self, name: str) -> None:
        key = self._root + name
        await self._leadership.commit({}, [(key, key + "\0")])
