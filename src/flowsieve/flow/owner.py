"""Who may change which entries: several owners of control state may share a switch, each with a part of the space."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet

MAX_OWNER = 0xFFFF


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner of control state: its entries bear its `number` and lie in its `part` of the space.

    The parts of two owners on one switch are disjoint; so neither changes an entry of the other.
    """

    number: int = 0
    part: DzSet = WHOLE

    def __post_init__(self) -> None:
        if not 0 <= self.number <= MAX_OWNER:
            raise BadInput(f"an owner has the number {self.number}; right is 0 to {MAX_OWNER}")

    @property
    def name(self) -> str:
        """What tells it from others where it is written down."""
        return f"{self.number} {' '.join(self.part.texts())}"

    def minds(self, owner: int | None) -> bool:
        """Whether entries of that owner, None for somebody unknown, are its business."""
        return owner is None or owner == self.number

    def shares(self, dz: Dz) -> bool:
        """Whether a dz reaches into its part."""
        return self.part is WHOLE or self.part.overlaps(DzSet.of(dz))


SOLE = Owner()  # the owner of all, where there is one
