"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "laws"))

# The same examples everywhere and always: a failure that a commit did not cause helps nobody.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and acceptance scenarios beside the project."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with real data and acceptance scenarios is not there")
    return folder
