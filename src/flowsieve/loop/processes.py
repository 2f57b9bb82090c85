"""The processes of a story: commands that are ended with it, and what they say line by line."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flowsieve.errors import FlowsieveError
from flowsieve.lab.machine import environment
from flowsieve.lab.process import die_with_parent

END_SECONDS = 15.0
LOOK_SECONDS = 0.02
HEARD = "heard"  # when a line was, by the machine's clock
LAST_WORDS = 600  # characters of a log, where something died


class StoryBroken(FlowsieveError):
    """Something that the story needs did not come about."""


class Told:
    """A process, and what it says: a JSON object a line on standard output; what goes wrong is in its log."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name, self._process, self._log = name, process, log
        self.lines: list[Mapping[str, Any]] = []
        self._reader = threading.Thread(target=self._read, name=f"what {name} says", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    self.lines.append(found | {HEARD: time.time()})

    def say(self, text: str) -> None:
        """Give it a line on its standard input."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{text}\n")
            self._process.stdin.flush()
        except OSError:
            raise self.gone() from None

    def order(self, orders: Mapping[str, Any]) -> None:
        """Give it an object on its standard input."""
        self.say(json.dumps(orders))

    def last_line(self, key: str) -> Mapping[str, Any] | None:
        """The last line that says something of a key; None if there is none."""
        return next((line for line in reversed(self.lines) if key in line), None)

    def last(self, key: str) -> Any:
        """What it last said of something; None if it never did."""
        line = self.last_line(key)
        return None if line is None else line[key]

    def check(self) -> None:
        """Raise if it has ended, which it should not have."""
        if self._process.poll() is not None:
            raise self.gone()

    def gone(self) -> StoryBroken:
        try:
            words = self._log.read_text(errors="replace")[-LAST_WORDS:].strip()
        except OSError:
            words = ""
        return StoryBroken(f"{self.name} ended before its time: {words or 'it does not say why'}")

    def wait_for(self, key: str, seconds: float) -> Any:
        """Wait until it has said something of a key."""
        wait_until(lambda: self.last(key) is not None, seconds, f"{self.name} to say {key}", self.check)
        return self.last(key)

    def finish(self, seconds: float) -> None:
        """Wait until it has done its work; raise if it did not."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StoryBroken(f"{self.name} is not done after {seconds:.0f} s") from None
        if status:
            raise self.gone()

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(END_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@contextmanager
def started(name: str, words: Sequence[str], log: Path, **more: str) -> Iterator[Told]:
    """A command for the time of a `with` block, in a session of its own: Ctrl-C is for us; we end it.

    `more` is set in its environment.
    """
    with log.open("w") as errors:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment() | more,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    told = Told(name, process, log)
    try:
        yield told
    finally:
        told.end()


def wait_until(
    met: Callable[[], bool], seconds: float, what: str, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Wait for a condition; raises StoryBroken where it is not met in time."""
    end = time.monotonic() + seconds
    while not met():
        meanwhile()
        if time.monotonic() > end:
            raise StoryBroken(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(LOOK_SECONDS)
