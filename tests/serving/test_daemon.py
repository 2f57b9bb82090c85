"""The daemon's beginning, where not all is as it should be."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from flowsieve.control.dispatcher import Dispatcher
from flowsieve.errors import TableFull
from flowsieve.serving import daemon


class Full:
    """A dispatcher one of whose switches has too little room."""

    async def settled(self) -> None:
        raise TableFull(switch="s3", needed=2, capacity=1)


def test_a_switch_that_is_too_small_keeps_the_controller_from_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asyncio.run(daemon._connected(cast(Dispatcher, Full())))
    assert "switch s3 needs at least 2 entries" in caplog.text
