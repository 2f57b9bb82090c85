"""What events are addressed by: an index that publishers use, or have used."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.header.encoding import Encoding, PrefixEncoding
from flowsieve.header.tag import Tag
from flowsieve.index.plan import IndexPlan


@dataclass(frozen=True, slots=True)
class ServedIndex:
    """An index: versions grow with each change, the tag tells its packets from those of others."""

    version: int
    tag: Tag
    plan: IndexPlan

    @property
    def encoding(self) -> Encoding:
        return PrefixEncoding(self.tag)
