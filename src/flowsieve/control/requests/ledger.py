"""The outcome of each request of a session, for a client that asks again, and which session holds which interest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import Origin
from flowsieve.control.request import Op, Request
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.flow.tables.compiler import Side

Key = tuple[Side, str]  # of an interest
FIRST_STAGE = 2  # of the keys for events


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request, and what its client was told if it was not served."""

    request: Request
    kind: str | None = None
    why: str = ""


@dataclass(slots=True)
class SessionRecord:
    """One client: its requests by their numbers, and the interests that it holds."""

    records: dict[int, RequestRecord] = field(default_factory=dict)
    holds: dict[Key, Request] = field(default_factory=dict)
    answered: int = 0  # the client has heard of all requests below this number


class Ledger:
    """Fed with what happens, in the order in which it happens."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionRecord] = {}
        self._owners: dict[Key, tuple[str, int]] = {}  # a session, and the number of the request in it
        self.promised = 0.0  # seconds that some client may count on being remembered for, though it is silent
        self.key_stage, self.keyed_at = FIRST_STAGE, 0.0  # of the keys for events, and since what time of day
        self.policy = EVERYBODY  # which hosts publishers may have been told to address
        self.homes: dict[
            str, tuple[str, int]
        ] = {}  # the ports to which the tokens of hosts that moved are bound

    def asked(self, request: Request, origin: Origin | None) -> None:
        """A request was taken."""
        key = (request.op.side, request.id)
        if request.op.adding:
            if origin is not None:
                self._owners[key] = origin.session, origin.number
                self._session(origin.session).holds[key] = request
        else:
            self._let_go(key)
        if origin is not None:
            self._session(origin.session).records[origin.number] = RequestRecord(request)

    def undone(self, request: Request, origin: Origin | None, kind: str, why: str) -> None:
        """A request was refused, or taken back."""
        if self.brought(request, origin):
            self._let_go((request.op.side, request.id))
        if origin is not None:
            self._session(origin.session).records[origin.number] = RequestRecord(request, kind, why)

    def brought(self, request: Request, origin: Origin | None) -> bool:
        """Whether the interest of this id, if there is one, is this very request's; another may have its id by now."""
        owner = self._owners.get((request.op.side, request.id))
        return request.op.adding and owner == (origin and (origin.session, origin.number))

    def answered(self, session: str, below: int) -> None:
        """A client has heard of all its requests below a number, and asks them no more."""
        known = self._sessions.get(session)
        if known is not None and below > known.answered:
            known.answered = below
            for number in [number for number in known.records if number < below]:
                del known.records[number]

    def promise(self, seconds: float) -> None:
        """No client counts on being remembered for longer than so many seconds of silence."""
        self.promised = seconds

    def keyed(self, stage: int, at: float) -> None:
        """The keys for events are those of a stage, since a time of day."""
        self.key_stage, self.keyed_at = stage, at

    def allow(self, policy: SendPolicy) -> None:
        """Publishers address nobody but those that a policy lets them, as far as they were told of others."""
        self.policy = policy

    def homed(self, host: str, place: tuple[str, int]) -> None:
        """A host is about to move; its token is that of the first place where it was."""
        self.homes.setdefault(host, place)

    def record(self, session: str, number: int) -> RequestRecord | None:
        """What is known of a request."""
        known = self._sessions.get(session)
        return known.records.get(number) if known is not None else None

    def heard(self, session: str) -> int:
        """The number below which a client has said that it heard the answers to all its requests."""
        known = self._sessions.get(session)
        return known.answered if known is not None else 0

    def holds(self, session: str) -> list[Request]:
        """The requests behind the interests of a session."""
        known = self._sessions.get(session)
        return list(known.holds.values()) if known is not None else []

    def holder(self, side: Side, id: str) -> str | None:
        """The session that an interest belongs to."""
        owner = self._owners.get((side, id))
        return owner[0] if owner is not None else None

    def host(self, session: str) -> str | None:
        """The host that a session is of, as its requests say."""
        known = self._sessions.get(session, SessionRecord())
        asked = [*known.holds.values(), *(record.request for record in known.records.values())]
        return asked[0].endpoint if asked else None

    @property
    def sessions(self) -> Iterator[str]:
        return iter(tuple(self._sessions))

    def forget(self, session: str) -> None:
        """A session is over, and holds nothing any more."""
        known = self._sessions.get(session)
        if known is not None and not known.holds:
            del self._sessions[session]

    def _session(self, name: str) -> SessionRecord:
        return self._sessions.setdefault(name, SessionRecord())

    def _let_go(self, key: Key) -> None:
        owner = self._owners.pop(key, None)
        if owner is not None:
            self._sessions[owner[0]].holds.pop(key, None)

    # Snapshots.

    def to_json(self) -> dict[str, Any]:
        """Interests by their ids and who asked for them; of all requests what a client may still ask for."""
        return {
            name: {
                "answered": each.answered,
                "holds": [[side.name, id, self._owners[side, id][1]] for side, id in each.holds],
                "records": [
                    [n, r.request.op.value, r.request.id, r.request.endpoint, r.request.told, r.kind, r.why]
                    for n, r in each.records.items()
                ],
            }
            for name, each in self._sessions.items()
        }

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], interests: Mapping[Key, Request], read: Callable[[str], Filter]
    ) -> Ledger:
        """What `to_json` wrote down, given the requests behind all interests in force and how filters are read."""
        made = cls()
        for name, each in data.items():
            session = made._sessions[name] = SessionRecord(answered=each["answered"])
            for side, id, number in each["holds"]:
                key = (Side[side], id)
                session.holds[key] = interests[key]
                made._owners[key] = name, number
            for number, op, id, endpoint, told, kind, why in each["records"]:
                session.records[number] = RequestRecord(
                    Request.read(Op(op), id, endpoint, told, read), kind, why
                )
        return made
