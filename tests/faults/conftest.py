"""What the tests of faults share: a process that starts controllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hatchery import Hatchery


@pytest.fixture(scope="session")
def hatchery() -> Iterator[Hatchery]:
    """One for all tests: it takes seconds to begin, and what it starts has nothing of what it started before."""
    with Hatchery() as made:
        yield made
