"""What the tests of the switches share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from vswitch import OpenVSwitch, missing


@pytest.fixture(scope="module")
def open_vswitch() -> Iterator[OpenVSwitch]:
    """An Open vSwitch for the tests of one module."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(f"real switches: {lacking}")
    switch = OpenVSwitch()
    yield switch
    switch.close()
