"""Where labs are: each has a directory named after it, on which its keeper holds a lock.

A directory without the lock is what is left of a lab that was killed, and is cleared away.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

from flowsieve.errors import BadInput
from flowsieve.lab.namespace import opened

BASE = Path("/run/flowsieve")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def claim(name: str | None) -> tuple[Path, int]:
    """A new directory of that name, or of the first free one, and the lock on it."""
    if name is not None and not NAME.fullmatch(name):
        raise BadInput(f"the name of a lab is {name[:80]!r}; right are up to 32 of A-Z a-z 0-9 _ -")
    BASE.mkdir(exist_ok=True)
    for candidate in (name,) if name else (f"lab{number}" for number in count(1)):
        directory = BASE / candidate
        clear(directory)
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            continue
        lock = os.open(directory, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_at(directory, lock):
            return directory, lock
        os.close(lock)  # another process took the new directory for a dead lab's, and removed it
    raise BadInput(f"there is a lab {name!r} already; take it down, or choose another name")


def is_locked(directory: Path) -> bool:
    """Whether a lab is up there, or on its way up or down."""
    try:
        with opened(directory) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not see each other
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def clear(directory: Path) -> None:
    """Remove what is left of a lab, unless it is up; under the lock, so that no new one is hit."""
    with suppress(FileNotFoundError, BlockingIOError), opened(directory) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(directory, file):
            shutil.rmtree(directory, ignore_errors=True)


def _is_at(directory: Path, file: int) -> bool:
    """Whether an open directory is still to be found under its name."""
    try:
        return directory.stat().st_ino == os.fstat(file).st_ino
    except FileNotFoundError:
        return False
