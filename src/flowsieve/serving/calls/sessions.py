"""The sessions that a desk knows: whose each is, and what it was answered; no more than there is room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowsieve.errors import BadMessage, Busy, Denied

MOST = 65_536
MOST_OF_A_HOST = 4_096
MOST_UNHEARD = 8_192  # answers of one session that it has not said it heard

Answer = Mapping[str, Any]  # {"ok": …} or {"error": {"kind": …, "text": …}}


@dataclass(slots=True)
class Guest:
    """One session: its host, the answers that it may ask for again, and how many of its calls are under way."""

    host: str
    answers: dict[int, Answer] = field(default_factory=dict)
    over: int = 0  # it has the answers to all calls below this number
    under_way: int = 0

    def hears(self, below: int) -> None:
        """It has the answers to all calls below a number, and makes none of these any more."""
        self.over = max(self.over, below)
        for number in [number for number in self.answers if number < self.over]:
            del self.answers[number]

    def check_new(self, number: int) -> None:
        """Raise where a call that has not come before cannot be taken."""
        if number < self.over:
            raise BadMessage(f"call {number} was answered, and you said so")
        if len(self.answers) >= MOST_UNHEARD:
            raise Busy(f"{len(self.answers)} answers wait for you to say that you heard them: `answered`")


class Guests:
    """Sessions by their names, each of one host."""

    def __init__(self, most: int = MOST, most_of_a_host: int = MOST_OF_A_HOST) -> None:
        self._most, self._most_of_a_host = most, most_of_a_host
        self._guests: dict[str, Guest] = {}
        self._by_host: Counter[str] = Counter()

    def find(self, session: str) -> Guest | None:
        return self._guests.get(session)

    def meet(self, session: str, host: str) -> Guest:
        """The session of this name, a new one if there is none; raises where it is another host's, or one too many."""
        guest = self._guests.get(session)
        if guest is None:
            if len(self._guests) >= self._most or self._by_host[host] >= self._most_of_a_host:
                raise Busy(
                    f"there are {len(self._guests)} sessions, {self._by_host[host]} of host {host!r}; end some"
                )
            return self.restore(session, host)
        if guest.host != host:
            raise Denied(f"this session is not one of host {host!r}; begin another")
        return guest

    def restore(self, session: str, host: str) -> Guest:
        """A session that was there before, which has a place in any case."""
        guest = self._guests[session] = Guest(host)
        self._by_host[host] += 1
        return guest

    def leave(self, session: str) -> None:
        """A session is over."""
        guest = self._guests.pop(session, None)
        if guest is not None:
            self._by_host[guest.host] -= 1
            if not self._by_host[guest.host]:
                del self._by_host[guest.host]

    def __len__(self) -> int:
        return len(self._guests)
