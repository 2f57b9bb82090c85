"""The wheel in an empty environment: the command and the library work without the repository and without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE = 1200.0  # seconds for any step, on a busy machine
FILES = {"py.typed", "demo/page.css", "demo/page.js", "pipeline/runtime/quiet.properties"}
UNREACHABLE = ("Could not find a version", "Connection", "No matching distribution", "timed out")

SCENARIO = """
[schema]
price = { type = "int", min = 0, max = 1023 }
side = { type = "enum", values = ["buy", "sell"] }
[network]
links = [["s1", "s2"]]
[network.hosts]
h1 = "s1"
h2 = "s2"
[[step]]
requests = "requests.csv"
[[step]]
events = "events.csv"
"""
REQUESTS = "op,id,host,filter\nadv,a,h1,True\nsub,b,h2,price < 100\n"
EVENTS = "id,host,price,side\n1,h1,60,buy\n2,h1,600,sell\n"

pytestmark = pytest.mark.slow


def ran(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command in a folder outside the repository, in an environment that knows nothing of it."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    environment["NUMBA_OPT"] = "1"  # what is compiled here is used once
    return subprocess.run(
        [*map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = ran(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("flowsieve-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel and what it asks for, as pinned."""
    home = tmp_path_factory.mktemp("empty")
    done = ran(home, sys.executable, "-m", "venv", "venv")
    assert done.returncode == 0, done.stderr
    programs = home / "venv" / "bin"
    options = ("-q", "--disable-pip-version-check", "--no-compile", "-c", ROOT / "requirements.txt")
    done = ran(home, programs / "pip", "install", *options, wheel)
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip(f"packages cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return programs


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    for name, text in (("s.toml", SCENARIO), ("requests.csv", REQUESTS), ("events.csv", EVENTS)):
        (tmp_path / name).write_text(text)
    return tmp_path / "s.toml"


def as_json(folder: Path, words: Sequence[str | Path]) -> dict[str, object]:
    done = ran(folder, *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_wheel_holds_what_is_no_python(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        assert {f"flowsieve/{name}" for name in FILES} <= set(archive.namelist())


def test_a_scenario_is_played_and_proved_and_spark_is_not_there(installed: Path, scenario: Path) -> None:
    command, folder = installed / "flowsieve", scenario.parent
    report = as_json(folder, [command, "run", scenario, "--out", folder / "out", "--json"])
    assert (report["deliveries"], report["wanted"], report["false_negatives"]) == (1, 1, 0)
    assert as_json(folder, [command, "verify", scenario, "--json"])["holds"] is True

    where = "import flowsieve, importlib.util as u; print(flowsieve.__file__, u.find_spec('pyspark'), flowsieve.PubSub)"
    told = ran(folder, installed / "python", "-c", where).stdout
    assert told.startswith(str(installed.parent))
    assert " None " in told

    asked = (
        "--schema",
        scenario,
        "--events",
        "events.csv",
        "--subscriptions",
        "requests.csv",
        "--out",
        "p.json",
    )
    done = ran(folder, command, "plan", *asked)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "pip install 'flowsieve[pipeline]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_other_commands_and_the_demo_start(installed: Path, scenario: Path) -> None:
    """All that they import is there; the demo itself is told elsewhere."""
    folder = scenario.parent
    for words in (
        [installed / "flowsieve", "controller", scenario, "--check"],
        [installed / "flowsieve", "sub", "--help"],
        [installed / "flowsieve", "lab", "--help"],
        [installed / "python", "-m", "flowsieve.demo", "--help"],
        [
            installed / "python",
            "-c",
            "import flowsieve.warm, flowsieve.serving.daemon, flowsieve.client.session",
        ],
        [installed / "python", "-c", "from flowsieve.demo.page import resource; print(resource('page.css'))"],
    ):
        done = ran(folder, *words)
        assert done.returncode == 0, (words, done.stderr)
