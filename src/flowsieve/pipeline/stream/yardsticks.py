"""The yardstick of the running index, made anew only where the index or the subscriptions have changed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from flowsieve.index.dzset import DzSet
from flowsieve.pipeline.evaluation.coverage import ListedCoverage
from flowsieve.pipeline.evaluation.covers import covers_on
from flowsieve.pipeline.evaluation.evaluation import Candidate
from flowsieve.pipeline.stream.landing import HeldSubscriptions, RunningIndex
from flowsieve.pipeline.stream.micro_batch import Yardstick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = 100  # covers that are made here; executors make more


class Yardsticks:
    """Covers of filters under one index are kept: a subscription that comes costs one cover, not all of them."""

    def __init__(self, spark: SparkSession, max_dz: int) -> None:
        self._spark, self._max_dz = spark, max_dz
        self._index: RunningIndex | None = None
        self._held: HeldSubscriptions | None = None
        self._covers: dict[str, DzSet] = {}
        self._made = b""

    def of(self, index: RunningIndex, held: HeldSubscriptions) -> bytes:
        """The yardstick, pickled."""
        if index is not self._index:
            self._covers, self._held = {}, None
        if held is not self._held:
            self._index, self._held = index, held
            yardstick = Yardstick(index.schema, held.wanted.boxes, self._candidate(index, held))
            self._made = pickle.dumps(yardstick)
        return self._made

    def covers(self, index: RunningIndex) -> Mapping[str, DzSet]:
        """The covers that are known under an index, by the texts of filters."""
        return self._covers if index is self._index and self._max_dz else {}

    def _candidate(self, index: RunningIndex, held: HeldSubscriptions) -> Candidate | None:
        filters = held.wanted.filters
        if not filters:
            return None
        if not self._max_dz:
            return Candidate.of(index.plan, filters, 0, count=False)
        known = self._covers
        new = list({wanted.text: wanted for wanted in filters if wanted.text not in known}.values())
        if len(new) > FEW:
            made = covers_on(self._spark, index.plan, new, self._max_dz)
        else:
            made = [index.plan.cover(wanted, self._max_dz) for wanted in new]
        known |= {wanted.text: cover for wanted, cover in zip(new, made, strict=True)}
        self._covers = {text: known[text] for text in held.texts}
        covers = [known[text] for text in held.texts]
        prefixes = np.array([len(cover) for cover in covers], np.int64)
        return Candidate(index.plan, ListedCoverage.of(index.plan, covers), prefixes)
