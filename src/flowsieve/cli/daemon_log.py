"""The log of a controller, on standard error: lines for people or for machines, and never a flood of them.

Whoever logs says each thing as it happens, with what it is about (a switch, a link, a host) as the first argument. Of
lines that are alike the first few are written; of those that follow within a minute only the last, with their number.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass

from flowsieve.errors import BadInput

FORMATS = ("text", "json")
SECONDS = 60.0
LOOK_SECONDS = 1.0
MOST_OF_ONE = 6  # lines about one thing in a minute
MOST_OF_A_KIND = 60  # lines about many things

Kind = tuple[str, ...]  # who says it, how it is worded, and perhaps what it is about


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, where it comes from, what it says."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        told = {
            "time": at,
            "level": record.levelname.lower(),
            "from": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


@dataclass(slots=True)
class _Window:
    """Since when lines are counted, how many were written, how many were not, and the last of these."""

    since: float
    written: int = 0
    hidden: int = 0
    last: logging.LogRecord | None = None


class FewOfEach(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes few lines of each kind in a minute, and at its end the last of the others, with how many there were."""

    def __init__(self, seconds: float = SECONDS) -> None:
        super().__init__()
        self._seconds = seconds
        self._windows: dict[Kind, _Window] = {}
        self._timer: threading.Timer | None = None
        self._looked = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or keep it until the minute is over; with the handler's lock held."""
        if not 0 <= record.created - self._looked < LOOK_SECONDS:
            self._look(record.created)
        kind = record.name, str(record.msg)
        of_kind = self._windows.setdefault(kind, _Window(record.created))
        if of_kind.written >= MOST_OF_A_KIND:
            self._hide(of_kind, record)
            return
        about = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        of_one = self._windows.setdefault((*kind, about), _Window(record.created))
        if of_one.written >= MOST_OF_ONE:
            self._hide(of_one, record)
            return
        of_kind.written += 1
        of_one.written += 1
        super().emit(record)

    def close(self) -> None:
        """Write what was kept."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
            self._write(list(self._windows.values()))
            self._windows.clear()
        finally:
            self.release()
        super().close()

    def _hide(self, window: _Window, record: logging.LogRecord) -> None:
        window.hidden += 1
        window.last = record
        if self._timer is None:
            self._wait()

    def _wait(self) -> None:
        """Look again when a minute is over: no other line may come."""
        self._timer = threading.Timer(self._seconds, self._rouse)
        self._timer.daemon = True
        self._timer.start()

    def _rouse(self) -> None:
        self.acquire()
        try:
            self._timer = None
            self._look(time.time())
            for window in self._windows.values():
                if window.last is not None:
                    self._wait()
                    return
        finally:
            self.release()

    def _look(self, now: float) -> None:
        """Close the windows whose time is up; one that had more than it could write goes on with nothing to write."""
        self._looked = now
        over = {kind: each for kind, each in self._windows.items() if now - each.since >= self._seconds}
        self._write(list(over.values()))
        for kind, window in over.items():
            if window.hidden:
                window.since, window.hidden, window.last = now, 0, None
            else:
                del self._windows[kind]

    def _write(self, windows: list[_Window]) -> None:
        """Write the last lines that were kept, in the order in which they came."""
        kept = [(each.last, each.hidden) for each in windows if each.last is not None]
        for record, hidden in sorted(kept, key=lambda pair: pair[0].created):
            if hidden > 1:
                record.msg = f"{record.getMessage()} (the last of {hidden:,} such lines)"
                record.args = ()
            super().emit(record)


def log_to_standard_error(verbose: bool, how: str) -> None:
    """Log from now on what an operator would ask about, or all that there is to say."""
    if how not in FORMATS:
        raise BadInput(f"there is no log format {how!r}; right is {' or '.join(FORMATS)}")
    handler = FewOfEach()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if how == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if verbose:
        logging.getLogger("flowsieve").setLevel(logging.DEBUG)
    for other in ("httpx", "httpcore"):  # they tell of every connection
        logging.getLogger(other).setLevel(logging.WARNING)
