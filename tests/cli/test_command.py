"""The installed command itself, as a process of its own: statuses, streams, terminals, pipes."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("flowsieve")
COMMANDS = ("run", "encode", "verify", "explain", "quote")


def start(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture(autouse=True)
def installed() -> None:
    if not COMMAND.exists():
        pytest.skip(f"{COMMAND} is not installed; `make setup` does it")


def test_bad_input_leaves_a_message_and_no_traceback(scene: Any, tmp_path: Path) -> None:
    scene.replace("price < 100", "prise < 100", "requests.csv")
    answer = start("run", scene.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"error: {scene.folder / 'requests.csv'} line 4: ")
    assert "did you mean 'price'?" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "out").exists()


def test_names_that_the_terminal_cannot_show_do_not_stop_a_command(scene: Any) -> None:
    scene.replace("bob =", '"bøb" =')
    for name in ("requests.csv", "events.csv"):
        scene.replace("bob", "bøb", name)
    words = ("--host", "ann", "price=60", "side=buy")
    answer = start("explain", scene.scenario, *words, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "delivered to b\\xf8b" in answer.stdout


def test_whoever_stops_reading_leaves_no_traceback(scene: Any) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        arguments = [str(COMMAND), "verify", str(scene.scenario), "--json"]
        answer = subprocess.run(arguments, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=120)
    assert answer.returncode == 1
    assert answer.stderr == ""


def test_progress_is_shown_on_a_terminal_and_the_report_alone_on_standard_output(
    scene: Any, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    arguments = [str(COMMAND), "run", str(scene.scenario), "--out", str(tmp_path / "out"), "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # how a terminal says that nobody is at its other end any more
            pass
        assert process.stdout is not None
        report = json.loads(process.stdout.read())
    os.close(ours)
    assert process.returncode == 0
    assert report["deliveries"] == 4
    assert b"requests" in seen
    assert b"6/6" in seen


# The rest needs no process of its own.


def test_the_version_is_that_of_the_package(flowsieve: Callable[..., Any]) -> None:
    answer = flowsieve("--version")
    assert (answer.status, answer.out, answer.err) == (0, f"flowsieve {version('flowsieve')}\n", "")


def test_help_names_all_commands_and_fits_80_columns(flowsieve: Callable[..., Any]) -> None:
    answer = flowsieve("--help")
    assert answer.status == 0
    listed = dict(line.split(maxsplit=1) for line in answer.out.partition("Commands:\n")[2].splitlines())
    for name in COMMANDS:
        assert listed[name].endswith(".")
        assert not listed[name].endswith("...")  # it was cut
        text = flowsieve(name, "--help").out
        assert "examples/stock/scenario.toml" in text
        assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Usage"),
        (("rnu",), "rnu"),
        (("run", "scenario.toml"), "--out"),
        (("run", "--out", "x"), "SCENARIO"),
        (("verify", "scenario.toml", "--jason"), "--jason"),
        (("explain", "scenario.toml", "--host", "ann"), "ATTR=VALUE"),
        (("run", "no/such.toml", "--out", "x"), "there is no such file"),
    ],
)
def test_a_wrong_command_line_is_status_2_and_told_on_standard_error(
    flowsieve: Callable[..., Any], arguments: tuple[str, ...], told: str
) -> None:
    answer = flowsieve(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert told in answer.err


def test_the_examples_of_the_help_can_be_run(
    flowsieve: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(Path(__file__).parents[2] / "examples")
    monkeypatch.chdir(tmp_path)
    for name in COMMANDS:
        example = " ".join(flowsieve(name, "--help").out.partition("Example: flowsieve ")[2].split())
        assert flowsieve(*shlex.split(example)).status == 0, example
