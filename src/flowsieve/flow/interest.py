"""What an endpoint wants or will publish: a filter, and the dz that stand for it in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowsieve.content.filter import Filter
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription or an advertisement of an endpoint; its dz cover every cell that its filter touches.

    What comes from another controller has no filter: its dz are all that is known of it.
    """

    id: str
    endpoint: str
    filter: Filter | None
    dz: DzSet

    def holds(self, values: Mapping[str, object], cells: Sequence[Dz]) -> bool:
        """Whether an event is meant, given the cells that it is sent to."""
        if self.filter is not None:
            return self.filter.matches(values)
        return any(map(self.dz.covers, cells))

    @property
    def filters(self) -> list[Filter]:
        """What an event in its dz has to match besides: its filter, if it has one."""
        return [] if self.filter is None else [self.filter]

    @property
    def told(self) -> str | list[str]:
        """What was asked for, as a JSON value: the filter as it was written, or else dz."""
        return self.dz.texts() if self.filter is None else self.filter.text
