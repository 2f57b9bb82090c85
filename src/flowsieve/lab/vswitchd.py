"""Questions to the daemon in which a lab's switches live, as `ovs-appctl` asks them."""

from __future__ import annotations

import json
import socket

from flowsieve.errors import LabError
from flowsieve.lab.lab import Lab

ANSWER_SECONDS = 5.0


def packets_taken(lab: Lab) -> int:
    """How many packets the switches took from their interfaces, and were done with.

    The thread that forwards also answers, between packets.
    """
    lines = ask(lab, "dpif-netdev/pmd-stats-show").splitlines()
    taken = [int(line.split(":")[1]) for line in lines if line.strip().startswith("packets received:")]
    if not taken:
        raise LabError(f"the switches of lab {lab.name} do not say how many packets they took")
    return sum(taken)


def ask(lab: Lab, method: str) -> str:
    """The answer of Open vSwitch's daemon, as text."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(lab.control))
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
