"""An application's connection to the matcher of its host, which is started if there is none."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from flowsieve.client.matcher_socket import LARGEST, LabelAnswer, found, pack_question, read_answer
from flowsieve.client.wire import Inside
from flowsieve.errors import HostError

START_SECONDS = 120.0  # for a matcher to begin: its first start on a machine may have to compile
LOOK_SECONDS = 0.1
TRIES = 5


class MatcherLink:
    """`ask` for whom events are. Where the matcher dies, a new one is found or started with the next question.

    All applications of a host in a `network` share one, whatever each calls the controller.
    """

    def __init__(self, control: str, host: str, token: str, inside: Inside, network: str = "") -> None:
        self._control, self._host, self._token, self._inside = control, host, token, inside
        self._network = network or control
        self._peer: socket.socket | None = None

    async def open(self) -> None:
        """Be connected; raises HostError where no matcher comes up."""
        why = ""
        for _ in range(TRIES):
            if self._find():
                return
            why = await asyncio.to_thread(self._started)
            if not self._find():
                await asyncio.sleep(LOOK_SECONDS)  # another application may just be starting one
        if not self._find():
            raise HostError(f"no matcher comes up on host {self._host}: {why}")

    def _find(self) -> bool:
        if self._peer is None:
            with self._inside():
                self._peer = found(self._network, self._host)
        return self._peer is not None

    async def ask(self, events: Sequence[Mapping[str, object]]) -> LabelAnswer:
        """For whom the first of some events are; another matcher is asked again if the one that there was dies."""
        loop, question = asyncio.get_running_loop(), pack_question(events)
        for _ in range(TRIES):
            await self.open()
            assert self._peer is not None
            try:
                await loop.sock_sendall(self._peer, question)
                packet = await loop.sock_recv(self._peer, LARGEST)
            except OSError:
                packet = b""
            if packet:
                matched = read_answer(packet)
                if not 0 < len(matched.matched) <= len(events):
                    raise HostError("the host's matcher answers another question")
                return matched
            self.close()
        raise HostError(f"the matcher of host {self._host} ends with each question")

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _started(self) -> str:
        """Start a matcher that is nobody's child, since it outlives us where others need it; why it did not begin."""
        told = {
            "FLOWSIEVE_CONTROL": self._control,
            "FLOWSIEVE_HOST": self._host,
            "FLOWSIEVE_TOKEN": self._token,
        }
        command = [sys.executable, "-m", "flowsieve.cli", "matcher", "--background"]
        try:
            with self._inside():
                done = subprocess.run(
                    command,
                    env={**os.environ, **told},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=START_SECONDS,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return done.stderr.decode(errors="replace").strip()
