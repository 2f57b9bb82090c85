"""What the tests of clients share: a network in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fabric import Fabric


@pytest.fixture
def fabric(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fabric]:
    """A network without root: clients of this process send and receive over it; under a plan, if it is given."""
    made = Fabric(f"unix:{tmp_path / 'control'}", getattr(request, "param", None))
    monkeypatch.setattr("flowsieve.client.session.SETTLE_SECONDS", 0)  # nothing is under way here
    yield made
    made.close()
