"""What all tests share."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from flowsieve.cli.main import main
from flowsieve.errors import LabError
from flowsieve.lab.machine import check_machine

for folder in ("laws", "faults"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# The same examples everywhere and always: a failure that a commit did not cause helps nobody.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: at the end a worker that has nothing left would wait for it."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def _machine(request: pytest.FixtureRequest) -> None:
    """Where a test marked `real` cannot run, it is skipped and says why."""
    if request.node.get_closest_marker("real"):
        try:
            check_machine()
        except LabError as error:
            pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _plain_log(request: pytest.FixtureRequest) -> None:
    """A test that reads the log gets it in plain lines: PySpark's loggers give each handler a format of their own."""
    if "caplog" not in request.fixturenames:
        return
    for logger in logging.root.manager.loggerDict.values():
        if type(logger).__module__.startswith("pyspark"):
            logger.__class__ = logging.Logger
    request.getfixturevalue("caplog").handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and acceptance scenarios beside the project."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with real data and acceptance scenarios is not there")
    return folder


@dataclass(frozen=True)
class Answer:
    """What a command left: its exit status, standard output and standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output."""
        assert self.out.endswith("}\n"), self
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)


@pytest.fixture
def flowsieve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """The command line, in this process: starting another takes a second or two."""

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["flowsieve", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            main()
        assert isinstance(leaving.value.code, int)
        return Answer(leaving.value.code, *capsys.readouterr())

    return call


SCENARIO = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
side = { type = "enum", values = ["buy", "sell"] }
[index]
bits = 11
max_dz_per_filter = 0
[network]
links = [["s1", "s2"], ["s2", "s3"], ["s3", "s1"]]
[network.hosts]
ann = "s1"
bob = "s2"
cy = "s3"
dee = "s3"
[[step]]
requests = "requests.csv"
[[step]]
events = "events.csv"
"""
REQUESTS = """\
op,id,host,filter
adv,all,ann,True
adv,half,bob,price < 512
sub,cheap,bob,price < 100
sub,some,cy,100 <= price < 300 and side == 'buy'
sub,dear,cy,price >= 900
sub,sale,ann,side == 'sell' and price < 64
"""
EVENTS = """\
id,host,price,side
e1,ann,60,buy
e2,ann,150,buy
e3,bob,30,sell
e4,ann,1024,buy
e5,bob,600,buy
e6,ann,950,sell
"""


class Scene:
    """A small scenario in a folder of its own; tests change its files as they need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = self.write("scenario.toml", SCENARIO)
        self.write("requests.csv", REQUESTS)
        self.write("events.csv", EVENTS)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def replace(self, old: str, new: str, name: str = "scenario.toml") -> Path:
        """Change a file, which must have what is to be changed."""
        text = (self.folder / name).read_text()
        assert old in text
        return self.write(name, text.replace(old, new))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    folder = tmp_path / "scene"
    folder.mkdir()
    return Scene(folder)
