"""What a client asks, as it comes over HTTP or in band: a JSON object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.content.schema import shown
from flowsieve.control.request import Op
from flowsieve.errors import BadMessage, nearest

LONGEST_NAME = 200
LONGEST_DEADLINE = 300.0
OPS = ("hello", *(op.value for op in Op), "renew", "bye")
_SESSION = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client's session.

    `number` counts the session's calls; `answered` says that the client has the answers to all below. `deadline` is
    how many seconds it waits.
    """

    session: str
    number: int
    host: str
    token: str
    op: str
    id: str | None = None
    filter: str | None = None
    answered: int = 0
    deadline: float | None = None
    stats: Mapping[str, int] | None = None
    holds: int | None = None

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> Call:
        """Read a message; what is wrong with it is told as BadMessage."""
        text = _Fields(message)
        session = text.need("session")
        if not _SESSION.fullmatch(session):
            raise BadMessage(f"session = {shown(session)}; it is 32 random digits of 0-9 and a-f")
        op = text.need("op")
        if op not in OPS:
            raise BadMessage(
                f"there is no op {shown(op)}{nearest(op, OPS)}; right is one of {', '.join(OPS)}"
            )
        return cls(
            session,
            text.whole("n", least=1),
            text.need("host"),
            text.maybe("token", least=0) or "",
            op,
            text.maybe("id"),
            text.maybe("filter", longest=1 << 20),
            text.whole("answered", default=0),
            text.seconds("deadline"),
            text.counts("stats"),
            text.whole("holds", default=-1) if "holds" in message else None,
        )


class _Fields:
    """The fields of a message, checked one by one."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        if not isinstance(message, Mapping):
            raise BadMessage(f"a call is an object with session, n, host, token and op, not {shown(message)}")
        self._message = message

    def need(self, name: str) -> str:
        found = self.maybe(name)
        if found is None:
            raise BadMessage(f"a call has a {name}, which is a text")
        return found

    def maybe(self, name: str, longest: int = LONGEST_NAME, least: int = 1) -> str | None:
        found = self._message.get(name)
        if found is not None and not (isinstance(found, str) and least <= len(found) <= longest):
            raise BadMessage(f"{name} = {shown(found)}; it is a text of {least} to {longest:,} characters")
        return found

    def whole(self, name: str, least: int = 0, default: int | None = None) -> int:
        found = self._message.get(name, default)
        if type(found) is not int or not least <= found < 1 << 63:
            raise BadMessage(f"{name} = {shown(found)}; it is a whole number from {least}")
        return found

    def seconds(self, name: str) -> float | None:
        found = self._message.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= LONGEST_DEADLINE:
            raise BadMessage(f"{name} = {shown(found)}; it is a number of seconds up to {LONGEST_DEADLINE:g}")
        return float(found)

    def counts(self, name: str) -> Mapping[str, int] | None:
        found = self._message.get(name)
        if found is None:
            return None
        if not isinstance(found, Mapping) or not all(
            isinstance(key, str) and type(value) is int and 0 <= value < 1 << 63
            for key, value in found.items()
        ):
            raise BadMessage(f"{name} = {shown(found)}; it is an object of names and whole numbers")
        return found
