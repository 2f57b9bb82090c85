"""Configurators on the loop of a test, without sockets: they take as many turns of it as a test lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import cast

from flowsieve.control.partitions.configurator import Configurator
from flowsieve.control.partitions.configurators import Configurators, SharingSettings, _Link
from flowsieve.control.partitions.ownership import OwnOwnership


class _Wire:
    """In the place of a connection."""

    def close(self) -> None:
        pass


class InLoopConfigurators(Configurators):
    """Two configurators; `turns` says for how many turns of the loop an order is worked on."""

    def __init__(self, turns: Callable[[], int] = lambda: 1) -> None:
        super().__init__(OwnOwnership(), b"", SharingSettings(2))
        self._turns = turns
        self._hired = 0

    async def __aenter__(self) -> InLoopConfigurators:
        await self._tasks.__aenter__()
        self._server = cast("asyncio.Server", object())
        self._begin_state()
        self.hire()
        self.hire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.__aexit__(kind, error, trace)

    def hire(self) -> None:
        """One more is there."""
        self._hired += 1
        link = _Link(f"c{self._hired}", cast("asyncio.StreamWriter", _Wire()))
        self._links[link.name] = link
        self._join(link.name)
        self._tasks.start(self._work(link))

    def fire(self, at: int) -> None:
        """One of them is gone, whatever it is at, and another comes."""
        self._leave(list(self._links)[at % len(self._links)])
        self.hire()

    async def _work(self, link: _Link) -> None:
        configurator = Configurator()
        while link.name in self._links:
            serial, order = await link.orders.get()
            answer = configurator.handle(order)
            for _ in range(self._turns()):
                await asyncio.sleep(0)
            if link.name in self._links:
                self.pool.answered(link.name, serial, answer)
                self._flush()
