"""The guard at the edge: the entries that it takes, and packets a second through one real switch with and without it.

All arms have the same content flows and forward the same packets. One takes everything in; the others take in at the
sender's port what is from its own address and within sixteen prefixes that it has advertised, one of them through a
meter that never limits. Rates are counted by the far host's interface, as in `forwarding`.
"""

from __future__ import annotations

import statistics

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.bridge import ENCODING, FROM, SWITCH, TOPOLOGY, bridge
from benchmarks.forwarding import content_table, flood, matching_addresses, warm_up
from benchmarks.loads import narrow
from benchmarks.wire import decisions
from flowsieve.flow.guard import MOST_PREFIXES, Guard, GuardSettings, guard_of, known_sources
from flowsieve.flow.punt import MAX_RATE
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet

SIZE, ADDRESSES, ROUNDS = 126, 5_000, 3
GUARDED, UNMETERED, OPEN = "guarded", "guarded without a meter", "open"


def advertised() -> DzSet:
    """Sixteen cells that no smaller number says, and that hold all events but few."""
    return DzSet([Dz(1, n) for n in range(1, MOST_PREFIXES + 1)])


def guards() -> dict[str, Guard]:
    sources = known_sources(TOPOLOGY, ENCODING.family)

    def guarded(rate: int) -> Guard:
        settings = GuardSettings(MOST_PREFIXES, rate, sources)
        return guard_of(TOPOLOGY, SWITCH, ENCODING, {FROM: advertised()}, settings)

    return {GUARDED: guarded(MAX_RATE), UNMETERED: guarded(0), OPEN: Guard(ENCODING.tag.group)}


def run() -> Result:
    load = narrow(800, 120_000)
    flows = content_table(load)
    admitted = advertised()
    mine = [
        address
        for address in matching_addresses(load, flows)
        if (dz := ENCODING.dz_at(address.to_bytes(16), MOST_PREFIXES)) is not None and admitted.covers(dz)
    ][:ADDRESSES]
    arms = guards()
    rates: dict[str, list[float]] = {name: [] for name in arms}
    work: dict[str, list[float]] = {name: [] for name in arms}
    cached: dict[str, int] = {}
    with bridge() as on, on.sending(on.frames(mine, SIZE)) as sender:
        for round_number in range(ROUNDS + 1):
            for name, guard in arms.items():
                with on.table(flows, guard=guard):
                    warm_up(on, sender, len(mine))
                    cached[name] = decisions(on.lab)
                    rate, core_us = flood(on, sender)
                if round_number:  # the first round warms up
                    rates[name].append(rate)
                    work[name].append(core_us)

    def ratio(of: dict[str, list[float]]) -> float:
        return float(statistics.median(a / b for a, b in zip(of[GUARDED], of[OPEN], strict=True)))

    figures = {
        name: {
            "entries": arms[name].entries,
            "packets_a_second": rounded(statistics.median(rates[name])),
            "core_us": rounded(statistics.median(work[name])),
            "decisions": cached[name],
        }
        for name in arms
    }
    return Result(
        "guard",
        {"flows": len(flows), "addresses": len(mine), "rounds": ROUNDS, **figures[GUARDED]},
        {name: figures[name] for name in (UNMETERED, OPEN)},
        {
            "packets a second at saturation, against an open switch": at_least(ratio(rates), 0.9),
            "work of the switch on each packet, against an open switch": at_most(ratio(work), 1.1),
        },
    )
