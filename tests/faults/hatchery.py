"""Commands that start at once: a process that has imported everything, and forks for each of them.

`flowsieve controller` takes seconds to be imported, and a campaign that kills it a hundred times has none to lose. A
line on standard input is {"words": […], "out": FILE, "err": FILE, "status": FILE}; the line that comes back is the
process id. The exit status of the command is written where it says so.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

START_SECONDS = 120.0


class Hatchery:
    """Starts `flowsieve` commands for the time of a `with` block; those that still run then are killed."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._started: list[Hatched] = []
        assert self._answer() == "ready"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for each in self._started:
            each.close()
        with self._process:
            self._process.kill()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself, and what came of it."""
        with TemporaryDirectory(prefix="fs-") as folder:
            out, err, status = (Path(folder) / name for name in ("out", "err", "status"))
            hatched = self.start([*words], out, err, status)
            assert hatched.ended(START_SECONDS), f"flowsieve {' '.join(words)} does not end"
            hatched.close()
            assert status.exists(), err.read_text()[-2000:]
            return subprocess.CompletedProcess(
                words, int(status.read_text()), out.read_text(), err.read_text()
            )

    def start(self, words: list[str], out: Path, err: Path, status: Path | None = None) -> Hatched:
        """A command; what it prints goes to files."""
        assert self._process.stdin is not None
        told = {"words": words, "out": str(out), "err": str(err), "status": status and str(status)}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        hatched = Hatched(int(self._answer()))
        self._started.append(hatched)
        return hatched

    def _answer(self) -> str:
        assert self._process.stdout is not None
        there, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        assert there, "the hatchery does not answer"
        return self._process.stdout.readline().strip()


class Hatched:
    """A process that is not our child, and whose number is therefore held on to."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._handle = os.pidfd_open(number)
        self._open = True

    def signal(self, what: signal.Signals) -> None:
        signal.pidfd_send_signal(self._handle, what)

    def ended(self, seconds: float) -> bool:
        """Whether it ends in time."""
        return bool(select.select([self._handle], [], [], seconds)[0])

    def close(self) -> None:
        if self._open:
            self._open = False
            if not self.ended(0):
                self.signal(signal.SIGKILL)
            os.close(self._handle)


def main() -> None:
    from flowsieve.cli.main import main as cli
    from flowsieve.content.filter import Filter
    from flowsieve.content.schema import Schema
    from flowsieve.control.request import Op, Request
    from flowsieve.control.state import ControlState
    from flowsieve.index.plans.regular import RegularPlan
    from flowsieve.lab import lab_site  # noqa: F401
    from flowsieve.network.generators import ring
    from flowsieve.serving import daemon, preview  # noqa: F401

    schema = Schema.parse({name: {"type": "int", "min": 0, "max": 255} for name in ("a", "b")})
    state = ControlState(ring(4), RegularPlan.make(schema))
    everything = Filter.parse("3 < a < 9", schema)
    state.step([Request(op, "x", "h1", everything) for op in (Op.ADVERTISE, Op.SUBSCRIBE)])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if child := os.fork():
            print(child, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for stream, name in ((1, told["out"]), (2, told["err"])):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, stream)
        os.close(0)
        sys.argv = ["flowsieve", *told["words"]]
        try:
            cli()
        except SystemExit as leaving:
            if told["status"] is not None:
                Path(told["status"]).write_text(str(leaving.code))
            raise


if __name__ == "__main__":
    main()
