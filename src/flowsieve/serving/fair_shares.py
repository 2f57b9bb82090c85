"""Fair shares of what there is only so much of: connections, bytes, calls at a time."""

from __future__ import annotations

from collections import Counter


class FairShares:
    """So much of something, and how much of it each has.

    Who asks gets more while it then has no more than was left. So one alone gets half of it, and none takes the last
    from one who has nothing yet; as what was taken is given back, n who take all they can come to an (n+1)th each, and
    as much is left. (Switches share packet memory by this rule: dynamic thresholds.) What is asked for `None` counts
    for nobody, and may be all.

    >>> slots = FairShares(8)
    >>> [slots.take("ann") for _ in range(5)], [slots.take("bob") for _ in range(3)], slots.take("cy")
    ([True, True, True, True, False], [True, True, False], True)
    """

    def __init__(self, whole: int) -> None:
        self.whole = whole
        self.taken = 0
        self._of: Counter[str] = Counter()

    def of(self, who: str) -> int:
        """How much somebody has."""
        return self._of[who]

    def room(self, who: str | None, amount: int = 1) -> bool:
        """Whether somebody may have so much more."""
        return amount + (self._of[who] if who is not None else 0) <= self.whole - self.taken

    def take(self, who: str | None, amount: int = 1) -> bool:
        """Take so much for somebody, if it may have that; whether it may."""
        if not self.room(who, amount):
            return False
        self.taken += amount
        if who is not None:
            self._of[who] += amount
        return True

    def give_back(self, who: str | None, amount: int = 1) -> None:
        """Somebody needs so much of what it took no more."""
        self.taken -= amount
        if who is not None:
            self._of[who] -= amount
            if not self._of[who]:
                del self._of[who]

    def fullness(self, who: str | None) -> float:
        """How far somebody has come towards what it may have: 1 where it gets no more."""
        if who is None:
            return self.taken / self.whole
        return self._of[who] / max(1, self.whole - self.taken)
