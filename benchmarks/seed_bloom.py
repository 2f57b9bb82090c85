"""The four plots of [Bloom]: copies of an event, what each optimisation saves, and what merging entries costs.

Subscriptions are drawn from a catalogue of boxes by Zipf popularity, so that many are identical, and many boxes cover
others. Each host of a fat-tree is interested in one of the hotspots that boxes and events are around; one publishes.
The fraction of false positives is that of the events that hosts get, in whatever number of copies. It is predicted as
well: from the bits that are set in packets, and from the entries on their ways. All is summed up over several draws:
where little is to be expected, one filter whose bits happen to be set often weighs much.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Goal, Result, at_least, at_most, rounded
from benchmarks.loads import TOP, Load, boxes_around, schema_of
from benchmarks.network import small_fat_tree
from benchmarks.seed_loads import Chart, write
from flowsieve.client.bloom_packets import bloom_packets
from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.control.bloom_controller import BloomController
from flowsieve.control.request import Op, Request
from flowsieve.flow.covering import Covering
from flowsieve.flow.deceived import deceived
from flowsieve.flow.filter_book import FilterBook
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import BloomLabels
from flowsieve.southbound.embedded.network import EmbeddedNetwork

HOSTS, CATALOGUE, HOTSPOTS, EVENTS, DIMENSIONS = 32, 3_200, 8, 400, 3
SUBSCRIPTIONS, SEEDS = (200, 800, 1_600), (1, 2, 3)
WIDTHS = (0.02, 0.05, 0.1, 0.2)  # half, of what an attribute may be
COPIES = {
    "1 copy": Shares(16, 1),
    "2 copies": Shares(16, 2),
    "4 copies": Shares(16, 4),
    "adaptive": Shares(16),
}
NONE, IDENTICAL, COVERED, MERGED = "none", "identical once", "and covered pruned", "and merged to a half"
LEFT = (0.7, 0.4, 0.2, 0.1)  # of the entries of the fullest switch
LEAST = 12  # entries of a switch for filters: one for each port has to be among them
WITHIN = 0.1  # of what is measured, where enough is


class Unrelated(Covering):
    """Filters of which none is taken to cover another."""

    def add(self, text: str, filter: Filter) -> None:
        if text not in self.filters:
            self.filters[text], self._above[text], self._below[text] = filter, frozenset(), set()
            self._keep_span(text, np.zeros(1))


@dataclass(frozen=True)
class Sent:
    """What became of the events."""

    wanted: int
    unwanted: int
    predicted: float
    over_links: int
    packets: int
    entries_max: int
    fixed_max: int

    @property
    def counts(self) -> tuple[int, int, float, int, int]:
        return self.wanted, self.unwanted, self.predicted, self.over_links, self.packets

    @property
    def fraction(self) -> float:
        """Of the events that hosts get, those that they do not want."""
        return self.unwanted / max(1, self.wanted + self.unwanted)


@dataclass(frozen=True)
class Interests:
    """Boxes that are subscribed to, by which host each, and events."""

    load: Load
    hosts: tuple[str, ...]
    publisher: str


def drawn(subscriptions: int, seed: int = 1) -> Interests:
    """Boxes of widely different sizes around hotspots; each host is interested in one hotspot, in some boxes more."""
    rng = np.random.default_rng([seed, 31])
    centres = rng.uniform(100, 900, (HOTSPOTS, DIMENSIONS))

    def around(spots: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(np.clip(rng.normal(centres[spots], 60), 0, TOP))

    spots = np.arange(CATALOGUE) % HOTSPOTS
    half = rng.choice(WIDTHS, (CATALOGUE, 1)) * TOP * rng.uniform(0.8, 1.2, (CATALOGUE, DIMENSIONS))
    boxes = boxes_around(around(spots), half)
    points = around(rng.integers(0, HOTSPOTS, EVENTS)).round().astype(np.int64)
    publisher, *others = small_fat_tree(HOSTS).hosts
    popularity = 1 / np.arange(1, CATALOGUE // HOTSPOTS + 1) ** 0.7
    chosen = rng.choice(len(popularity), subscriptions, p=popularity / popularity.sum())
    hosts = tuple(others[i % len(others)] for i in range(subscriptions))
    spot = np.array([others.index(host) % HOTSPOTS for host in hosts])
    return Interests(Load(schema_of(DIMENSIONS), boxes[chosen * HOTSPOTS + spot], points), hosts, publisher)


def book_of(labelling: BloomLabelling, pruned: str) -> FilterBook:
    """What tables and publishers know of filters with so much pruned."""
    if pruned == NONE:
        # Numbers alone would have the same bits in all draws, and these would not be independent of each other.
        number, names = count(), dict[int, str]()

        def name(each: Filter) -> str:
            return names.setdefault(id(each), f"{next(number)} {canonical(each)}")

        return FilterBook(labelling, name, Unrelated())
    return FilterBook(labelling, covering=Unrelated()) if pruned == IDENTICAL else FilterBook(labelling)


def played(asked: Interests, copies: Shares, pruned: str = COVERED, capacity: int | None = None) -> Sent:
    topology, load = small_fat_tree(HOSTS), asked.load
    hosts, network = list(topology.hosts), EmbeddedNetwork(topology)
    labelling = BloomLabelling.make(topology, BloomLabels.tuned(copies.filters))
    controller = BloomController(
        labelling, copies, load.schema, network, capacity, book=book_of(labelling, pruned)
    )
    controller.repair()
    filters, everything = load.filters(), Filter.parse("True", load.schema)
    requests = [Request(Op.ADVERTISE, "a", asked.publisher, everything)]
    requests += [
        Request(Op.SUBSCRIBE, f"s{i}", host, each)
        for i, (host, each) in enumerate(zip(asked.hosts, filters, strict=True))
    ]
    assert not controller.submit(requests).refused
    events = load.events(asked.publisher)
    sent = bloom_packets(events, controller.held, labelling.labels, copies)
    packets = sent.packets()
    by = [asked.publisher] * len(packets.rows)
    batch = network.deliver(by, packets.hi, packets.lo, packets.family, packets.sources)
    got = np.zeros((len(hosts), len(events)), np.bool_)
    got[batch.host, packets.rows[batch.event]] = True
    wanted = np.zeros_like(got)
    for host, each in zip(asked.hosts, filters, strict=True):
        wanted[hosts.index(host)] |= each.matches_batch(events)
    assert not (wanted & ~got).any(), "what is wanted was lost"
    expected = deceived(sent.sent(events), len(events), labelling, controller.held, controller.ports.entries)
    return Sent(
        int(wanted.sum()),
        int((got & ~wanted).sum()),
        float(expected.sum()),
        sum(network.link_packets.values()),
        len(packets.rows),
        max(map(len, controller.tables().values())),
        max(map(len, labelling.tables({}).values())),
    )


def totalled(line: dict[int, list[Sent]]) -> dict[int, Sent]:
    """Several draws as one: counts summed up, tables as in the fullest."""
    found = {}
    for x, some in line.items():
        entries, fixed = max(sent.entries_max for sent in some), some[0].fixed_max
        sums = [sum(figure) for figure in zip(*(sent.counts for sent in some), strict=True)]
        found[x] = Sent(int(sums[0]), int(sums[1]), sums[2], int(sums[3]), int(sums[4]), entries, fixed)
    return found


def fractions(line: dict[int, Sent]) -> dict[int, float]:
    return {x: rounded(sent.fraction) for x, sent in line.items()}


def traffic(line: dict[int, Sent]) -> dict[int, float]:
    """Packets over links per event."""
    return {x: rounded(sent.over_links / (EVENTS * len(SEEDS))) for x, sent in line.items()}


def predictions(line: dict[int, Sent]) -> dict[int, float]:
    """The fractions that were to be expected."""
    return {x: rounded(sent.predicted / max(1, sent.wanted + sent.predicted)) for x, sent in line.items()}


def by_copies() -> dict[str, dict[int, Sent]]:
    return {
        name: totalled({n: [played(drawn(n, seed), copies) for seed in SEEDS] for n in SUBSCRIPTIONS})
        for name, copies in COPIES.items()
    }


def by_optimisation() -> dict[str, dict[int, Sent]]:
    lines = {
        name: totalled(
            {n: [played(drawn(n, seed), Shares(16), name) for seed in SEEDS] for n in SUBSCRIPTIONS}
        )
        for name in (NONE, IDENTICAL, COVERED)
    }
    merged = {n: left(whole, 0.5) for n, whole in lines[COVERED].items()}
    lines[MERGED] = totalled(
        {
            n: [played(drawn(n, seed), Shares(16), COVERED, capacity) for seed in SEEDS]
            for n, capacity in merged.items()
        }
    )
    return lines


def left(sent: Sent, share: float) -> int:
    """A capacity that leaves such a share of the entries that filters have at the fullest switch."""
    return sent.fixed_max + 1 + max(LEAST, round(share * (sent.entries_max - sent.fixed_max)))


def by_merging(optimised: dict[str, dict[int, Sent]]) -> dict[str, dict[int, Sent]]:
    """What is left of the entries in percent, and what that costs, after pruning identical or also covered ones."""
    lines, most = dict[str, dict[int, Sent]](), max(SUBSCRIPTIONS)
    for name in (IDENTICAL, COVERED):
        whole = optimised[name][most]
        fewer = {
            round(100 * share): [
                played(drawn(most, seed), Shares(16), name, left(whole, share)) for seed in SEEDS
            ]
            for share in LEFT
        }
        lines[name] = {100: whole, **totalled(fewer)}
    return lines


def charts(lines: dict[str, dict[str, dict[int, float]]]) -> dict[str, Chart]:
    across, number = "subscriptions", "a constant number against as many as it takes"

    most, left_over = f"{max(SUBSCRIPTIONS)} subscriptions", "entries left at the fullest switch, %"

    def chart(name: str, title: str, about: str, across: str, *upright: str) -> Chart:
        return Chart(title, about, across, lines[name], *upright, percent=False)

    return {
        "copies": chart("copies", "Copies of an event: false positives", number, across),
        "traffic": chart(
            "traffic", "Copies of an event: traffic", number, across, "packets over links per event"
        ),
        "entries": chart("entries", "Optimisations: entries", "of the fullest switch", across, "entries"),
        "optimisations": chart("optimisations", "Optimisations: false positives", "adaptive copies", across),
        "merging": chart("merging", "Merging entries after pruning: false positives", most, left_over),
        "merging_traffic": chart(
            "merging_traffic",
            "Merging entries after pruning: traffic",
            most,
            left_over,
            "packets over links per event",
        ),
    }


def run() -> Result:
    copies, optimised = by_copies(), by_optimisation()
    most = max(SUBSCRIPTIONS)
    merged = by_merging(optimised)
    lines_unmerged = [*copies.values(), *(optimised[name] for name in (NONE, IDENTICAL, COVERED))]
    unmerged = [sent for line in lines_unmerged for sent in line.values()]
    predicted = sum(sent.predicted for sent in unmerged) / sum(sent.unwanted for sent in unmerged)
    lines: dict[str, dict[str, dict[int, float]]] = {
        "copies": {name: fractions(line) for name, line in copies.items()},
        "traffic": {name: traffic(line) for name, line in copies.items()},
        "entries": {
            name: {x: sent.entries_max for x, sent in line.items()} for name, line in optimised.items()
        },
        "optimisations": {name: fractions(line) for name, line in optimised.items()},
        "merging": {name: fractions(line) for name, line in merged.items()},
        "merging_traffic": {name: traffic(line) for name, line in merged.items()},
        "predicted: copies": {name: predictions(line) for name, line in copies.items()},
        "predicted: optimisations": {name: predictions(line) for name, line in optimised.items()},
        "predicted: merging": {name: predictions(line) for name, line in merged.items()},
    }
    figures: dict[str, Any] = {
        "scale": f"{HOSTS} hosts of a fat-tree, {EVENTS} events of one publisher, up to {most} subscriptions from a "
        f"catalogue of {CATALOGUE} boxes in {DIMENSIONS} attributes; 16 filters a packet, 9 of 224 bits each",
        "lines": lines,
        "predicted_to_measured_without_merging": rounded(predicted),
        "measured_false_positives_without_merging": sum(sent.unwanted for sent in unmerged),
    }
    write("seed_bloom", figures, charts(lines))
    adaptive, constant = copies["adaptive"][most], copies["1 copy"][most]
    goals: dict[str, Goal] = {
        "false positives of adaptive copies to those of one": at_most(
            adaptive.unwanted / max(1, constant.unwanted), 1.0
        ),
        "entries of the fullest switch with covered ones pruned to none": at_most(
            optimised[COVERED][most].entries_max / optimised[NONE][most].entries_max, 1.0
        ),
        "false positives predicted to measured, at least": at_least(predicted, 1 - WITHIN),
        "false positives predicted to measured, at most": at_most(predicted, 1 + WITHIN),
    }
    return Result("seed_bloom", figures, goals=goals)
