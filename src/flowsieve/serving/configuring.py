"""A configurator as a process: it finds the controller that leads in etcd, decides for it, and looks for the next one.

A controller starts some beside it, and has them end with it; others may run on any machine that reaches etcd and it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flowsieve.control.partitions.configurator import decide_once
from flowsieve.control.partitions.serving_orders import NotTrusted, greet, serve_orders
from flowsieve.errors import BadInput, JournalError
from flowsieve.serving.control_section import ControlSettings
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

CONNECT_SECONDS = 2.0
SILENT_SECONDS = 1.0  # after which it is looked up who leads
PAUSE_SECONDS = 0.1  # before the controller is looked for again
LONG_PAUSE_SECONDS = 1.0  # the same when there was none for long
LONG_SECONDS = 30.0
LEAVING_SECONDS = 3.0
_KEY = b"configurator"


def orders_secret(secret: bytes) -> bytes:
    """What dispatcher and configurators know each other by, from what all controllers of a network share."""
    return hashlib.blake2b(secret, person=_KEY, digest_size=32).digest()


@dataclass(frozen=True, slots=True)
class _Leader:
    """Where the dispatcher is, the number under which it leads, and what it is known by."""

    address: str
    number: int
    secret: bytes


def decide(control: ControlSettings, name: str, with_parent: bool = False) -> None:
    """Be a configurator for whoever leads, for ever; or until standard input ends, for one that a controller starts."""
    if with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    decide_once()  # so that the kernels are there before somebody waits for them
    last = time.monotonic()  # when there was one that led
    while True:
        leader = asyncio.run(_leader(control))
        if leader is not None and _decided_for(leader, control, name):
            last = time.monotonic()
        time.sleep(PAUSE_SECONDS if time.monotonic() - last < LONG_SECONDS else LONG_PAUSE_SECONDS)


def _decided_for(leader: _Leader, control: ControlSettings, name: str) -> bool:
    """Work for one that leads until it does not; whether there was one."""
    host, _, port = leader.address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), CONNECT_SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            greet(connection, orders_secret(leader.secret), name)
            connection.settimeout(SILENT_SECONDS)
            log.info("configurator %s decides for the controller at %s", name, leader.address)
            serve_orders(connection, lambda: asyncio.run(_leader(control)) in (leader, None))
    except (OSError, BadInput, NotTrusted) as error:
        log.info("configurator %s: the controller at %s: %s", name, leader.address, error)
        return False
    log.info("configurator %s: the controller at %s is gone", name, leader.address)
    return True


async def _leader(control: ControlSettings) -> _Leader | None:
    """Who leads, as etcd knows; None if nobody, or etcd does not answer."""
    from flowsieve.control.partitions.ownership import DISPATCHER
    from flowsieve.control.shared.etcd import Etcd
    from flowsieve.serving.memory import SECRET

    etcd = Etcd(control.etcd, control.name)
    try:
        told, secret = await etcd.value(DISPATCHER), await etcd.value(SECRET)
        if told is None or secret is None:
            return None
        found = json.loads(told)
        return _Leader(str(found["address"]), int(found["number"]), secret)
    except (JournalError, ValueError, KeyError, TypeError):
        return None
    finally:
        await etcd.close()


def _end_with_parent() -> None:
    with suppress(OSError):
        while os.read(sys.stdin.fileno(), 1024):
            pass
    os._exit(0)


@asynccontextmanager
async def own_configurators(config: Path, control: ControlSettings) -> AsyncIterator[None]:
    """The configurators that a controller starts beside it; one that ends is started again."""
    if not control.shared_out:
        yield
        return
    async with Tasks() as tasks:
        for number in range(1, control.configurators + 1):
            tasks.start(_kept(config, f"{control.node}-{number}"))
        yield


async def _kept(config: Path, name: str) -> None:
    words = [sys.executable, "-m", "flowsieve.cli", "configurator", str(config), "--name", name]
    while True:
        process = await asyncio.create_subprocess_exec(
            *words, "--with-parent", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        try:
            await process.wait()
            log.warning("configurator %s has ended; it is started again", name)
            await asyncio.sleep(LONG_PAUSE_SECONDS)
        finally:
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), LEAVING_SECONDS)
            if process.returncode is None:
                process.kill()
                await process.wait()
