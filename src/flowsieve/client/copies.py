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
        self._windows: dict[bytes, _Window] = {}  # the publisher heard of last is the last one

    def judge(self, publisher: bytes, seq: int, mark: bytes) -> Copy:
        """Take note of a datagram; `mark` tells it from others of the same event."""
        window = self._window(publisher)
        seen = window.marks.get(seq)
        if seen is None:
            if seq <= window.floor:
                return Copy.SAME
            window.marks[seq] = (mark,)
            self._shorten(window)
            return Copy.FIRST
        if mark in seen or len(seen) >= MARKS:
            return Copy.SAME
        window.marks[seq] = (*seen, mark)
        return Copy.OTHER

    def _window(self, publisher: bytes) -> _Window:
        window = self._windows.pop(publisher, None)
        if window is None:
            if len(self._windows) >= self._publishers:
                del self._windows[next(iter(self._windows))]
            window = _Window()
        self._windows[publisher] = window
        return window

    def _shorten(self, window: _Window) -> None:
        share = max(LEAST, self._remembered // len(self._windows))
        while len(window.marks) > share:
            oldest = next(iter(window.marks))
            del window.marks[oldest]
            window.floor = max(window.floor, oldest)

    def __len__(self) -> int:
        """How many events are remembered."""
        return sum(len(window.marks) for window in self._windows.values())
