"""What was published against what arrived: by the publishers' own logs, and those of the subscribers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.loop.workload import NAMES, SCHEMA


@dataclass(frozen=True, slots=True)
class Judgement:
    """Events published, deliveries to subscriptions that were wanted, and what was wrong with those that came."""

    published: int
    wanted: int
    lost: int
    lost_events: int
    doubled: int
    strange: int

    @property
    def holds(self) -> bool:
        return not (self.lost or self.doubled or self.strange)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, eq=False)
class PublisherLog:
    """What a publisher logged: its numbers, ascending, and the events."""

    seqs: NDArray[np.int64]
    events: EventBatch

    @classmethod
    def of(cls, seqs: NDArray[np.int64], values: NDArray[np.int64]) -> PublisherLog:
        nothing = np.full(len(values), "", dtype=object)
        columns = {name: values[:, i].astype(np.float64) for i, name in enumerate(NAMES)}
        return cls(seqs, EventBatch(SCHEMA, nothing, nothing, columns))


def judge(publishers: Sequence[Path], subscribers: Mapping[Path, Sequence[str]]) -> Judgement:
    """Compare logs; with each subscriber's log come its filters."""
    sent = dict(map(_published, publishers))
    wanted = lost = doubled = strange = 0
    missed: set[tuple[str, int]] = set()
    for path, texts in subscribers.items():
        with np.load(path) as log:
            names, rows = log["publishers"].tolist(), log["rows"]
        filters = [Filter.parse(text, SCHEMA) for text in texts]
        for name, published in sent.items():
            at = names.index(name) if name in names else -1
            own = rows[rows[:, 1] == at]
            own = own[np.argsort(own[:, 0], kind="stable")]
            bounds = np.searchsorted(own[:, 0], np.arange(len(filters) + 1))
            for number, asked in enumerate(filters):
                expected = published.seqs[asked.matches_batch(published.events)]
                came = own[bounds[number] : bounds[number + 1], 2]
                once = np.unique(came)
                gone = np.setdiff1d(expected, once, assume_unique=True)
                wanted += len(expected)
                lost += len(gone)
                doubled += len(came) - len(once)
                strange += len(np.setdiff1d(once, expected, assume_unique=True))
                missed.update((name, int(seq)) for seq in gone)
    count = sum(len(each.seqs) for each in sent.values())
    return Judgement(count, wanted, lost, len(missed), doubled, strange)


def _published(path: Path) -> tuple[str, PublisherLog]:
    with np.load(path) as log:
        return str(log["publisher"]), PublisherLog.of(log["seqs"], log["values"])
