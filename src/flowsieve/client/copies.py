"""Which events have come already: a window for each publisher, and no more of them than there is room for."""

from __future__ import annotations

from enum import IntEnum

REMEMBERED = 1 << 16  # events that are known when they come again; publishers share them
PUBLISHERS = 1 << 12  # that are known
LEAST = 16  # events of each publisher
MARKS = 8  # datagrams of one event that are told apart; of more than that, each counts as a copy


class Copy(IntEnum):
    """What a datagram of an event is to those that came before."""

    FIRST = 0
    OTHER = 1  # of the same event: a repeat, such as one for another of its dz
    SAME = 2  # as one that came before, or so late that nobody can tell


class _Window:
    """The events of one publisher: by number, the marks of the datagrams that brought each."""

    __slots__ = ("floor", "marks")

    def __init__(self) -> None:
        self.marks: dict[int, tuple[bytes, ...]] = {}
        self.floor = 0  # what has no higher number is not remembered any more


class Copies:
    """Tells second copies from first ones.

    A publisher's window holds the events that came last. What is not in it, and has no higher number than one that
    has left it, came too late: it is taken for a copy, since it may be one.
    """

    def __init__(self, remembered: int = REMEMBERED, publishers: int = PUBLISHERS) -> None:
        self._remembered, self._publishers = remembered, publishers
        self._share = remembered  # of each publisher
        self._windows: dict[
            bytes, _Window
        ] = {}  # once it is half full, that of the publisher heard of last is last

    def judge(self, publisher: bytes, seq: int, mark: bytes) -> Copy:
        """Take note of a datagram; `mark` tells it from others of the same event."""
        windows = self._windows
        window = windows.get(publisher) or self._begin(publisher)
        if 2 * len(windows) > self._publishers:
            windows[publisher] = windows.pop(publisher)
        marks = window.marks
        seen = marks.get(seq)
        if seen is None:
            if seq <= window.floor:
                return Copy.SAME
            marks[seq] = (mark,)
            while len(marks) > self._share:
                oldest = next(iter(marks))
                del marks[oldest]
                window.floor = max(window.floor, oldest)
            return Copy.FIRST
        if mark in seen or len(seen) >= MARKS:
            return Copy.SAME
        marks[seq] = (*seen, mark)
        return Copy.OTHER

    def _begin(self, publisher: bytes) -> _Window:
        """A window for a new publisher; the one that was silent for longest makes room for it."""
        if len(self._windows) >= self._publishers:
            del self._windows[next(iter(self._windows))]
        made = self._windows[publisher] = _Window()
        self._share = max(LEAST, self._remembered // len(self._windows))
        return made

    def __len__(self) -> int:
        """How many events are remembered."""
        return sum(len(window.marks) for window in self._windows.values())
