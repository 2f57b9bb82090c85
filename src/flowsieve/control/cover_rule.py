"""How fine covers are: so many dz for every filter, or `auto`: as many as are worth their room.

Under `auto` a dz has a price, the least share of the events that it has to keep from going where nobody wants them. A
filter amid traffic then has many dz and one where nothing happens a few, which takes little more room than the same
number for everyone. What a table has no room for is cut there, by the traffic again (`flow.capacity`); and what a cut
would take away anyway is not worth a dz, so in small tables the price is higher. A cover is a function of the filter,
the sample and the capacity alone: no request changes the cover of another, so that each costs what it touches, in
whatever order they come.

Without a sample nobody knows where traffic is, and every filter has as many dz as it would have without `auto`. Those
whose boxes lie badly have more: people are taken to subscribe to what happens, so every filter is expected to match as
many events as any other, and events to be as dense around it as in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowsieve.content.filter import Filter
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample

DEFAULT_BUDGET = 32
AUTO: Literal["auto"] = "auto"
Budget = int | Literal["auto"]

MOST = 512  # dz of a filter under `auto`, whatever they save
FREE = 8  # dz that every filter may have, whatever they save: traffic may come where there was none
PRICE = 1.8e-4  # of a dz, as a share of all events; at less, requests take longer than what is saved is worth
SURVIVING = 0.15  # of the events, divided by the entries of a table: what saves less, its cut takes away
RELATIVE_PRICE = 0.25  # without a sample, as a share of the events that the filter matches


@dataclass(frozen=True, slots=True)
class CoverRule:
    """How a control plane covers filters; `capacity` is the room that the settings give a table."""

    budget: Budget
    capacity: int | None = None

    def cover(self, plan: IndexPlan, wanted: Filter, sample: EventSample | None) -> DzSet:
        """The dz that stand for a filter."""
        if self.budget != AUTO:
            return plan.cover(wanted, self.budget, sample)
        if not sample:
            price = RELATIVE_PRICE * volume_of(plan, wanted)
            return plan.cover(wanted, MOST, None, price, free=DEFAULT_BUDGET)
        return plan.cover(wanted, MOST, sample, self.price, FREE)

    @property
    def price(self) -> float:
        """What a dz has to save under `auto`, where a sample tells of the traffic."""
        return PRICE if self.capacity is None else max(PRICE, SURVIVING / max(1, self.capacity))

    @property
    def name(self) -> object:
        """What tells covers from those made otherwise."""
        return [AUTO, MOST, FREE, self.price, RELATIVE_PRICE] if self.budget == AUTO else self.budget


def volume_of(plan: IndexPlan, wanted: Filter) -> float:
    """The share of the space that a filter wants; boxes that lie across each other count twice."""
    total = 0.0
    for box in plan.boxes(wanted):
        volume = 1.0
        for span, places in zip(box, plan.shape, strict=True):
            volume *= (span.last - span.first + 1) / places
        total += volume
    return min(1.0, total)
