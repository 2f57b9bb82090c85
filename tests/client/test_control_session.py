"""A client's session that cannot be kept: the application hears of it, whatever the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from flowsieve.client import control_session
from flowsieve.client.control_session import ControlConnection
from flowsieve.errors import ControlLost


class Strange:
    """A way to a controller whose answers are not what they should be."""

    async def call(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ok": {"holds": 0, "lease": "until Monday"}}

    async def close(self) -> None:
        pass


def test_a_session_that_is_renewed_no_more_is_lost_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_session, "RENEWALS", 3000)

    async def story() -> None:
        connection = ControlConnection(Strange(), "ann")
        connection.keep(30)
        async with asyncio.timeout(20):
            lost = await connection.lost
        assert isinstance(lost, ControlLost) and "until Monday" in str(lost)
        await connection.close()

    asyncio.run(story())
