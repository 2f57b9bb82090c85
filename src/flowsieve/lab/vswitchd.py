"""Questions to the daemon in which a lab's switches live, as `ovs-appctl` asks them."""

from __future__ import annotations

import json
import socket
import time

from flowsieve.errors import LabError
from flowsieve.lab.lab import Lab

ANSWER_SECONDS = 5.0
FULL_SECONDS = 0.002  # before it is dialled again where too many callers wait


def packets_taken(lab: Lab) -> int:
    """How many packets the switches took from their interfaces, and were done with.

    The thread that forwards also answers, between packets.
    """
    return _counted(lab, "packets received")


def undecided(lab: Lab) -> int:
    """How many packets the switches dropped because none of their threads could say what becomes of them."""
    return _counted(lab, "miss with failed upcall")


def _counted(lab: Lab, what: str) -> int:
    lines = ask(lab, "dpif-netdev/pmd-stats-show").splitlines()
    found = [int(line.split(":")[1]) for line in lines if line.strip().startswith(f"{what}:")]
    if not found:
        raise LabError(f"the switches of lab {lab.name} do not say how many packets they had: {what}")
    return sum(found)


def ask(lab: Lab, method: str) -> str:
    """The answer of Open vSwitch's daemon, as text."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            _dial(connection, str(lab.control))
            connection.sendall(json.dumps({"id": 0, "method": method, "params": []}).encode())
            text = b""
            while not text.endswith(b"}"):
                part = connection.recv(0xFFFF)
                if not part:
                    raise LabError(f"the switches of lab {lab.name} hung up")
                text += part
        answer = json.loads(text)
    except (OSError, ValueError) as error:
        raise LabError(f"the switches of lab {lab.name} do not answer: {error}") from None
    if answer["error"] is not None:
        raise LabError(f"the switches of lab {lab.name} do not know {method}: {answer['error']}")
    return str(answer["result"])


def _dial(connection: socket.socket, path: str) -> None:
    """Connect, as soon as there is room among those who wait to be let in."""
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return connection.connect(path)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(FULL_SECONDS)
