"""Bytes that real networks carry: content flows against exact filtering and a NATS broker, same events and payload.

Eight hosts each want a twentieth of the events, by a range of two attributes. Counted are the bytes into their
interfaces, headers and all, per event that a host wanted; and the bytes over all links between the switches of a
fat-tree. Exact filtering is what the same packets come to if each takes just the links of the tree towards hosts that
want it. The broker's clients are on a network of their own (see `nats`): in one arm all get every event and filter for
themselves, in the other the publisher has a subject for each of 4 × 4 parts of the space and they take those that they
need. Counts hardly differ from run to run, so each set of ranges is played once.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import nats
from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.frames import HEADERS
from benchmarks.loads import TOP, Load, schema_of
from benchmarks.spread import Spread
from flowsieve.control.state import Settings

SUBSCRIBERS, SHARE, BUDGET = 8, 0.05, 64
EVENTS, RATE, PAYLOAD = 10_000, 2_500, 100  # events, a second, bytes
SIDE = 4  # buckets along each attribute
SEEDS = (1, 2, 3)
EVERYTHING = "events"


@dataclass(frozen=True)
class Carried:
    """Bytes of one set of ranges."""

    wanted: int  # copies: pairs of an event and a host that wants it
    lost: int
    into_hosts: int
    over_links: int
    exact_into_hosts: int
    exact_over_links: int
    broadcast: int | None  # into hosts, by the broker
    buckets: int | None


def twentieths(seed: int) -> Load:
    """Ranges of equal volume and various shapes, and events all over the space."""
    rng = np.random.default_rng(seed)
    wide = np.sqrt(SHARE) * np.exp(rng.uniform(-0.5, 0.5, SUBSCRIBERS))
    sides = np.stack((wide, SHARE / wide), axis=1)
    low = np.round(rng.uniform(0, 1 - sides) * (TOP + 1))
    high = low + np.round(sides * (TOP + 1)) - 1
    boxes = np.stack((low, np.minimum(high, TOP)), axis=2).astype(np.int64)
    return Load(schema_of(2), boxes, rng.integers(0, TOP + 1, (EVENTS, 2)))


def wanted_by(load: Load) -> NDArray[np.bool_]:
    """A row per range: which events lie in it."""
    points = load.points[None, :, :]
    inside = (points >= load.boxes[:, None, :, 0]) & (points <= load.boxes[:, None, :, 1])
    return np.asarray(inside.all(axis=2))


def played(load: Load) -> Carried:
    wanted = wanted_by(load)
    size = HEADERS + PAYLOAD
    with Spread.running(load, Settings(BUDGET), size) as spread:
        spread.subscribe(SUBSCRIBERS)
        hosts, links = spread.host_bytes(), spread.link_bytes()
        came = spread.times(EVENTS, RATE)[1 : 1 + SUBSCRIBERS]
        into = sum(spread.host_bytes()[1 : 1 + SUBSCRIBERS]) - sum(hosts[1 : 1 + SUBSCRIBERS])
        over = spread.link_bytes() - links
        exact_links = sum(spread.links_to(1 + np.flatnonzero(column)) for column in wanted.T)
    arrived = np.zeros_like(wanted)
    for row, numbers in zip(arrived, came, strict=True):
        row[list(numbers)] = True
    broadcast = buckets = None
    if nats.is_installed():
        broadcast, buckets = by_broker(load)
    copies = int(wanted.sum())
    lost = int((wanted & ~arrived).sum())
    return Carried(copies, lost, into, over, copies * size, exact_links * size, broadcast, buckets)


def by_broker(load: Load) -> tuple[int, int]:
    """Bytes into the hosts with one subject for all events, and with one for each bucket."""
    payload = bytes(PAYLOAD)
    with nats.broker([[EVERYTHING]] * SUBSCRIBERS) as broker:
        broadcast = broker.bytes_of([EVERYTHING] * EVENTS, payload, RATE, SUBSCRIBERS * EVENTS)
    width = (TOP + 1) // SIDE
    subjects = [f"{EVERYTHING}.{x}.{y}" for x, y in (load.points // width).tolist()]
    touched = [
        [
            f"{EVERYTHING}.{x}.{y}"
            for x in range(box[0][0] // width, box[0][1] // width + 1)
            for y in range(box[1][0] // width, box[1][1] // width + 1)
        ]
        for box in load.boxes.tolist()
    ]
    copies = sum(subject in some for some in map(set, touched) for subject in subjects)
    with nats.broker(touched) as broker:
        buckets = broker.bytes_of(subjects, payload, RATE, copies)
    return broadcast, buckets


def run() -> Result:
    sets = [played(twentieths(seed)) for seed in SEEDS]

    def median(figure: str, against: str) -> float:
        return float(statistics.median(getattr(each, figure) / getattr(each, against) for each in sets))

    hosts = median("into_hosts", "exact_into_hosts")
    links = median("over_links", "exact_over_links")
    goals: dict[str, Goal] = {
        "bytes into hosts, against exact filtering": at_most(hosts, 1.15),
        "bytes over links, against exact filtering": at_most(links, 1.15),
        "wanted copies lost": at_most(sum(each.lost for each in sets), 0),
    }
    peers: dict[str, Any] = {"exact": {"bytes_per_wanted_copy": HEADERS + PAYLOAD}}
    if nats.is_installed():
        goals["bytes into hosts, against NATS broadcast"] = at_most(median("into_hosts", "broadcast"), 0.1)
        goals["bytes into hosts, against NATS with 16 subjects"] = at_most(median("into_hosts", "buckets"), 1)
        for name in ("broadcast", "buckets"):
            peers[f"NATS, {name}"] = {"bytes_per_wanted_copy": rounded(median(name, "wanted"))}
    else:
        peers["NATS"] = "not measured: there is no nats-server; scripts/system-packages bench installs it"
    return Result(
        "carried",
        {
            "bytes_per_wanted_copy": rounded(median("into_hosts", "wanted")),
            "wanted_copies": [each.wanted for each in sets],
            "events": EVENTS,
            "events_per_second": RATE,
            "payload_bytes": PAYLOAD,
            "dz_per_filter": BUDGET,
        },
        peers,
        goals,
    )
