"""The sessions of clients: whose each is, and what it was answered; no more than there is room for."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field

from flowsieve.errors import BadMessage, Busy, Denied
from flowsieve.protocol.answer import Answer

log = logging.getLogger(__name__)

MOST = 65_536
MOST_OF_A_HOST = 4_096
MOST_UNHEARD = 8_192  # answers of one session that it has not said it heard


@dataclass(slots=True)
class ClientSession:
    """One session: its host, the answers that it may ask for again, and how many of its calls are under way.

    `stage` is that of the keys for events that it has, as far as it has said.
    """

    host: str
    answers: dict[int, Answer] = field(default_factory=dict)
    over: int = 0  # it has the answers to all calls below this number
    under_way: int = 0
    left: bool = False  # it said goodbye
    stage: int | None = None

    def hears(self, below: int) -> None:
        """It has the answers to all calls below a number, and will not repeat any of these."""
        self.over = max(self.over, below)
        for number in [number for number in self.answers if number < self.over]:
            del self.answers[number]

    def check_new(self, number: int) -> None:
        """Raise where a call that has not come before cannot be taken."""
        if number < self.over:
            raise BadMessage(f"call {number} was answered, and you said so")
        if len(self.answers) >= MOST_UNHEARD:
            raise Busy(f"{len(self.answers)} answers wait for you to say that you heard them: `answered`")


class ClientSessions:
    """Sessions by their names, each of one host."""

    def __init__(self, most: int = MOST, most_of_a_host: int = MOST_OF_A_HOST) -> None:
        self._most, self._most_of_a_host = most, most_of_a_host
        self._sessions: dict[str, ClientSession] = {}
        self._by_host: Counter[str] = Counter()

    def find(self, session: str) -> ClientSession | None:
        return self._sessions.get(session)

    def meet(self, session: str, host: str) -> ClientSession:
        """The session of this name, a new one if there is none; raises where it is another host's, or one too many."""
        known = self._sessions.get(session)
        if known is None:
            if len(self._sessions) >= self._most or self._by_host[host] >= self._most_of_a_host:
                raise Busy(
                    f"there are {len(self._sessions)} sessions, {self._by_host[host]} of host {host!r}; end some"
                )
            log.info("host %s: session %s begins", host, session_text(session))
            return self.restore(session, host)
        if known.host != host:
            raise Denied(f"this session is not one of host {host!r}; begin another")
        return known

    def restore(self, session: str, host: str) -> ClientSession:
        """A session that was there before the controller restarted: it is never one too many."""
        known = self._sessions[session] = ClientSession(host)
        self._by_host[host] += 1
        return known

    def behind(self, stage: int) -> bool:
        """Whether one of them that is still there has not said that it has the keys of a stage."""
        return any(each.stage != stage for each in self._sessions.values() if not each.left)

    def leave(self, session: str) -> None:
        """A session is over."""
        known = self._sessions.pop(session, None)
        if known is not None:
            self._by_host[known.host] -= 1
            if not self._by_host[known.host]:
                del self._by_host[known.host]

    def __len__(self) -> int:
        return len(self._sessions)


def session_text(session: str) -> str:
    """A session as the log has it: enough of it to find it by."""
    return session[:8]
