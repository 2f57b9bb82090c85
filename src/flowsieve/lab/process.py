"""Processes that are ended only when they are the ones that we started.

A number alone proves nothing, since numbers are used again. A pidfd holds on to one process; what it is, its
command line tells.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PRECEDENCE = -10  # a nice value: nine times the weight of others
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def held(pid: int, argument: str) -> Iterator[int | None]:
    """A pidfd of the process if it lives and was started with that argument, else None."""
    pidfd = _open(pid)
    try:
        yield pidfd if pidfd is not None and argument in arguments(pid) else None
    finally:
        if pidfd is not None:
            os.close(pidfd)


def arguments(pid: int) -> list[str]:
    """What a process was started with; empty for one that is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def ended(pidfd: int, seconds: float) -> bool:
    """Whether a process ends within a time."""
    watch = select.poll()
    watch.register(pidfd, select.POLLIN)
    return bool(watch.poll(1000 * seconds))


def die_with_parent() -> None:
    """In a process about to be started: be killed when the parent is, however that happens."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def come_first() -> None:
    """In a process about to be started, in a session of its own: get the processor before others, where it may.

    Linux may share processors out between sessions first, and only then within one; so both are told.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRECEDENCE)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(PRECEDENCE))


def end_all_inside(namespaces: list[int], seconds: float = 5) -> None:
    """End every process whose network is one of these namespaces."""
    inside = {_identity(os.fstat(namespace)) for namespace in namespaces}
    deadline = time.monotonic() + seconds
    while True:
        pidfds = [pidfd for pid in _processes() if (pidfd := _open_inside(pid, inside)) is not None]
        try:
            for pidfd in pidfds:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            for pidfd in pidfds:
                ended(pidfd, max(0, deadline - time.monotonic()))
        except ProcessLookupError:
            pass  # it ended by itself
        finally:
            for pidfd in pidfds:
                os.close(pidfd)
        if not pidfds or time.monotonic() > deadline:
            return


def _open_inside(pid: int, inside: set[tuple[int, int]]) -> int | None:
    """A pidfd of a process that is inside; opened before looking, lest the number pass to another."""
    if not _is_inside(pid, inside):
        return None
    pidfd = _open(pid)
    if pidfd is not None and not _is_inside(pid, inside):
        os.close(pidfd)
        return None
    return pidfd


def _is_inside(pid: int, inside: set[tuple[int, int]]) -> bool:
    try:
        return _identity(Path(f"/proc/{pid}/ns/net").stat()) in inside
    except OSError:
        return False


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
