"""The tutorial does what it says: its commands are run, terminal by terminal, and give the output that it shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"<!-- terminal (\d+) -->\n```console\n(.*?)```", re.DOTALL)
INTERRUPT = "^C"
PATIENCE = 90.0  # seconds for a command

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Step:
    """A command in a terminal, or None for more output of the one before, and the output that is shown."""

    terminal: int
    command: str | None
    output: tuple[str, ...]


def steps(text: str) -> Iterator[Step]:
    for block in BLOCK.finditer(text):
        terminal, command, output = int(block[1]), None, []
        for line in block[2].splitlines():
            if line == INTERRUPT:
                yield Step(terminal, line, ())
            elif line.startswith("$ "):
                if command is not None or output:
                    yield Step(terminal, command, tuple(output))
                command, output = line[2:], []
            elif line.startswith(">") and command is not None:
                command += "\n" + line[2:]
            else:
                output.append(line)
        yield Step(terminal, command, tuple(output))


class Terminal:
    """A shell, and all that it has shown."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.shown: list[str] = []
        self._seen = 0
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, text: str) -> None:
        assert self._shell.stdin is not None
        if text == INTERRUPT:
            for child in Path(f"/proc/{self._shell.pid}/task/{self._shell.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGINT)
            return
        self._shell.stdin.write(text + "\n")
        self._shell.stdin.flush()

    def expect(self, lines: tuple[str, ...]) -> None:
        """Wait until all that is shown since the last time fits the lines, each; … stands for anything."""
        pattern = re.compile("".join(line_pattern(line) for line in lines))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = pattern.match("".join(self.shown)[self._seen :])
            if found:
                self._seen += found.end()
                return
            time.sleep(0.02)
        raise AssertionError(f"wanted {lines}, and was shown {''.join(self.shown)[self._seen :]!r}")

    def close(self) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)
        with self._shell:
            self._reader.join(PATIENCE)

    def _read(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            self.shown.append(line)


def line_pattern(line: str) -> str:
    if line == "…":
        return r"(?:.*\n)*?"
    return r".*?".join(re.escape(part.strip()) for part in line.split("…")) + r".*\n"


def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    lab = f"tutorial{os.getpid()}"
    text = (ROOT / "docs" / "tutorial.md").read_text().replace("market taken", f"{lab} taken")
    text = re.sub(r"lab market|market:", lambda found: found[0].replace("market", lab), text)
    text = text.replace("$ export FLOWSIEVE_LAB=market", f"$ export FLOWSIEVE_LAB={lab}")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"FLOWSIEVE_LAB": lab, "COLUMNS": "200"}
    terminals: dict[int, Terminal] = {}
    try:
        for number, step in enumerate(steps(text)):
            if step.terminal not in terminals:
                terminals[step.terminal] = Terminal(tmp_path, environment)
            terminal, end = terminals[step.terminal], f"step {number} done"
            expected = step.output
            if step.command is not None:
                terminal.type(step.command)
                if step.terminal == 1:  # where each command ends before the next
                    terminal.type(f"echo {end}")
                    expected = (*expected, end)
            terminal.expect(expected)
    finally:
        for terminal in terminals.values():
            terminal.close()
        subprocess.run(["flowsieve", "lab", "down", lab], env=environment, capture_output=True, check=False)
