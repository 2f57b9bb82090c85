"""What a host wants or will publish: a filter, and the dz that stand for it in the network."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.content.filter import Filter
from flowsieve.index.dzset import DzSet


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription or an advertisement of a host; its dz cover every cell that its filter touches."""

    id: str
    host: str
    filter: Filter
    dz: DzSet
