"""What processes say on standard error is passed on, but for one line that says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from flowsieve.pipeline.runtime.hush import NOISE, hushed


@pytest.fixture
def ear() -> Iterator[tuple[int, int]]:
    """A standard error of our own, and where to hear what is said there."""
    heard, said = os.pipe()
    yield heard, said
    os.close(heard)
    os.close(said)


def test_all_but_the_noise_is_passed_on_also_after_the_block(ear: tuple[int, int]) -> None:
    heard, said = ear
    with hushed(said):
        child = subprocess.Popen(["sh", "-c", "cat >&2"], stdin=subprocess.PIPE, stderr=said)
    assert child.stdin is not None
    child.stdin.write(b"before\n" + NOISE + b"after\n")
    child.stdin.close()
    assert child.wait(20) == 0
    text = b""
    while b"after\n" not in text:
        text += os.read(heard, 1000)
    assert text == b"before\nafter\n"
    os.write(said, b"own\n")
    assert os.read(heard, 1000) == b"own\n"


def test_our_own_stream_is_left_alone(ear: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = ear
    with os.fdopen(os.dup(said), "w") as other:
        monkeypatch.setattr(sys, "stderr", other)
        with hushed(said):
            assert sys.stderr is other
        assert sys.stderr is other


def test_without_a_standard_error_there_is_nothing_to_do() -> None:
    with hushed(9_999):
        pass
