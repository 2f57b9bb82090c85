"""How a controller begins to which no switch connects."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from flowsieve.serving import daemon
from flowsieve.serving.config import read_config
from flowsieve.serving.event_router import EventRouter
from flowsieve.serving.site.site import OwnSite

CONFIG = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
[controller]
http = ["unix:{folder}/http.sock"]
listen = "unix:{folder}/switches.sock"
[switches.s1]
datapath_id = 1
[switches.s2]
datapath_id = 2
address = "unix:{folder}/nobody"
"""


def started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AbstractAsyncContextManager[daemon.Daemon]:
    monkeypatch.setattr(daemon, "CONNECT_SECONDS", 0.05)
    path = folder / "controller.toml"
    path.write_text(CONFIG.replace("{folder}", str(folder)))
    config = read_config(path)
    return daemon.serving(config, OwnSite(config))


def test_calls_in_band_are_taken_once_the_network_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    router, exploring, listening = EventRouter(), daemon._exploring, []

    async def looking(*parts: Any) -> Any:
        listening.append(len(router._listeners))
        return await exploring(*parts)

    monkeypatch.setattr(daemon, "EventRouter", lambda: router)
    monkeypatch.setattr(daemon, "_exploring", looking)

    async def story() -> None:
        async with asyncio.timeout(20), started(tmp_path, monkeypatch):
            assert listening == [3]  # the log, the dispatcher and the discoverer, and not yet calls in band
            assert len(router._listeners) == 4

    asyncio.run(story())


def test_why_a_switch_cannot_be_reached_is_among_the_troubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with asyncio.timeout(20), started(tmp_path, monkeypatch) as controller:
            troubles = controller.dispatcher.troubles
            assert f"unix:{tmp_path}/nobody: " in troubles["s2"]
            assert "not connected yet" in troubles["s1"]

    asyncio.run(story())
