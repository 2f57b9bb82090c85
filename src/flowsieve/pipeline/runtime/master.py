"""Where Spark runs: what can be said there, and whether anybody answers."""

from __future__ import annotations

import re
import socket

from flowsieve.content.schema import shown
from flowsieve.errors import BadInput, PipelineError

RIGHT = "right is local[*], local[4], spark://HOST:PORT, or sc://HOST:PORT for a Connect server"
PLACE = r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}"
LOCAL = re.compile(r"local(\[(\*|[1-9]\d{0,5})(,\s*[1-9]\d*)?\])?")
STANDALONE = re.compile(rf"spark://((?:{PLACE})(?:,(?:{PLACE}))*)")
CONNECT = re.compile(rf"sc://({PLACE}|[\w.\-]+)(?:/.*)?")
KUBERNETES = re.compile(rf"k8s://(?:https?://)?(?:{PLACE})(?:/.*)?")
CONNECT_PORT = 15002
ANSWER_SECONDS = 5.0


def check_master(text: str) -> None:
    """Raise where a master's name is none, or where nobody answers at the address that it gives."""
    if match := STANDALONE.fullmatch(text):
        _check_answers(text, match.group(1).split(","))
    elif match := CONNECT.fullmatch(text):
        place = match.group(1)
        _check_answers(text, [place if re.fullmatch(PLACE, place) else f"{place}:{CONNECT_PORT}"])
    elif not (text == "yarn" or LOCAL.fullmatch(text) or KUBERNETES.fullmatch(text)):
        raise BadInput(f"there is no master {shown(text)}; {RIGHT}")


def _check_answers(text: str, places: list[str]) -> None:
    """One of several masters is enough. Spark itself would try for minutes."""
    for place in places:
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS):
                return
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error) or "no answer"
    raise PipelineError(f"nobody answers at {text}: {why}; start Spark there, or leave out --master")
