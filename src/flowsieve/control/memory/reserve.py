"""Room set aside beside a journal: what has to be done and remembered though the disk is full is kept there.

The file is written once, as large as it will ever be, and then only overwritten in place. It has two halves, used in
turn, so that a power cut while one is written leaves the other. What it holds counts only as long as the journal has
not got beyond the entry that it was kept after.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

HALF_BYTES = 1 << 16
_HEAD = struct.Struct(
    "<4sQQII"
)  # a mark, which half is newer, after which entry, length and checksum of the rest
_MARK = b"fsr1"


class Reserve:
    """The file, from its opening on; `keep` raises OSError where it has no room."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._turn = max((turn for turn, _, _ in _halves(path)), default=0)
        if os.fstat(self._file).st_size < 2 * HALF_BYTES:
            try:
                os.pwrite(self._file, bytes(2 * HALF_BYTES), 0)
                os.fsync(self._file)
            except OSError:  # there is no room to set aside; it is tried again at the next start
                os.ftruncate(self._file, 0)

    def keep(self, number: int, entries: Sequence[str]) -> None:
        """Keep entries that come after the journal's entry of that number, in the place of those kept before."""
        body = json.dumps(list(entries)).encode()
        if len(body) > HALF_BYTES - _HEAD.size:
            raise OSError(f"{len(body)} bytes are more than there is room for beside the journal")
        turn = self._turn + 1
        head = _HEAD.pack(_MARK, turn, number, len(body), zlib.crc32(body))
        os.pwrite(self._file, head + body, turn % 2 * HALF_BYTES)
        os.fsync(self._file)
        self._turn = turn

    def close(self) -> None:
        os.close(self._file)


def kept_after(path: Path, number: int) -> list[str]:
    """The entries that were kept last, if nothing was written to the journal since."""
    if not path.exists():
        return []
    _, after, entries = max(_halves(path), default=(0, -1, []))
    return entries if after == number else []


def _halves(path: Path) -> list[tuple[int, int, list[str]]]:
    """What is whole in the file: which is newer, after which entry, and the entries."""
    data, found = path.read_bytes(), []
    for start in (0, HALF_BYTES):
        half = data[start : start + HALF_BYTES]
        if len(half) >= _HEAD.size:
            mark, turn, number, length, checksum = _HEAD.unpack_from(half)
            body = half[_HEAD.size : _HEAD.size + length]
            if mark == _MARK and zlib.crc32(body) == checksum:
                found.append((turn, number, json.loads(body)))
    return found
