"""One table size spent in two ways: so many dz for each subscription, or wherever they save most in the whole table.

5,000 subscriptions of 100 hosts at one switch, 23 bits, a level-wise plan. Per subscription: covers of 8 or of 32 dz;
the table that they make has N entries. Whole table: covers as fine as a bounded table takes them by default, cut down
to a capacity of N (`flow.capacity`). Both know the same sample of 30,000 events and are judged on 30,000 later ones:
the rate is the share of copies into hosts that none of the host's subscriptions wants. A host's subscriptions are
alike, as in seed 001, where each host has a hotspot of its own; beside that, each workload is also spread at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Goal, Result, at_most, rounded
from benchmarks.workloads import REAL, Judged, zipfsel
from flowsieve.client.publisher import packets_of
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import BOUNDED_BUDGET, ControlState, Settings
from flowsieve.header.tag import POOLS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.topology import Topology
from flowsieve.pipeline.planning.methods import Method, make, on_sample
from flowsieve.southbound.embedded import EmbeddedNetwork

BITS, HOSTS, METHOD = 23, 100, "lw"
BUDGETS = (8, 32)
SEEDS = (11, 12, 13, 14, 15)
WORKLOADS = ("PADRES", "METR-LA")
TAG = POOLS["ipv4"][0]
NAMES = tuple(f"h{i:03d}" for i in range(HOSTS))
STAR = Topology.make([], dict.fromkeys((*NAMES, "publisher"), "s"), ["s"])


@dataclass(frozen=True)
class Copies:
    """What a table sends into hosts."""

    entries: int
    sent: int
    unwanted: int
    missed: int

    @property
    def rate(self) -> float:
        return self.unwanted / self.sent


@dataclass(frozen=True, eq=False)
class Bench:
    """A workload under a plan, with its subscriptions spread over hosts."""

    load: Judged
    plan: IndexPlan
    sample: EventSample
    owner: NDArray[np.int64]  # the host of each subscription
    wanted: NDArray[np.bool_]  # a row per host: which of the later events it wants

    @classmethod
    def of(cls, load: Judged, plan: IndexPlan, owner: NDArray[np.int64]) -> Bench:
        wanted = np.zeros((HOSTS, len(load.later)), np.bool_)
        for host, wish in zip(owner.tolist(), load.filters, strict=True):
            wanted[host] |= wish.matches_batch(load.later)
        return cls(load, plan, EventSample.of(plan, load.events), owner, wanted)

    def copies(self, budget: int, capacity: int | None = None) -> Copies:
        """What later events come to, with so many dz a subscription and so many entries."""
        network = EmbeddedNetwork(STAR, capacity)
        settings = Settings(budget, capacity, sample=self.sample)
        controller = Controller(ControlState(STAR, self.plan, settings=settings), network, TAG)
        everything = Filter.parse("True", self.load.schema)
        requests = [Request(Op.ADVERTISE, "all", "publisher", everything)]
        requests += [
            Request(Op.SUBSCRIBE, f"s{i}", NAMES[host], wish)
            for i, (host, wish) in enumerate(zip(self.owner.tolist(), self.load.filters, strict=True))
        ]
        assert not controller.submit(requests).refused
        packets = packets_of(self.load.later, self.plan, TAG)
        at = list(STAR.hosts)
        batch = network.deliver(
            np.full(len(packets.hi), at.index("publisher")), packets.hi, packets.lo, TAG.group.family
        )
        got = np.zeros((len(at), len(self.load.later)), np.bool_)
        got[batch.host, packets.rows[batch.event]] = True
        got = got[[at.index(name) for name in NAMES]]
        unwanted, missed = int((got & ~self.wanted).sum()), int((self.wanted & ~got).sum())
        return Copies(len(network.read("s")), int(got.sum()), unwanted, missed)


def alike(plan: IndexPlan, filters: Sequence[Filter]) -> NDArray[np.int64]:
    """Hosts for subscriptions, so that those of a host begin near each other in the space."""
    covers = [plan.cover(wish, BUDGETS[0]) for wish in filters]
    first = [min(zip(cover.hi.tolist(), cover.length.tolist(), strict=True)) for cover in covers]
    owner = np.empty(len(filters), np.int64)
    owner[sorted(range(len(filters)), key=first.__getitem__)] = (
        np.arange(len(filters)) * HOSTS // len(filters)
    )
    return owner


def compared(bench: Bench) -> dict[int, tuple[Copies, Copies]]:
    """By budget: a table of per-subscription budgets, and the whole-table cut of the same capacity."""
    found = {}
    for budget in BUDGETS:
        single = bench.copies(budget)
        found[budget] = single, bench.copies(BOUNDED_BUDGET, single.entries)
    return found


def run() -> Result:
    figures: dict[str, Any] = {
        "settings": f"{HOSTS} hosts, {BITS} bits, {METHOD}, fine covers of {BOUNDED_BUDGET} dz"
    }
    goals: dict[str, Goal] = {}
    missed = 0
    loads = {"zipfsel": (zipfsel, SEEDS)} | {
        name: (REAL[name], SEEDS[:1]) for name in WORKLOADS if name in REAL
    }
    for name, (draw, seeds) in loads.items():
        rows: dict[tuple[str, int], list[tuple[Copies, Copies]]] = {}
        for seed in seeds:
            load = draw(seed)
            plan = make(Method.parse(METHOD), on_sample(load.schema, load.filters, BITS, 0, load.events))
            spreads = {"alike": alike(plan, load.filters)}
            if seed == seeds[0]:
                spreads["random"] = np.random.default_rng(seed).permutation(len(load.filters)) % HOSTS
            for spread, owner in spreads.items():
                for budget, pair in compared(Bench.of(load, plan, owner)).items():
                    rows.setdefault((spread, budget), []).append(pair)
        for (spread, budget), pairs in rows.items():
            singles, cuts = zip(*pairs, strict=True)
            missed += sum(copies.missed for pair in pairs for copies in pair)
            assert all(cut.entries <= single.entries for single, cut in pairs)
            rate, cut_rate = (float(np.mean([copies.rate for copies in some])) for some in (singles, cuts))
            what = f"{name}, {spread}, {budget} dz"
            figures[what] = {
                "entries": rounded(float(np.mean([copies.entries for copies in singles]))),
                "rate_per_subscription": rounded(rate),
                "rate_of_the_cut": rounded(cut_rate),
                "ratio": rounded(cut_rate / rate),
                "ratio_by_seed": [rounded(cut.rate / single.rate) for single, cut in pairs],
            }
            if spread == "alike":
                goals[f"{what}: the cut to per-subscription budgets"] = at_most(cut_rate / rate, 0.6)
    goals["wanted copies missed"] = at_most(missed, 0)
    return Result("table_cut", figures, goals=goals)
