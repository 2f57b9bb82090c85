"""A daemon ends, and says why, when work dies that it needs: it does not run on without leases or tables."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_beginning import CONFIG, started

from flowsieve.control.discovery.discoverer import Discoverer
from flowsieve.control.discovery.explorer import Explorer
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.repair.mender import Mender
from flowsieve.control.switches.reconciler import Reconciler
from flowsieve.errors import TaskDied
from flowsieve.serving import daemon
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.leases import Promises
from flowsieve.serving.http.server import HttpServer
from flowsieve.southbound.openflow.channel import Channel

SECONDS = 60.0
WORK = (
    (CallHandler, "run"),
    (Promises, "run"),
    (daemon, "_keep_short"),
    (Explorer, "run"),
    (HttpServer, "_check"),
    (Mender, "run"),
    (Scribe, "run"),
    (Reconciler, "run"),
    (Discoverer, "_tell"),
    (Channel, "keep_dialling"),
)


async def mistaken(*parts: Any) -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("a mistake")


@pytest.mark.parametrize(("place", "name"), WORK, ids=[f"{place.__name__}.{name}" for place, name in WORK])
def test_whatever_work_dies_the_daemon_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: object,
    name: str,
) -> None:
    monkeypatch.setattr(place, name, mistaken)

    async def story() -> None:
        with pytest.raises(TaskDied, match="mistaken has died of ZeroDivisionError: a mistake"):
            async with started(tmp_path, monkeypatch):
                await asyncio.sleep(SECONDS)

    asyncio.run(asyncio.wait_for(story(), SECONDS))
    assert "in mistaken" in caplog.text  # the traceback
    assert not (tmp_path / "http.sock").exists()


RUN = """
import sys
from flowsieve.cli.main import main
from flowsieve.serving import daemon
from flowsieve.serving.calls import handler, leases

def mistaken(self, now):
    raise ZeroDivisionError("a mistake")

daemon.CONNECT_SECONDS = 0.1
leases.Leases.ended = mistaken
sys.argv = ["flowsieve", "controller", sys.argv[1]]
main()
"""


def test_the_process_ends_with_a_word_and_a_status(tmp_path: Path) -> None:
    path = tmp_path / "controller.toml"
    path.write_text(CONFIG.replace("{folder}", str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" in done.stderr and "in mistaken" in done.stderr
    assert "error: CallHandler.run has died of ZeroDivisionError: a mistake" in done.stderr
