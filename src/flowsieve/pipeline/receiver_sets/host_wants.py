"""What the hosts of a network want, and who wants each event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.header.receivers import Sets
from flowsieve.pipeline.evaluation.evaluation import CHUNK, bench_of
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.receiver_sets import set_kernel as kernel
from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers

WORD = np.dtype("<i4")  # a host's number in an audience's key


@dataclass(frozen=True, eq=False)
class HostWants:
    """The boxes of all subscriptions, and the number of the host of each."""

    hosts: tuple[str, ...]
    boxes: BoxTable
    home: Numbers

    @classmethod
    def of(cls, hosts: Sequence[str], wanted: Sequence[tuple[str, Filter]]) -> HostWants:
        """What each host wants, one filter or more of one schema."""
        number = {host: at for at, host in enumerate(hosts)}
        filters = [filter for _, filter in wanted]
        home = np.array([number[host] for host, _ in wanted], np.int64)
        return cls(tuple(hosts), BoxTable.of(filters[0].schema, filters), home)

    def listed(self, events: EventBatch, source: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
        """Of some events at a time, the hosts that want each, but for its publisher: where they begin, and a list."""
        bench = bench_of(self.boxes.digest, (), self.boxes)
        for at in range(0, len(events), CHUNK):
            rows = np.arange(at, min(at + CHUNK, len(events)))
            matched = bench.matched(events.take(rows), lists=True)
            begin, out = np.empty(len(rows) + 1, np.int64), np.empty(matched.start[-1], np.int64)
            kernel.list_audiences(matched.start, matched.who, self.home, source[rows], begin, out)
            yield begin, out[: begin[-1]]

    def keys(self, events: EventBatch, source: Numbers) -> Counter[bytes]:
        """The different audiences of some events, with how often each comes."""
        found: Counter[bytes] = Counter()
        for begin, host in self.listed(events, source):
            members = host.astype(WORD)
            found.update(members[first:last].tobytes() for first, last in pairwise(begin.tolist()))
        return found


def audiences_of(hosts: int, keys: Sequence[bytes], weights: Sequence[int]) -> Audiences:
    """The audiences that keys stand for."""
    start = np.cumsum([0, *(len(key) // WORD.itemsize for key in keys)]).astype(np.int64)
    host = np.frombuffer(b"".join(keys), WORD).astype(np.int64)
    return Audiences.joined(hosts, start, host, np.array(weights, np.int64))


def sets_of(hosts: Sequence[str], part: Numbers) -> Sets:
    """Hosts by their sets, none of which is empty."""
    rows: dict[int, list[str]] = {}
    for host, number in zip(hosts, part.tolist(), strict=True):
        rows.setdefault(number, []).append(host)
    return tuple(tuple(rows[number]) for number in sorted(rows))
