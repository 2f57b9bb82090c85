"""One call until it is answered: what to send, and when, over a network that loses, doubles and reorders.

No clock and no socket: the time is an argument, and what is to be sent comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowsieve.errors import BadMessage
from flowsieve.protocol.answer import BUSY, Answer, kind_in
from flowsieve.protocol.call import DEADLINE_SECONDS, Call
from flowsieve.protocol.call_datagram import CallDatagram, Gone, More, Part, digest_of, encode, unpack_answer
from flowsieve.protocol.limits import MOST_ASKED

FIRST_RETRY = 0.2  # seconds; longer from one to the next
LAST_RETRY = 1.0
GROWTH = 1.5
JITTER = 0.25  # of a retry's time, more or less, so that those who lost together do not come together again


class PendingCall:
    """A call under way. `draw` gives random numbers from 0 to 1.

    A busy controller has done nothing, so it is asked again for as long as there is time; `answer` then says that
    it was busy, should that be its last word.
    """

    def __init__(self, message: Mapping[str, Any], now: float, draw: Callable[[], float]) -> None:
        call = Call.parse(message)
        self.key = call.key
        self.deadline = now + (call.deadline or DEADLINE_SECONDS)
        self.next_at = now  # when something is to be sent again
        self.done = False
        self.answer: Answer | None = None
        self._call = encode(CallDatagram(self.key, message))
        self._draw = draw
        self._retry = FIRST_RETRY
        self._digest: bytes | None = None  # of the answer that is coming in
        self._count = 0
        self._parts: dict[int, bytes] = {}
        self._asked: set[int] = set()

    def due(self, now: float) -> list[bytes]:
        """What is to be sent by now."""
        if self.done or now < self.next_at:
            return []
        self._wait(now)
        self._retry = min(GROWTH * self._retry, LAST_RETRY)
        return [self._ask()]

    def hear(self, heard: Part | Gone, now: float) -> list[bytes]:
        """Take what has come for this call; what is to be sent at once."""
        if self.done or (self._digest is not None and heard.digest != self._digest):
            return []
        if isinstance(heard, Gone):
            if self._digest is None:
                return []
            self._forget()
            self._wait(now)
            return [self._ask()]
        if self._digest is None:
            self._digest, self._count = heard.digest, heard.count
        if heard.count != self._count or heard.index in self._parts:
            return []
        self._parts[heard.index] = heard.chunk
        self._asked.discard(heard.index)
        if len(self._parts) == self._count:
            self._finish(now)
            return []
        self._retry = FIRST_RETRY
        self._wait(now)
        return [] if self._asked else [self._ask()]

    def _ask(self) -> bytes:
        """The call, or what is missing of its answer."""
        if self._digest is None:
            return self._call
        missing = (index for index in range(self._count) if index not in self._parts)
        self._asked = {index for index, _ in zip(missing, range(MOST_ASKED), strict=False)}
        return encode(More(self.key, self._digest, tuple(sorted(self._asked))))

    def _finish(self, now: float) -> None:
        packed = b"".join(self._parts[index] for index in range(self._count))
        digest = self._digest
        self._forget()
        try:
            answer = unpack_answer(packed) if digest_of(packed) == digest else None
        except BadMessage:
            answer = None
        if answer is None:
            self._wait(now)  # some of it was somebody else's
            return
        self.answer = answer
        self.done = kind_in(answer) != BUSY
        if not self.done:
            self._wait(now)

    def _forget(self) -> None:
        self._digest, self._count = None, 0
        self._parts, self._asked = {}, set()

    def _wait(self, now: float) -> None:
        self.next_at = now + self._retry * (1 - JITTER + 2 * JITTER * self._draw())
