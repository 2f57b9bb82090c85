"""The daemon's beginning, where not all is as it should be."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import TableFull
from flowsieve.serving import daemon
from flowsieve.southbound.fabric import Fabric


class Full:
    """A dispatcher one of whose switches has too little room."""

    async def settled(self) -> None:
        raise TableFull(switch="s3", needed=2, capacity=1)


class Alone:
    """Switches that no other controller holds."""

    async def stood_by(self) -> str:
        return await asyncio.Future()


def test_a_switch_that_is_too_small_keeps_the_controller_from_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.run(daemon._connected(cast(Dispatcher, Full()), cast(Fabric, Alone())))
    assert "switch s3 needs at least 2 entries" in caplog.text
