"""What was asked of configurators and is not decided yet: units of work, and requests of which parts are missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from flowsieve.control.partitions.orders import Key

Verdict = tuple[Key, str | None]  # a request, and why it was refused, if it was


class Undecided:
    """Each part of a request, and each order for all, is a unit; a request is decided with the last of its parts."""

    def __init__(self) -> None:
        self.last = 0  # the unit that came last
        self._numbers = count(1)
        self._open: dict[int, None] = {}  # the oldest first
        self._parts_left: dict[Key, int] = {}
        self._refused: dict[Key, str] = {}
        self._told: list[Verdict] = []
        self._held_back: list[Verdict] = []

    # Units.

    def unit(self) -> int:
        """One more thing to be decided."""
        self.last = next(self._numbers)
        self._open[self.last] = None
        return self.last

    def close(self, units: Iterable[int]) -> None:
        """These are decided, or need not be any more."""
        for unit in units:
            self._open.pop(unit, None)

    def passed(self, ticket: int) -> bool:
        """Whether all units up to one are decided."""
        return not self._open or next(iter(self._open)) > ticket

    def __len__(self) -> int:
        return len(self._open)

    # Requests.

    def expect(self, key: Key, parts: int) -> None:
        """So many parts of a request are to be decided."""
        self._parts_left[key] = self._parts_left.get(key, 0) + parts

    def part(self, unit: int, key: Key, refused: str | None, hold_back: bool) -> None:
        """One part of a request is decided; with the last of them it is told, or held back."""
        self.close((unit,))
        if refused is not None:
            self._refused[key] = refused
        self._parts_left[key] -= 1
        if not self._parts_left[key]:
            del self._parts_left[key]
            self.tell(key, self._refused.pop(key, None), hold_back)

    def tell(self, key: Key, refused: str | None = None, hold_back: bool = False) -> None:
        """A request is decided as a whole."""
        (self._held_back if hold_back else self._told).append((key, refused))

    def all_in_force(self) -> None:
        """All begins anew with what was asked for: it is in force, or ended; held back until tables are known."""
        for key in self._parts_left:
            self.tell(key, hold_back=True)
        self._parts_left.clear()
        self._open.clear()
        self._refused.clear()

    def release(self) -> None:
        """Tell what was held back."""
        held_back, self._held_back = self._held_back, []
        for key, refused in held_back:
            if key not in self._parts_left:
                self._told.append((key, refused))
            elif refused is not None:  # more was asked of it meanwhile: it is told when that is decided
                self._refused[key] = refused

    def told(self) -> list[Verdict]:
        """The requests that are decided, and why one was refused; each is told once."""
        found, self._told = self._told, []
        return found
