"""Delay as figures 8(a) to 8(c) of the PLEROMA article show it: data and pictures under out/.

(a) From a publisher to the subscribers of a fat-tree of real switches, for more and more subscriptions; events at a
constant rate. (b), (c) What one switch takes for a packet, from its port in to its port out, by the packet's size
and by the size of the table. The kernel stamps packets at both ends with its clock. For the first packets to an
address, the switches have to look into their tables; the decisions are cached for further ones.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import Result, rounded
from benchmarks.bridge import ENCODING, OUT, Bridge, bridge
from benchmarks.loads import TOP, Load, boxes_around, narrow, schema_of
from benchmarks.plot import line_plot
from benchmarks.spread import SUBSCRIBERS, Spread
from flowsieve.flow.entry import Flow, content_flow
from flowsieve.index.dz import Dz

PLACE = Path("out/delay")
SUBSCRIPTIONS = (1_000, 2_000, 4_000, 8_000, 16_000)
EVENTS, EVENT_RATE = 1_000, 500
SIZES = (72, 128, 256, 512, 768, 1_024, 1_280, 1_500)
TABLES = (200, 1_000, 5_000, 10_000, 20_000, 30_000, 45_000)
SMALL_TABLE, PACKETS, PACKET_RATE, ROUNDS = 200, 4_000, 10_000, 2
FIRST, AGAIN = "first packet to an address", "further packets"
Delays = dict[str, float]


def around_hotspots(subscriptions: int, events: int) -> Load:
    """Every host asks for what is near a hotspot of its own; events fall near hotspots of Zipf popularity."""
    rng = np.random.default_rng(1)
    spots = rng.uniform(100, 900, (SUBSCRIBERS, 2))
    popularity = 1 / np.arange(1, SUBSCRIBERS + 1)
    centres = rng.normal(spots[np.arange(subscriptions) % SUBSCRIBERS], 40)
    boxes = boxes_around(np.clip(centres, 0, TOP), rng.uniform(5, 20, (subscriptions, 2)))
    near = spots[rng.choice(SUBSCRIBERS, events, p=popularity / popularity.sum())]
    points = np.clip(rng.normal(near, 60), 0, TOP).round().astype(np.int64)
    return Load(schema_of(2), boxes, points)


def summed_up(delays: Sequence[float]) -> Delays:
    """Microseconds."""
    ordered = sorted(delays)
    return {
        "mean": rounded(statistics.fmean(ordered)),
        "median": rounded(ordered[len(ordered) // 2]),
        "p99": rounded(ordered[len(ordered) * 99 // 100]),
        "p10": rounded(ordered[len(ordered) // 10]),
        "packets": len(ordered),
    }


def random_table(entries: int, seed: int = 1) -> tuple[list[Flow], list[int]]:
    """Entries for distinct cells of 20 to 40 bits, none inside another, and an address in each."""
    draw = random.Random(seed)
    cells = draw.sample(range(1 << 20), entries)
    longer = [draw.randrange(21) for _ in cells]
    dz = [
        Dz(cell << more | draw.getrandbits(more), 20 + more) for cell, more in zip(cells, longer, strict=True)
    ]
    return [content_flow(ENCODING, each, (OUT,)) for each in dz], [ENCODING.address_of(each) for each in dz]


def processing(on: Bridge, entries: int, size: int) -> dict[str, list[float]]:
    """What the switch takes for packets to addresses of its entries, met for the first time and again."""
    flows, addresses = random_table(entries)
    wanted = (addresses * -(-PACKETS // entries))[:PACKETS]
    counts = {FIRST: min(entries, PACKETS), AGAIN: PACKETS}
    with on.table(flows), on.sending(on.frames(wanted, size)) as sender:
        return {name: on.switch_delays(sender, count, PACKET_RATE)[1] for name, count in counts.items()}


def in_turn(on: Bridge, kinds: Mapping[int, tuple[int, int]]) -> dict[int, dict[str, Delays]]:
    """Every kind of (entries, bytes) once, then every one again, and so on: a busy moment harms all alike."""
    taken: dict[int, dict[str, list[float]]] = {x: {FIRST: [], AGAIN: []} for x in kinds}
    for _ in range(ROUNDS):
        for x, (entries, size) in kinds.items():
            for name, delays in processing(on, entries, size).items():
                taken[x][name] += delays
    return {x: {name: summed_up(delays) for name, delays in row.items()} for x, row in taken.items()}


def end_to_end(load: Load) -> dict[int, dict[str, Delays]]:
    """From a publisher to all hosts that an event reaches, for more and more subscriptions."""
    found: dict[int, dict[str, Delays]] = {}
    with Spread.running(load) as spread:
        for count in SUBSCRIPTIONS:
            spread.subscribe(count)
            found[count] = {name: summed_up(spread.delays(EVENTS, EVENT_RATE)) for name in (FIRST, AGAIN)}
    return found


def run() -> Result:
    by_subscriptions = {
        "uniform": end_to_end(narrow(max(SUBSCRIPTIONS), EVENTS)),
        "hotspots": end_to_end(around_hotspots(max(SUBSCRIPTIONS), EVENTS)),
    }
    with bridge() as on:
        processing(on, SMALL_TABLE, SIZES[0])  # warms up
        by_size = in_turn(on, {size: (SMALL_TABLE, size) for size in SIZES})
        by_table = in_turn(on, {entries: (entries, SIZES[0]) for entries in TABLES})
    figures: dict[str, Any] = {
        "8a, end to end by subscriptions, us": by_subscriptions,
        "8b, one switch by bytes of a packet, us": by_size,
        "8c, one switch by entries of the table, us": by_table,
    }
    _write(figures, by_subscriptions, by_size, by_table)
    return Result("delay", {**figures, "largest against smallest, median": _growth(figures)})


def _growth(figures: dict[str, Any]) -> dict[str, float]:
    """How much the delay of further packets grows from the first row of a figure to the last."""
    a, *others = figures.items()
    series = {f"{a[0]}, {load}": rows for load, rows in a[1].items()} | dict(others)
    ends = {name: (rows[min(rows)], rows[max(rows)]) for name, rows in series.items()}
    return {
        name: rounded(last[AGAIN]["median"] / first[AGAIN]["median"]) for name, (first, last) in ends.items()
    }


def _write(
    figures: dict[str, Any],
    by_subscriptions: dict[str, dict[int, dict[str, Delays]]],
    by_size: dict[int, dict[str, Delays]],
    by_table: dict[int, dict[str, Delays]],
) -> None:
    """The data and the pictures."""
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / "delay.json").write_text(json.dumps(figures, indent=2) + "\n")
    pictures = {
        "8a.svg": line_plot(
            "End-to-end delay, median",
            "subscriptions",
            "microseconds",
            {
                f"{load}, {name}": [(count, row[name]["median"]) for count, row in rows.items()]
                for load, rows in by_subscriptions.items()
                for name in (FIRST, AGAIN)
            },
        ),
        "8b.svg": line_plot("One switch, median", "bytes of a packet", "microseconds", _lines(by_size)),
        "8c.svg": line_plot("One switch, median", "entries of the table", "microseconds", _lines(by_table)),
    }
    for name, picture in pictures.items():
        (PLACE / name).write_text(picture)


def _lines(rows: dict[int, dict[str, Delays]]) -> dict[str, list[tuple[float, float]]]:
    return {name: [(x, row[name]["median"]) for x, row in rows.items()] for name in (FIRST, AGAIN)}
