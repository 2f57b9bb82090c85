"""How many packets an event is sent in where labels are Bloom filters, and which filters each of them is for.

A packet for many filters has most of its bits set, and goes nearly everywhere. So the filters that an event matches are
shared out over several packets, either over so many as it takes to keep each of them clear, or over a fixed number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsieve.errors import BadInput
from flowsieve.flow.held_filters import HeldFilters


@dataclass(frozen=True, slots=True)
class Shares:
    """At most `number` packets an event; for None as many as it takes to have `filters` or fewer in each."""

    filters: int
    number: int | None = None

    def __post_init__(self) -> None:
        if self.filters < 1 or (self.number is not None and self.number < 1):
            raise BadInput(
                f"{self.number} packets an event, of {self.filters} filters each; right is 1 or more"
            )

    def shared_out(self, matched: Sequence[str], held: HeldFilters) -> list[frozenset[str]]:
        """The filters that each packet of an event is for; those next to each other go together.

        Each comes with those matched that cover it. A table may ask for the cover alone, on the way to a host that
        wants only what is covered.
        """
        if not matched:
            return []
        there = frozenset(matched)
        number = self.number or -(-len(there) // self.filters)
        most = -(-len(there) // number)
        packets: list[frozenset[str]] = []
        for text in matched:
            needed = held.with_covers([text]) & there
            if any(needed <= packet for packet in packets):
                continue
            full = not packets or len(packets[-1] | needed) > most
            if full and (self.number is None or len(packets) < self.number):
                packets.append(needed)
            else:
                packets[-1] |= needed
        return packets
