"""What compiling the kernels takes: once on a machine, and loading them at the start of a command afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.bench import Result, rounded, seconds


def warm(cache: str) -> float:
    """Go once through every kernel in a process of its own."""
    command = [sys.executable, "-m", "flowsieve.warm"]
    return seconds(lambda: subprocess.run(command, env=os.environ | {"NUMBA_CACHE_DIR": cache}, check=True))


def run() -> Result:
    with tempfile.TemporaryDirectory() as cache:
        first, again = warm(cache), warm(cache)
    return Result("compilation", {"seconds_first": rounded(first), "seconds_afterwards": rounded(again)})
