"""What requests come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flowsieve.control.request import Request
from flowsieve.errors import Refused
from flowsieve.flow.diff import Change
from flowsieve.flow.publisher_filters import FilterChange


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a slice of requests comes to: the net changes per switch, and what could not be served.

    `unmended` is why trees stay as they are. `told` is what publishers have to learn, where they match events. `steps`
    are what they have to learn when tables have followed, where labels are Bloom filters.
    """

    changes: Mapping[str, list[Change]]
    refused: tuple[tuple[Request, Refused], ...] = field(default=())
    unmended: Refused | None = None
    told: Mapping[str, list[FilterChange]] = field(default_factory=dict)
    steps: tuple[int, ...] = ()

    @property
    def operations(self) -> int:
        return sum(map(len, self.changes.values()))
