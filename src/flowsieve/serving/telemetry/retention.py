"""Which landed files have to go: those that are too old, and the oldest where there are too many, or too many bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from flowsieve.serving.telemetry.settings import Keep


class LandedFile(NamedTuple):
    """A file in the folder of its kind: when it was written, in seconds, and how many bytes it has."""

    written: float
    kind: str
    name: str
    size: int


def outdated(
    files: Iterable[LandedFile], keep: Keep, now: float, standing: Mapping[str, int]
) -> list[LandedFile]:
    """The files that go, the oldest first. Of some kinds so many of the newest are `standing`: they always stay.

    >>> files = [LandedFile(at, "events", str(at), 10) for at in range(4)]
    >>> [file.name for file in outdated(files, Keep(hours=1, bytes=25, files=3), 10, {})]
    ['0', '1']
    >>> [file.name for file in outdated(files, Keep(hours=1), 3602.5, {"events": 1})]
    ['0', '1', '2']
    """
    newest = sorted(files, reverse=True)
    seen: dict[str, int] = {}
    held, gone = 0, []
    for file in newest:
        seen[file.kind] = seen.get(file.kind, 0) + 1
        held += file.size
        crowded = held > keep.bytes or seen[file.kind] > keep.files
        if (crowded or file.written < now - 3600 * keep.hours) and seen[file.kind] > standing.get(
            file.kind, 0
        ):
            gone.append(file)
            held -= file.size
    return gone[::-1]
