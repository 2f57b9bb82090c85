"""What the processes that this one started use: processor time, and memory at its peak."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
PAUSE = 0.1  # seconds between two looks


@dataclass
class Usage:
    """Of all descendants of this process, by the name of their program."""

    cpu_seconds: float = 0.0
    peak_mb: dict[str, float] = field(default_factory=dict)  # of all processes of a name together


@contextmanager
def watched() -> Iterator[Usage]:
    """Watch the descendants; the usage is complete at the end."""
    usage, over = Usage(), threading.Event()

    def look() -> None:
        while True:
            now: dict[str, float] = {}
            for name, _, memory in _descendants():
                now[name] = now.get(name, 0.0) + memory / 2**20
            for name, size in now.items():
                usage.peak_mb[name] = max(size, usage.peak_mb.get(name, 0.0))
            if over.wait(PAUSE):
                return

    before = sum(cpu for _, cpu, _ in _descendants())
    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield usage
    finally:
        over.set()
        watcher.join()
        usage.cpu_seconds = sum(cpu for _, cpu, _ in _descendants()) - before


def _descendants() -> list[tuple[str, float, int]]:
    """Program, seconds of processor (with those of its children that ended) and bytes of memory of each."""
    found: dict[int, tuple[int, tuple[str, float, int]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:  # it has ended meanwhile
                continue
            cells = rest.split()
            cpu = sum(map(int, cells[11:15])) / TICK
            found[int(folder.name)] = int(cells[1]), (name, cpu, int(cells[21]) * PAGE)
    out, waiting = [], [os.getpid()]
    while waiting:
        parent = waiting.pop()
        children = [process for process, (above, _) in found.items() if above == parent]
        out += [found[child][1] for child in children]
        waiting += children
    return out
