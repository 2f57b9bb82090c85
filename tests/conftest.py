"""What all tests share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from flowsieve import cli

sys.path.insert(0, str(Path(__file__).parent / "laws"))

# The same examples everywhere and always: a failure that a commit did not cause helps nobody.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")


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
def flowsieve(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Answer]:
    """The command line, in this process: starting another takes a second or two."""

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["flowsieve", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        assert isinstance(leaving.value.code, int)
        return Answer(leaving.value.code, *capsys.readouterr())

    return call
