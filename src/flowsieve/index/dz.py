"""A dz: the name of one cell of the content space."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering

from flowsieve.errors import BadInput

MAX_LENGTH = 112  # what an IPv6 address has left behind a 16-bit group prefix
LONGEST = MAX_LENGTH + 1  # of a cell in two spaces that are seen as one: see `sides`


@total_ordering
@dataclass(frozen=True, slots=True)
class Dz:
    """A cell of the content space: the first `length` bits of the path to it, as a number.

    Sorted as their texts are: by where the cell begins, a cell before the cells inside it.

    >>> Dz.parse("01").covers(Dz.parse("0110"))
    True
    >>> sorted([Dz.parse("1"), Dz.parse("011"), Dz.parse("01")])
    [Dz('01'), Dz('011'), Dz('1')]
    """

    bits: int
    length: int

    def __post_init__(self) -> None:
        if not 0 <= self.length <= LONGEST:
            raise BadInput(f"a dz has 0 to {MAX_LENGTH} bits, not {self.length}")
        if self.bits < 0 or self.bits >> self.length:
            raise BadInput(f"{self.bits:#x} is no number of {self.length} bits")

    @classmethod
    def parse(cls, text: str) -> Dz:
        if text.strip("01"):
            raise BadInput(f"{text!r} is no dz: a dz is a string of 0 and 1 such as '0110', or empty")
        return cls(int(text, 2) if text else 0, len(text))

    def covers(self, other: Dz) -> bool:
        """Whether the other cell lies in this one (a cell covers itself)."""
        gap = other.length - self.length
        return gap >= 0 and other.bits >> gap == self.bits

    def overlaps(self, other: Dz) -> bool:
        """Whether the two cells share anything: then one covers the other."""
        return self.covers(other) or other.covers(self)

    @property
    def parent(self) -> Dz | None:
        """The cell that was halved to make this one; the whole space has none."""
        return Dz(self.bits >> 1, self.length - 1) if self.length else None

    @property
    def sibling(self) -> Dz | None:
        """The other half of the parent."""
        return Dz(self.bits ^ 1, self.length) if self.length else None

    @property
    def children(self) -> tuple[Dz, Dz]:
        """The lower and the upper half."""
        return Dz(self.bits << 1, self.length + 1), Dz(self.bits << 1 | 1, self.length + 1)

    @property
    def aligned(self) -> int:
        """The bits moved to the top of 128: where the cell begins among all cells."""
        return self.bits << (128 - self.length)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Dz):
            return NotImplemented
        return (self.aligned, self.length) < (other.aligned, other.length)

    def __str__(self) -> str:
        return f"{self.bits:0{self.length}b}" if self.length else ""

    def __repr__(self) -> str:
        return f"Dz({str(self)!r})"


WHOLE_SPACE = Dz(0, 0)
