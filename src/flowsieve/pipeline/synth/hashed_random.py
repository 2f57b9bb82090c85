"""Random numbers as column expressions: each is a hash of the seed, a name and the row's number.

So a value does not depend on how rows are split among partitions, on their order, or on what else is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class HashedRandom:
    """Draws for the rows of one table; `row` is the column that numbers them."""

    seed: int
    table: str
    row: str = "row"

    def uniform(self, name: str, of: Column | None = None) -> Column:
        """A number from [0, 1); one per row, or one per value of another column."""
        key = F.col(self.row) if of is None else of
        hashed = F.xxhash64(F.lit(self.seed), F.lit(f"{self.table}.{name}"), key.cast("bigint"))
        return F.shiftrightunsigned(hashed, 11).cast("double") * F.lit(2.0**-53)

    def normal(self, name: str, of: Column | None = None) -> Column:
        """A number of mean 0 and deviation 1 (Box and Muller)."""
        radius = F.sqrt(F.lit(-2.0) * F.log(F.lit(1.0) - self.uniform(f"{name}.radius", of)))
        return radius * F.cos(F.lit(2 * math.pi) * self.uniform(f"{name}.angle", of))

    def choice(self, name: str, cumulative: Sequence[float]) -> Column:
        """A number from 0 on, with the probabilities that add up to `cumulative`."""
        drawn = self.uniform(name)
        out = F.lit(len(cumulative) - 1)
        for number in reversed(range(len(cumulative) - 1)):
            out = F.when(drawn < cumulative[number], number).otherwise(out)
        return out


def clipped(value: Column, least: float, most: float) -> Column:
    return F.greatest(F.lit(least), F.least(F.lit(most), value))


def pick(values: Sequence[float], number: Column) -> Column:
    """The value at a number, from a short list of constants."""
    if len(set(values)) == 1:
        return F.lit(float(values[0]))
    return F.element_at(F.array(*(F.lit(float(value)) for value in values)), number + 1)
