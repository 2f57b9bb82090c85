"""Which events to plan on: some are held back to judge the plan.

That depends on the events alone, not on how they are split, so that the same events give the same plan everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from flowsieve.errors import BadInput, BadPlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BINS = 4096
PARTS = 1_000_000


@dataclass(frozen=True)
class Holdout:
    """Which events are held back: those from a time on (in microseconds since 1970), or a random share of them."""

    share: float
    since: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.share < 1.0:
            raise BadInput(f"a share of {self.share} of the events is held back; right is 0 to below 1")

    @classmethod
    def latest(cls, events: DataFrame, share: float) -> Holdout:
        """The latest share of the events if they have times, else a random share, by the hash of an event's id."""
        rule = cls(share)
        if "time" not in events.columns or share == 0.0:
            return rule
        moment = F.unix_micros("time")
        ends = events.agg(F.min(moment).alias("first"), F.max(moment).alias("last")).first()
        if ends is None or ends["first"] is None or ends["first"] == ends["last"]:
            return rule
        first, width = ends["first"], max(1, -(-(ends["last"] - ends["first"]) // BINS))
        bin = F.floor((moment - F.lit(first)) / F.lit(width)).alias("bin")
        counts = {
            row["bin"]: row["count"]
            for row in events.groupBy(bin).count().collect()
            if row["bin"] is not None
        }
        wanted, later = share * sum(counts.values()), 0
        for number in sorted(counts, reverse=True):
            later += counts[number]
            if later >= wanted:
                return cls(share, first + int(number) * width)
        return rule

    @property
    def held_back(self) -> Column:
        """Whether an event is held back."""
        if self.since is not None:
            return F.coalesce(F.unix_micros("time") >= F.lit(self.since), F.lit(False))
        return _hashed_id() < F.lit(int(self.share * PARTS))

    def planned_on(self, events: DataFrame) -> DataFrame:
        return events.where(~self.held_back) if self.share else events

    def judged_on(self, events: DataFrame) -> DataFrame:
        return events.where(self.held_back)

    def to_json(self) -> dict[str, Any]:
        return {"share": self.share, "since": self.since}

    @classmethod
    def from_json(cls, data: Any) -> Holdout:
        try:
            since = data["since"]
            return cls(float(data["share"]), None if since is None else int(since))
        except (KeyError, TypeError, ValueError, BadInput):
            raise BadPlan(f"held_back = {data!r}; it has a share and a time (since) or null") from None

    @property
    def text(self) -> str:
        if not self.share:
            return "none"
        if self.since is None:
            return f"{self.share:.0%}, by a hash of their ids"
        return f"the latest {self.share:.0%}, from {np.datetime64(self.since, 'us')} on"


def _hashed_id() -> Column:
    return F.pmod(F.xxhash64(F.lit(17), F.col("id")), F.lit(PARTS))


def fingerprint(events: DataFrame) -> str:
    """A name for these very events, in whatever order."""
    row = events.agg(F.count("*"), F.sum(F.xxhash64(*sorted(events.columns)).cast("decimal(38,0)"))).first()
    assert row is not None
    return f"{row[0]}:{row[1]}"
