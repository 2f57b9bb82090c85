"""Who owns which partition, kept where the next dispatcher finds it: an owner's number is higher than all before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from flowsieve.index.dz import Dz

if TYPE_CHECKING:
    from flowsieve.control.shared.leadership import Leadership  # not everybody has etcd

PARTITIONS, DISPATCHER = "partitions/", "dispatcher"


class Ownership(Protocol):
    """`keep` who owns what before an owner hears of it."""

    async def numbers(self) -> Mapping[Dz, int]:
        """The numbers that were given last."""
        ...

    async def keep(self, owner: str, numbers: Mapping[Dz, int]) -> None:
        """A configurator owns these partitions, under these numbers."""
        ...

    async def announce(self, address: str) -> None:
        """Configurators find the dispatcher there."""
        ...


class OwnOwnership:
    """For a dispatcher whose configurators end with it."""

    async def numbers(self) -> Mapping[Dz, int]:
        return {}

    async def keep(self, owner: str, numbers: Mapping[Dz, int]) -> None:
        pass

    async def announce(self, address: str) -> None:
        pass


class SharedOwnership:
    """In etcd, written by the one who leads."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    async def numbers(self) -> Mapping[Dz, int]:
        found: dict[Dz, int] = {}
        for path, value in (await self._leadership.etcd.below(PARTITIONS)).items():
            with suppress(ValueError, KeyError, TypeError):
                found[Dz.parse(path.removeprefix(PARTITIONS))] = int(json.loads(value)["number"])
        return found

    async def keep(self, owner: str, numbers: Mapping[Dz, int]) -> None:
        puts = {
            f"{PARTITIONS}{dz}": json.dumps({"owner": owner, "number": number}).encode()
            for dz, number in numbers.items()
        }
        await self._leadership.commit(puts)

    async def announce(self, address: str) -> None:
        told = {"address": address, "number": self._leadership.fence.number}
        await self._leadership.commit({DISPATCHER: json.dumps(told).encode()})
