"""The command that shows the whole loop; `make soak` plays it, and its verdict is the judgement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.real
def test_too_small_a_network_is_refused(tmp_path: Path, flowsieve: Callable[..., Any]) -> None:
    answer = flowsieve("loop", "--topology", "line:2", "--out", str(tmp_path / "out"))
    assert answer.status == 2 and "3 hosts" in answer.err
    assert not (tmp_path / "out").exists()
