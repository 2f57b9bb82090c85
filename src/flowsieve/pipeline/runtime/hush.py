"""Drops a warning that Java prints at every start: that Spark asks for an incubator module."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = b"WARNING: Using incubator modules: jdk.incubator.vector\n"


@contextmanager
def hushed(stderr: int = 2) -> Iterator[None]:
    """Pass on what processes that are started in the block write to standard error, but for that one line.

    This holds for as long as they run. What this process writes itself is not redirected: a progress bar needs its
    terminal.
    """
    own = sys.stderr
    try:
        kept = os.dup(stderr)
    except OSError:  # it is closed
        yield
        return
    heard, said = os.pipe()
    threading.Thread(target=_pass_on, args=(heard, os.dup(kept)), daemon=True).start()
    os.dup2(said, stderr)
    os.close(said)
    direct = os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
    if _is_over(own, stderr):
        sys.stderr = direct
    try:
        yield
    finally:
        sys.stderr = own
        direct.close()
        os.dup2(kept, stderr)
        os.close(kept)


def _is_over(stream: object, descriptor: int) -> bool:
    """Whether a stream writes to a descriptor."""
    try:
        return bool(stream.fileno() == descriptor)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def _pass_on(heard: int, target: int) -> None:
    while said := os.read(heard, 1 << 16):
        rest = said.replace(NOISE, b"")
        while rest:
            rest = rest[os.write(target, rest) :]
    os.close(heard)
    os.close(target)
