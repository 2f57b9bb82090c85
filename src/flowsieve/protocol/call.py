"""What a client asks, over HTTP or in band: a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from flowsieve.content.schema import is_unicode, shown
from flowsieve.errors import BadMessage, nearest
from flowsieve.protocol.filter_page import HeldVersion
from flowsieve.protocol.limits import LONGEST_DEADLINE, LONGEST_FILTER, LONGEST_NAME, MAX_NUMBER, SESSION
from flowsieve.protocol.version import FIRST_VERSION, VERSION, check_version

HELLO, BYE, FILTERS, REPORT = "hello", "bye", "filters", "report"
OPS = (HELLO, "adv", "sub", "unadv", "unsub", "renew", FILTERS, REPORT, BYE)
DEADLINE_SECONDS = 30.0  # for the answer to a call that does not say

CallKey = tuple[bytes, int]  # the session's 16 bytes, and the call's number


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client's session.

    `number` counts the session's calls; `answered` says that the client has the answers to all below. `deadline` is
    how many seconds it waits. `stage` is that of the keys for events that it has (see `event_keys`), None if it needs
    some; `checks` says that it needs those to check events with as well. `held` is what a publisher's host holds of
    others' filters, None if nothing. `index` is the version of the index that it addresses events by (see
    `told_index`), None if it does not say. `report` is what it tells of its events (see `report`).
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
    stats: Mapping[str, Any] | None = None
    stage: int | None = None
    checks: bool | None = None
    held: HeldVersion | None = None
    index: int | None = None
    report: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> Call:
        """Read a message; what is wrong with it is told as BadMessage, OtherVersion if it is not of ours."""
        found = _Fields(message)
        session, op = found.session(), found.need("op")
        if op not in OPS:
            raise BadMessage(
                f"there is no op {shown(op)}{nearest(op, OPS)}; right is one of {', '.join(OPS)}"
            )
        if op == HELLO:
            check_version(client=message.get("version", FIRST_VERSION))
        return cls(
            session,
            found.number(),
            found.need("host"),
            found.maybe("token", least=0) or "",
            op,
            found.maybe("id"),
            found.maybe("filter", longest=LONGEST_FILTER),
            found.whole("answered", default=0),
            found.seconds("deadline"),
            found.table("stats"),
            found.whole("stage") if "stage" in message else None,
            found.truth("checks"),
            HeldVersion.parse(message["held"]) if message.get("held") is not None else None,
            found.whole("index") if "index" in message else None,
            found.table("report"),
        )

    @property
    def key(self) -> CallKey:
        return bytes.fromhex(self.session), self.number

    def to_json(self) -> dict[str, Any]:
        """The message that `parse` reads; what is not given is left out, and hello tells the version."""
        said = {
            field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None
        }
        said["n"] = said.pop("number")
        if self.held is not None:
            said["held"] = self.held.to_json()
        return said | {"version": VERSION} if self.op == HELLO else said


def call_key(message: object) -> CallKey:
    """Which call a message is, whether the rest of it is right or not; BadMessage if it is none."""
    found = _Fields(message)
    return bytes.fromhex(found.session()), found.number()


class _Fields:
    """The fields of a message, checked one by one."""

    def __init__(self, message: object) -> None:
        if not isinstance(message, Mapping):
            raise BadMessage(f"a call is an object with session, n, host, token and op, not {shown(message)}")
        self._message = message

    def session(self) -> str:
        found = self.need("session")
        if not SESSION.fullmatch(found):
            raise BadMessage(f"session = {shown(found)}; it is 32 random digits of 0-9 and a-f")
        return found

    def number(self) -> int:
        return self.whole("n", least=1)

    def need(self, name: str) -> str:
        found = self.maybe(name)
        if found is None:
            raise BadMessage(f"a call has a {name}, which is a text")
        return found

    def maybe(self, name: str, longest: int = LONGEST_NAME, least: int = 1) -> str | None:
        found = self._message.get(name)
        if found is not None and not (isinstance(found, str) and least <= len(found) <= longest):
            raise BadMessage(f"{name} = {shown(found)}; it is a text of {least} to {longest:,} characters")
        if found is not None and not is_unicode(found):
            raise BadMessage(f"{name} = {shown(found)}; it is a text without halves of surrogate pairs")
        return found

    def whole(self, name: str, least: int = 0, default: int | None = None) -> int:
        found = self._message.get(name, default)
        if type(found) is not int or not least <= found <= MAX_NUMBER:
            raise BadMessage(f"{name} = {shown(found)}; it is a whole number from {least}")
        return found

    def seconds(self, name: str) -> float | None:
        found = self._message.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= LONGEST_DEADLINE:
            raise BadMessage(f"{name} = {shown(found)}; it is a number of seconds up to {LONGEST_DEADLINE:g}")
        return float(found)

    def table(self, name: str) -> Mapping[str, Any] | None:
        """What a client counted; numbers that are no counts are no mistake of the call: others may have caused them."""
        found = self._message.get(name)
        if found is not None and not isinstance(found, Mapping):
            raise BadMessage(f"{name} = {shown(found)}; it is an object")
        return found

    def truth(self, name: str) -> bool | None:
        found = self._message.get(name)
        if found is not None and not isinstance(found, bool):
            raise BadMessage(f"{name} = {shown(found)}; it is true or false")
        return found
