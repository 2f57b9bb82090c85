"""What events are addressed by, and the way of a network from one such index to another, in phases.

Addresses under the old tag and under the new one never mix. Under the old tag everything is *carried* along its tree
while publishers go over, so that its fine entries can make room for those of the new index; with `carry` False both
are in the tables side by side (versioning).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.header.joint_encoding import JointEncoding
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import EMPTY, WHOLE, DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.index.sides import NEW, OLD, cells_on, off_side, on_side, side_of, words_on
from flowsieve.network.tree import TreeMap

Cover = Callable[[IndexPlan, Filter], DzSet]


class CrossingPhase(Enum):
    """What happens in each; up to INSTALL it can be given up, from SWITCH on it is gone through with."""

    CARRY = "carry"  # under the old tag, tables carry everything
    INSTALL = "install"  # under the new tag, tables are those of the new index
    SWITCH = "switch"  # publishers go over to the new index
    FENCE = "fence"  # what is still sent under the old tag is handed up at its first switch
    CLEAR = "clear"  # under the old tag, nothing is carried any more

    @property
    def revocable(self) -> bool:
        """Whether no publisher can have heard of the new index yet."""
        return self in (CrossingPhase.CARRY, CrossingPhase.INSTALL)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A network on its way from an old index to a new one."""

    old: ServedIndex
    new: ServedIndex
    phase: CrossingPhase
    carry: bool = True

    @property
    def served(self) -> ServedIndex:
        """What publishers should use now."""
        return self.old if self.phase.revocable else self.new

    @property
    def encoding(self) -> JointEncoding:
        others = [tag for tag in self.old.former if tag != self.new.tag]
        return JointEncoding(self.old.tag, self.new.tag, others)

    @property
    def name(self) -> list[object]:
        """What tells the covers of filters on this way from others, as a JSON value."""
        return [self.old.to_json(), self.new.to_json(), self.phase.value, self.carry]

    @classmethod
    def from_json(cls, data: Sequence[Any], schema: Schema) -> Crossing:
        """The way that has this `name`."""
        old, new, phase, carry = data
        ends = [ServedIndex.from_json(each, schema) for each in (old, new)]
        return cls(ends[0], ends[1], CrossingPhase(phase), bool(carry))

    def at(self, phase: CrossingPhase) -> Crossing:
        return replace(self, phase=phase)

    def cover(self, wanted: Filter | None, cover: Cover) -> DzSet:
        """What tables have to know of a filter, in both spaces; without one, all there is."""
        old = new = EMPTY
        if self.phase is not CrossingPhase.CLEAR:
            carried = self.carry or wanted is None
            old = WHOLE if carried else cover(self.old.plan, wanted)  # type: ignore[arg-type]
        if self.phase is not CrossingPhase.CARRY:
            new = WHOLE if wanted is None else cover(self.new.plan, wanted)
        return cells_on(OLD, old) | cells_on(NEW, new)

    def events(self, sample_under: Callable[[IndexPlan], EventSample | None]) -> NDArray[np.uint64] | None:
        """Where the events of a sample fall in both spaces (rows of hi, lo, sorted); None without one."""
        rows = []
        for side, index in ((OLD, self.old), (NEW, self.new)):
            if (sample := sample_under(index.plan)) is not None:
                rows.append(np.column_stack(words_on(side, sample.hi, sample.lo)))
        return np.concatenate(rows) if rows else None


def side_by_side(old: TreeMap, new: TreeMap) -> TreeMap:
    """The trees of both spaces."""
    parts = [(on_side(side, dz), tree) for side, trees in ((OLD, old), (NEW, new)) for dz, tree in trees]
    return TreeMap(tuple(parts))


def trees_of(side: int, trees: TreeMap) -> TreeMap:
    """The trees of one of two spaces."""
    return TreeMap(tuple((off_side(dz), tree) for dz, tree in trees if side_of(dz) == side))


def renamed(crossed: bool, side: int) -> Callable[[Dz], Dz | None]:
    """What a cell of one space is called when both are seen as one, or the other way round; None if it is not there."""
    if crossed:
        return lambda dz: on_side(side, dz)
    return lambda dz: off_side(dz) if side_of(dz) == side else None
