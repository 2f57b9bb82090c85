"""What is known of a partition, and of a configurator, while partitions have owners that come and go."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count

from flowsieve.control.partitions.orders import Key, Order, RequestPart
from flowsieve.index.dz import Dz

HELD_WEIGHT = 0.01  # of an interest that is in force, beside a request that comes, in what a partition weighs


@dataclass(slots=True, eq=False)
class Partition:
    """One partition: who decides on it, what is in force, and what waits."""

    dz: Dz
    number: int = 0
    owner: str | None = None
    ready: bool = False  # whether the owner has taken it up
    going_to: str | None = None  # who gets it once nothing of it is under way
    under_way: int = 0
    held: dict[Key, RequestPart] = field(default_factory=dict)
    queue: deque[tuple[int, RequestPart]] = field(default_factory=deque)
    room: dict[str, int] = field(default_factory=dict)  # that goes with it, until its new owner has it
    taken: float = 0.0  # requests of late
    spanned: float = 0.0  # those of them that cover it wholly

    @property
    def weight(self) -> float:
        return self.taken + HELD_WEIGHT * (1 + len(self.held))

    @property
    def empty(self) -> bool:
        """Whether nothing is in force there, and nothing waits."""
        return not (self.held or self.queue or self.under_way)


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """An order that was sent and not answered, and the units of work that it stands for."""

    serial: int
    order: Order
    units: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Member:
    """A configurator, and what it was sent and has not answered, in its order."""

    name: str
    sent: deque[Sent] = field(default_factory=deque)
    slices: int = 0
    waiting: dict[Dz, None] = field(default_factory=dict)  # its partitions in which something waits
    serials: count[int] = field(default_factory=lambda: count(1))
    answered: int = 0  # parts
    visits: int = 0
