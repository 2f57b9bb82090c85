"""What a publisher's host does where labels name receivers: events matched, subscriptions taken in, memory.

Subscriptions are spread over the receivers. Times are of the processor, on one core. Memory is what the process grew
by while the index took in its subscriptions, which were there already.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import getpagesize

import numpy as np

from benchmarks import workloads
from benchmarks.bench import Goal, Result, at_least, at_most, rounded
from benchmarks.labels import twelve
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.matcher.filter_index import FilterIndex

LOADS = {"zipfsel": workloads.zipfsel, "any 4 of 12 attributes": twelve}
ROWS = ((1_000, 64), (10_000, 64), (100_000, 64), (100_000, 1_000))  # subscriptions, receivers
EVENTS, CHECKED = 2_000, 20
MOST_US, MOST_MS, MOST_MB = 200, 1, 100  # to match an event, to take in a subscription, to hold 100,000


@dataclass(frozen=True)
class Published:
    """An index, and what it took to fill it and to match events."""

    index: FilterIndex
    taken_in: list[float]  # seconds for each subscription
    memory: int
    found: list[int]
    matching: float  # seconds for all events one by one
    in_batches: float

    def figures(self) -> dict[str, float]:
        latest = np.array(self.taken_in[-len(self.taken_in) // 10 :]) * 1e6
        return {
            "events_a_second_and_core": rounded(len(self.found) / self.matching),
            "events_a_second_and_core_in_batches": rounded(len(self.found) / self.in_batches),
            "share_of_events_wanted": rounded(np.mean([one != 0 for one in self.found])),
            "receivers_per_event": rounded(np.mean([one.bit_count() for one in self.found])),
            "memory_mb": rounded(self.memory / 1e6),
            "arrays_mb": rounded(self.index.nbytes / 1e6),
            "taken_in_us_median": rounded(float(np.median(latest))),
            "taken_in_us_p99": rounded(float(np.quantile(latest, 0.99))),
            "longest_pause_ms": rounded(max(self.taken_in) * 1e3),
            "all_taken_in_s": rounded(sum(self.taken_in)),
        }


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def published(filters: Sequence[Filter], receivers: int, events: EventBatch) -> Published:
    """Take in all filters one by one, then match events."""
    values = [events.event(row) for row in range(len(events))]
    index, before, taken_in = FilterIndex(events.schema), resident(), list[float]()
    for number, filter in enumerate(filters):
        begin = time.thread_time()
        index.add(filter, number % receivers)
        taken_in.append(time.thread_time() - begin)
    memory = resident() - before
    begin = time.thread_time()
    found = [index.match(event) for event in values]
    middle = time.thread_time()
    assert index.match_batch(events) == found
    return Published(index, taken_in, memory, found, middle - begin, time.thread_time() - middle)


def check(
    filters: Sequence[Filter], receivers: int, values: Sequence[dict[str, object]], found: list[int]
) -> None:
    """Compare with what the filters say themselves."""
    for event, one in zip(values, found, strict=False):
        wanted = {number % receivers for number, filter in enumerate(filters) if filter.matches(event)}
        assert one == sum(1 << receiver for receiver in wanted), "the index and the filters differ"


def run() -> Result:
    by_load: dict[str, dict[str, dict[str, float]]] = {}
    kept = list[object]()  # so that each index takes memory of its own, and none that was given up
    for name, made in LOADS.items():
        load = made(1, max(count for count, _ in ROWS))
        events = load.later.take(np.arange(EVENTS))
        kept += [load, published(load.filters[:100], 64, events)]  # whatever is compiled is loaded now
        rows = dict[str, dict[str, float]]()
        for count, receivers in ROWS:
            one = published(load.filters[:count], receivers, events)
            if count == min(ROWS)[0]:
                check(load.filters[:count], receivers, [events.event(i) for i in range(CHECKED)], one.found)
            kept.append(one)
            rows[f"{count} subscriptions, {receivers} receivers"] = one.figures()
        by_load[name] = rows
    most = [
        row for rows in by_load.values() for name, row in rows.items() if name.startswith(f"{max(ROWS)[0]} ")
    ]
    goals: dict[str, Goal] = {
        "events matched a second and core, 100,000 subscriptions": at_least(
            min(row["events_a_second_and_core"] for row in most), 1e6 / MOST_US
        ),
        "ms to take in a subscription, p99, with 100,000": at_most(
            max(row["taken_in_us_p99"] for row in most) / 1e3, MOST_MS
        ),
        "MB for 100,000 subscriptions": at_most(max(row["memory_mb"] for row in most), MOST_MB),
    }
    return Result("publishing", {"loads": by_load}, {}, goals)
