"""A frozen view of a network on its way from one index to another: as it is under the one, and under the other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from flowsieve.flow.interest import Interest
from flowsieve.flow.view import NetworkView
from flowsieve.index.sides import cells_of
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True, eq=False)
class JointView:
    """The same network seen once for each index that publishers may use now, by its side; `served` is the one they
    should.

    Interests are those of both spaces seen as one (`index.sides`).
    """

    sides: dict[int, NetworkView]
    served: int
    advertisements: Collection[Interest]
    subscriptions: Collection[Interest]

    @classmethod
    def of(
        cls,
        sides: dict[int, NetworkView],
        served: int,
        advertisements: Collection[Interest],
        subscriptions: Collection[Interest],
    ) -> JointView:
        """Each side with what of the interests lies in it."""
        apart = {
            side: replace(
                view, advertisements=_of(side, advertisements), subscriptions=_of(side, subscriptions)
            )
            for side, view in sides.items()
        }
        return cls(apart, served, advertisements, subscriptions)

    @property
    def topology(self) -> Topology:
        return self.sides[self.served].topology

    def about(self, advertisements: Collection[Interest], subscriptions: Collection[Interest]) -> JointView:
        """The same with other interests."""
        return self.of(self.sides, self.served, advertisements, subscriptions)


def _of(side: int, interests: Collection[Interest]) -> list[Interest]:
    return [replace(each, dz=cells_of(side, each.dz)) for each in interests]
