"""Figures 8(g) to 8(l) of [PLEROMA], simulated: a control plane of more configurators than this machine has cores.

What a part of a request takes is measured first, on real tables, in processor seconds; so are the visits, the flow
operations, and what it takes to build a partition's tables anew. Then requests drawn from those measured arrive at
configurators that exist in the simulation alone, under the real assignment and the real monitor. Each configurator
serves its parts in the order in which they came, and a request is answered when all of its parts are. A migration
stalls its partition while its tables are built anew, and keeps the receiver busy for as long. Neither the switches nor
the way to them nor the dispatcher take time here.

64 subscribers on a fat-tree of 20 switches, 1,000 active subscriptions, of which one comes and one goes in turn.
Without balancing partitions are dealt out at random; with it, by the load of other requests, and the monitor watches.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Goal, Result, at_least, rounded
from benchmarks.loads import Load, narrow, zipf
from benchmarks.network import dz_of, small_fat_tree
from benchmarks.seed_loads import Chart, write
from flowsieve.control.partitions.assignment import at_random, by_load
from flowsieve.control.partitions.division import Division
from flowsieve.control.partitions.monitor import Monitor
from flowsieve.flow.capacity.fitted import FittedTables
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.tree import TreeMap

LOADS: dict[str, Callable[..., Load]] = {"zipf": zipf, "uniform": narrow}
PARTITIONS, USUAL_PARTITIONS = (4, 16, 64, 256), 64
CONFIGURATORS, USUAL_CONFIGURATORS = (1, 2, 4, 8), 4
ACTIVE, MEASURED, ADVERTISERS, WARM = 1_000, 8_000, 16, 20
REQUESTS, DRAWS, MANY_DRAWS = 200_000, 5, 20
OBSERVED_EVERY = 0.1  # seconds
BEYOND = 1.2  # times what all configurators can serve: what is offered to find their throughput
USE = 0.8  # of the saturation without balancing
STEADY = (
    0.65  # of what the usual configurators can serve with the usual partitions: the rate for all partitions
)
SLICED, SLICES, REPEATS = 5_000, (1, 2, 5, 10, 50, 100, 500), 3
Numbers = NDArray[np.int64]
Times = NDArray[np.float64]


# What requests take, measured.


class Plane:
    """The tables of all partitions, as one configurator that owns them all would have them."""

    def __init__(self, partitions: int, seed: int = 1) -> None:
        topology = small_fat_tree()
        self.division = Division.even(partitions)
        self.tables = FittedTables(Compiler(topology, TreeMap.spread(topology, partitions)))
        self.random, self.hosts = random.Random(seed), list(topology.hosts)
        self.operations = 0
        for host in self.random.sample(self.hosts, ADVERTISERS):
            self.serve(host, Side.PUBLISHER, DzSet.of(""), adding=True)

    def serve(self, host: str, side: Side, dz: DzSet, *, adding: bool) -> list[tuple[Dz, float]]:
        """Serve a request part by part; where each is, and what it took."""
        return [
            (partition, self.serve_slice([(Interest("", host, None, part), side)], adding=adding))
            for partition, part in self.division.cut(dz)
        ]

    def serve_slice(self, parts: Sequence[tuple[Interest, Side]], *, adding: bool) -> float:
        """Serve parts in one partition as one net difference; the processor seconds that it took."""
        start = time.thread_time()
        for interest, side in parts:
            self.tables.change(interest, side, adding=adding)
        update = self.tables.compiler.update()  # as configurators have it where tables have room for all
        spent = time.thread_time() - start
        self.operations += len(update)
        return spent

    def entries(self) -> int:
        compiler = self.tables.compiler
        return sum(compiler.entries(switch) for switch in compiler.topology.switches)


@dataclass(frozen=True)
class Measured:
    """Requests by their parts: request i has those from `first[i]` on, each in a partition and of some seconds."""

    partitions: tuple[Dz, ...]
    first: Numbers
    partition: Numbers
    seconds: Times
    building: Times  # a partition's tables anew
    figures: dict[str, float]

    @classmethod
    def of(cls, dz: Sequence[DzSet], partitions: int) -> Measured:
        plane = Plane(partitions)
        number = {each: i for i, each in enumerate(plane.division.partitions)}
        there: list[tuple[str, DzSet]] = []
        first, partition, seconds = [0], list[int](), list[float]()
        cutting = visits = operations = 0.0
        for i in range(-ACTIVE - WARM, MEASURED):
            if i == 0:
                first, partition, seconds, cutting = [0], [], [], 0.0
                visits, operations = plane.tables.compiler.visits, plane.operations
            adding = i < -WARM or i % 2 == 0
            if adding:
                host, wanted = plane.random.choice(plane.hosts), dz[i + ACTIVE + WARM]
                there.append((host, wanted))
            else:
                host, wanted = there.pop(plane.random.randrange(len(there)))
            start = time.thread_time()
            plane.division.cut(wanted)
            cutting += time.thread_time() - start
            for where, spent in plane.serve(host, Side.SUBSCRIBER, wanted, adding=adding):
                partition.append(number[where])
                seconds.append(spent)
            first.append(len(partition))
        figures = {
            "parts": len(partition) / MEASURED,
            "visits": (plane.tables.compiler.visits - visits) / MEASURED,
            "operations": (plane.operations - operations) / MEASURED,
            "microseconds": 1e6 * sum(seconds) / MEASURED,
            "microseconds to cut": 1e6 * cutting / MEASURED,
        }
        return cls(
            plane.division.partitions,
            np.array(first[:-1]),
            np.array(partition),
            np.array(seconds),
            _built_anew(partitions, there),
            {what: rounded(value) for what, value in figures.items()},
        )

    def history(self) -> dict[Dz, float]:
        """How many of the first half of the requests each partition had a part of: what a dispatcher knows."""
        counts = np.bincount(self.partition[: self.first[MEASURED // 2]], minlength=len(self.partitions))
        return dict(zip(self.partitions, counts.astype(float).tolist(), strict=True))


def _built_anew(partitions: int, there: Sequence[tuple[str, DzSet]]) -> Times:
    """By partition, what it takes a configurator to take over what is in force there."""
    plane = Plane(partitions)
    parts: dict[Dz, list[tuple[Interest, Side]]] = {dz: [] for dz in plane.division.partitions}
    for host, wanted in there:
        for partition, part in plane.division.cut(wanted):
            parts[partition].append((Interest("", host, None, part), Side.SUBSCRIBER))
    found = []
    for own in parts.values():
        start = time.thread_time()
        plane.tables.add(own)
        plane.tables.compiler.update()
        found.append(time.thread_time() - start)
    return np.array(found)


# What a control plane makes of them, simulated.


@dataclass(frozen=True)
class Trace:
    """Requests that arrive: drawn from the second half of those measured, which no assignment has seen."""

    measured: Measured
    first: Numbers
    partition: Numbers
    seconds: Times

    @classmethod
    def drawn(cls, measured: Measured, n: int = REQUESTS, seed: int = 3) -> Trace:
        chosen = np.random.default_rng(seed).integers(MEASURED // 2, MEASURED, n)
        ends = np.append(measured.first[1:], len(measured.partition))
        sizes = (ends - measured.first)[chosen]
        first = np.cumsum(sizes) - sizes
        parts = np.repeat(measured.first[chosen] - first, sizes) + np.arange(sizes.sum())
        return cls(measured, first, measured.partition[parts], measured.seconds[parts])

    def __len__(self) -> int:
        return len(self.first)

    def capacity(self, configurators: int) -> float:
        """Requests per second that so many could serve if each had the same work."""
        return float(configurators * len(self) / self.seconds.sum())

    def saturation(self, owners: Mapping[Dz, str]) -> float:
        """Requests per second at which the first configurator cannot keep up, if nothing moves."""
        owner, names = _numbered(self.measured, owners)
        work = np.bincount(owner[self.partition], self.seconds, minlength=len(names))
        return float(len(self) / work.max())

    def arrivals(self, rate: float, kind: str) -> Times:
        n = len(self)
        if kind == "uniform":
            return np.arange(n) / rate
        return np.cumsum(np.random.default_rng(5).exponential(1 / rate, n))


def _numbered(measured: Measured, owners: Mapping[Dz, str]) -> tuple[Numbers, list[str]]:
    names = sorted(set(owners.values()))
    return np.array([names.index(owners[dz]) for dz in measured.partitions]), names


@dataclass(frozen=True)
class Played:
    """How long each request took to be answered, how many a second were, and what moved."""

    latency: Times
    throughput: float
    migrations: int

    def to_json(self) -> dict[str, float]:
        return {
            "mean_ms": rounded(1e3 * float(self.latency.mean())),
            "p99_ms": rounded(1e3 * float(np.quantile(self.latency, 0.99))),
            "migrations": self.migrations,
        }


class Simulation:
    """Configurators that work off their queues up to each observation, and then perhaps hand one partition over.

    A configurator serves in the order in which parts are ready: that of their arrival, if their partition is not
    stalled.
    """

    def __init__(self, trace: Trace, arrivals: Times, owners: Mapping[Dz, str]) -> None:
        self.trace, self.arrivals = trace, arrivals
        sizes = np.diff(np.append(trace.first, len(trace.partition)))
        self.ready = np.repeat(arrivals, sizes)
        self.owner, self.names = _numbered(trace.measured, owners)
        self.finished = np.zeros(len(trace.partition))
        self.waiting = [np.zeros(0, np.int64) for _ in self.names]
        self.free = [0.0] * len(self.names)
        self.serving = [-1] * len(self.names)  # the partition of what was begun last
        self.stalled = np.zeros(len(self.owner))

    def play(self, monitor: Monitor | None) -> Played:
        came, now, migrations = 0, 0.0, 0
        step = OBSERVED_EVERY if monitor else np.inf
        while came < len(self.ready) or any(map(len, self.waiting)):
            since, now = now, now + step
            until = int(np.searchsorted(self.ready, now))
            self._take_in(np.arange(came, until), since)
            came = until
            for at in range(len(self.names)):
                self._work_off(at, now)
            if monitor and (migration := monitor.observe(now, self._queues())):
                self._move(migration.dz, migration.receiver, now)
                migrations += 1
        answered = np.maximum.reduceat(self.finished, self.trace.first)
        return Played(answered - self.arrivals, len(self.trace) / float(answered.max()), migrations)

    def _take_in(self, new: Numbers, since: float) -> None:
        """What has arrived since the last observation goes to the owners of its partitions."""
        owner = self.owner[self.trace.partition[new]]
        for at in range(len(self.names)):
            self.waiting[at] = np.concatenate((self.waiting[at], new[owner == at]))
            if self.stalled.max() > since:
                self._line_up(at)

    def _line_up(self, at: int) -> None:
        parts = np.sort(self.waiting[at])
        ready = np.maximum(self.ready[parts], self.stalled[self.trace.partition[parts]])
        self.waiting[at] = parts[np.argsort(ready, kind="stable")]

    def _work_off(self, at: int, now: float) -> None:
        """Begin all that can be before a time."""
        queue = self.waiting[at]
        done = 0
        while done < len(queue):
            some = queue[done : done + 8192]
            seconds, partition = self.trace.seconds[some], self.trace.partition[some]
            before = np.cumsum(seconds) - seconds
            ready = np.maximum(self.ready[some], self.stalled[partition])
            start = np.maximum.accumulate(np.maximum(ready - before, self.free[at])) + before
            begun = int(np.searchsorted(start, now))
            if begun:
                self.finished[some[:begun]] = start[:begun] + seconds[:begun]
                self.free[at] = float(start[begun - 1] + seconds[begun - 1])
                self.serving[at] = int(partition[begun - 1])
            done += begun
            if begun < len(some):
                break
        self.waiting[at] = queue[done:]

    def _queues(self) -> dict[str, dict[Dz, int]]:
        found: dict[str, dict[Dz, int]] = {name: {} for name in self.names}
        counts = sum(
            np.bincount(self.trace.partition[own], minlength=len(self.owner)) for own in self.waiting
        )
        assert not isinstance(counts, int)
        for dz, owner, count in zip(
            self.trace.measured.partitions, self.owner.tolist(), counts.tolist(), strict=True
        ):
            found[self.names[owner]][dz] = count
        return found

    def _move(self, dz: Dz, receiver: str, now: float) -> None:
        """What is being served is finished first; then the receiver builds the tables, and serves what waits."""
        moved, to = self.trace.measured.partitions.index(dz), self.names.index(receiver)
        giver = int(self.owner[moved])
        begin = max(now, self.free[giver]) if self.serving[giver] == moved else now
        building = float(self.trace.measured.building[moved])
        self.owner[moved] = to
        self.free[to] = max(self.free[to], begin) + building
        self.stalled[moved] = self.free[to]
        parts = self.waiting[giver]
        its = self.trace.partition[parts] == moved
        self.waiting[giver] = parts[~its]
        self.waiting[to] = np.concatenate((self.waiting[to], parts[its]))
        self._line_up(to)


def named(configurators: int) -> list[str]:
    return [f"c{i}" for i in range(configurators)]


def dealt(measured: Measured, configurators: int, draw: int) -> dict[Dz, str]:
    return at_random(measured.partitions, named(configurators), random.Random(draw))


def balanced(measured: Measured, configurators: int) -> dict[Dz, str]:
    return by_load(measured.history(), named(configurators))


def played(trace: Trace, rate: float, kind: str, owners: Mapping[Dz, str], watched: bool) -> Played:
    return Simulation(trace, trace.arrivals(rate, kind), owners).play(Monitor() if watched else None)


def mean_of(many: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {what: rounded(float(np.mean([each[what] for each in many]))) for what in many[0]}


# The figures.


def throughputs(trace: Trace) -> dict[str, dict[int, float]]:
    """8(g): requests a second when more arrive than can be served, until all are."""
    found: dict[str, dict[int, float]] = {"without": {}, "monitor alone": {}, "with": {}}
    for n in CONFIGURATORS:
        rate = BEYOND * trace.capacity(n)
        random_ones = [dealt(trace.measured, n, draw) for draw in range(DRAWS)]
        still = [played(trace, rate, "poisson", owners, False).throughput for owners in random_ones]
        moving = played(trace, rate, "poisson", random_ones[0], True).throughput
        found["without"][n] = rounded(float(np.mean(still)))
        found["monitor alone"][n] = rounded(moving)
        found["with"][n] = rounded(
            played(trace, rate, "poisson", balanced(trace.measured, n), True).throughput
        )
    return found


def latencies(trace: Trace, rate: float, kind: str) -> dict[str, dict[int, dict[str, float]]]:
    """8(h): how long requests take at one rate."""
    found: dict[str, dict[int, dict[str, float]]] = {"without": {}, "with": {}}
    for n in CONFIGURATORS:
        still = [
            played(trace, rate, kind, dealt(trace.measured, n, draw), False).to_json()
            for draw in range(DRAWS)
        ]
        found["without"][n] = mean_of(still)
        found["with"][n] = played(trace, rate, kind, balanced(trace.measured, n), True).to_json()
    return found


def at_use(trace: Trace, configurators: int, kind: str) -> dict[str, float]:
    """How much lower the mean latency is with balancing; each draw has a rate of its own."""
    names, found = named(configurators), list[dict[str, float]]()
    for draw in range(MANY_DRAWS):
        dice = random.Random(draw)
        thrown = {dz: dice.choice(names) for dz in trace.measured.partitions}
        lower: dict[str, float] = {}
        for what, owners in (("dealt out", dealt(trace.measured, configurators, draw)), ("thrown", thrown)):
            rate = USE * trace.saturation(owners)
            without, alone, with_it = (
                float(played(trace, rate, kind, some, watched).latency.mean())
                for some, watched in (
                    (owners, False),
                    (owners, True),
                    (balanced(trace.measured, configurators), True),
                )
            )
            lower |= {
                f"{what}: rate to capacity": rate / trace.capacity(configurators),
                f"{what}: mean_ms without": 1e3 * without,
                f"{what}: mean_ms with": 1e3 * with_it,
                f"{what}: lower by": 1 - with_it / without,
                f"{what}: lower by, monitor alone": 1 - alone / without,
            }
        found.append(lower)
    worst = min(each["dealt out: lower by"] for each in found)
    return mean_of(found) | {"dealt out: lower by, worst draw": rounded(worst)}


def by_partitions(traces: Mapping[int, Trace]) -> dict[int, dict[str, float]]:
    """8(i) and 8(j): the same rate for all."""
    n = USUAL_CONFIGURATORS
    rate = STEADY * traces[USUAL_PARTITIONS].capacity(n)
    found = {}
    for partitions, trace in traces.items():
        owners = balanced(trace.measured, n)
        one = played(trace, rate, "poisson", owners, True)
        full = played(trace, BEYOND * trace.capacity(n), "poisson", owners, True)
        found[partitions] = (
            one.to_json()
            | {"requests_per_second": rounded(full.throughput)}
            | {f"{what} per request": value for what, value in trace.measured.figures.items()}
            | {"ms to build a partition": rounded(1e3 * float(trace.measured.building.mean()))}
        )
    return found


@dataclass(frozen=True)
class SliceRun:
    """What it took to serve all subscriptions in slices; of each its parts, with their share of a slice's time."""

    operations: int
    seconds: float
    slices: int
    entries: int
    parts: list[list[tuple[int, float]]]

    @classmethod
    def of(cls, dz: Sequence[DzSet], size: int) -> SliceRun:
        plane = Plane(USUAL_PARTITIONS)
        queues: list[list[tuple[int, Interest]]] = [[] for _ in plane.division.partitions]
        number = {each: i for i, each in enumerate(plane.division.partitions)}
        for i, wanted in enumerate(dz):
            host = plane.hosts[i * 7 % len(plane.hosts)]
            for partition, part in plane.division.cut(wanted):
                queues[number[partition]].append((i, Interest("", host, None, part)))
        parts: list[list[tuple[int, float]]] = [[] for _ in dz]
        seconds, slices, before = 0.0, 0, plane.operations
        for at, queue in enumerate(queues):
            for start in range(0, len(queue), size):
                some = queue[start : start + size]
                spent = plane.serve_slice([(part, Side.SUBSCRIBER) for _, part in some], adding=True)
                seconds, slices = seconds + spent, slices + 1
                for i, _ in some:
                    parts[i].append((at, spent / len(some)))
        return cls(plane.operations - before, seconds, slices, plane.entries(), parts)


def sliced(dz: Sequence[DzSet]) -> dict[int, dict[str, float]]:
    """8(k) and 8(l): subscriptions in slices of each partition's queue, as many as wait but no more than so many."""
    runs = {
        size: min((SliceRun.of(dz, size) for _ in range(REPEATS)), key=lambda run: run.seconds)
        for size in SLICES
    }
    alone = runs[1]
    assert all(run.entries == alone.entries for run in runs.values()), "the final tables differ"
    # The length of slices, and what is left of the time that their parts would take one by one.
    shrinking = [(alone.slices / run.slices, run.seconds / alone.seconds) for run in runs.values()]
    rate = USUAL_CONFIGURATORS * len(dz) / alone.seconds
    found: dict[int, dict[str, float]] = {}
    for size, run in runs.items():
        found[size] = {
            "operations": run.operations,
            "microseconds per request": rounded(1e6 * run.seconds / len(dz)),
        }
        for use in (USE, 2.0):
            latency = in_slices(alone.parts, size, use * rate, shrinking)
            found[size] |= {
                f"mean_ms at {use:g} of capacity": rounded(1e3 * float(latency.mean())),
                f"most_ms at {use:g} of capacity": rounded(1e3 * float(latency.max())),
            }
    return found


def in_slices(
    requests: Sequence[Sequence[tuple[int, float]]],
    size: int,
    rate: float,
    shrinking: Sequence[tuple[float, float]],
) -> Times:
    """How long requests take if a configurator serves of the partition that waits longest as much as it may at once."""
    loads = np.zeros(USUAL_PARTITIONS)
    for request in requests:
        for partition, _ in request:
            loads[partition] += 1
    division = Division.even(USUAL_PARTITIONS).partitions
    owners = by_load(dict(zip(division, loads.tolist(), strict=True)), named(USUAL_CONFIGURATORS))
    arrivals = np.cumsum(np.random.default_rng(5).exponential(1 / rate, len(requests)))
    answered = np.zeros(len(requests))
    lengths, left = zip(*shrinking, strict=True)
    for name in named(USUAL_CONFIGURATORS):
        coming = deque(
            (float(arrivals[i]), i, partition, seconds)
            for i, request in enumerate(requests)
            for partition, seconds in request
            if owners[division[partition]] == name
        )
        queues: dict[int, deque[tuple[float, int, float]]] = {}
        now = 0.0
        while coming or queues:
            if not queues:
                now = max(now, coming[0][0])
            while coming and coming[0][0] <= now:
                came, i, partition, seconds = coming.popleft()
                queues.setdefault(partition, deque()).append((came, i, seconds))
            chosen = min(queues, key=lambda partition: queues[partition][0][:2])
            queue = queues[chosen]
            some = [queue.popleft() for _ in range(min(size, len(queue)))]
            if not queue:
                del queues[chosen]
            now += sum(seconds for _, _, seconds in some) * float(np.interp(len(some), lengths, left))
            for _, i, _ in some:
                answered[i] = max(answered[i], now)
    return answered - arrivals


def of_load(make: Callable[..., Load]) -> dict[str, Any]:
    dz = dz_of(make(ACTIVE + WARM + MEASURED, 0))
    traces = {n: Trace.drawn(Measured.of(dz, n)) for n in PARTITIONS}
    usual = traces[USUAL_PARTITIONS]
    rates = {"one keeps up": USE * usual.capacity(1), "one falls behind": 1.5 * usual.capacity(1)}
    by_configurators = {
        f"{what}, {kind}": latencies(usual, rate, kind)
        for what, rate in rates.items()
        for kind in ("uniform", "poisson")
    }
    return {
        "throughput": throughputs(usual),
        "rates": {what: rounded(rate) for what, rate in rates.items()},
        "latency": by_configurators,
        "less than with one": {
            what: {
                n: rounded(1 - each["mean_ms"] / lines["with"][1]["mean_ms"])
                for n, each in lines["with"].items()
            }
            for what, lines in by_configurators.items()
        },
        "at 80 %": {
            "poisson": {n: at_use(usual, n, "poisson") for n in CONFIGURATORS[1:]},
            "uniform": {USUAL_CONFIGURATORS: at_use(usual, USUAL_CONFIGURATORS, "uniform")},
        },
        "by partitions": by_partitions(traces),
    }


def charts(found: Mapping[str, Any], slices: Mapping[int, Mapping[str, float]]) -> dict[str, Chart]:
    arms = [(f"{load}, {arm} balancing", load, arm) for load in found for arm in ("without", "with")]
    behind = {name: found[load]["latency"]["one falls behind, poisson"][arm] for name, load, arm in arms}
    divided = {load: each["by partitions"] for load, each in found.items()}

    def of(what: str, lines: Mapping[str, Mapping[int, Mapping[str, float]]]) -> dict[str, dict[int, float]]:
        return {name: {n: each[what] for n, each in line.items()} for name, line in lines.items()}

    shown: dict[str, tuple[str, str, str, Mapping[str, Mapping[int, float]], str, bool]] = {
        "8g": (
            "throughput", f"simulated, {USUAL_PARTITIONS} partitions, Poisson", "configurators",
            {name: found[load]["throughput"][arm] for name, load, arm in arms}, "requests a second", False,
        ),
        "8h": (
            "latency where one falls behind", f"simulated, {USUAL_PARTITIONS} partitions, Poisson", "configurators",
            of("mean_ms", behind), "mean, ms", True,
        ),
        "8h-p99": (
            "latency of the slowest in a hundred where one falls behind",
            f"simulated, {USUAL_PARTITIONS} partitions, Poisson", "configurators",
            of("p99_ms", behind), "p99, ms", True,
        ),
        "8h-one": (
            "response time against one configurator", f"simulated, {USUAL_PARTITIONS} partitions, balanced, Poisson",
            "configurators",
            {
                f"{load}, {what}": found[load]["less than with one"][f"{what}, poisson"]
                for load in found for what in ("one keeps up", "one falls behind")
            },
            "mean latency less by, share", False,
        ),
        "8i": (
            "latency", f"simulated, {USUAL_CONFIGURATORS} configurators, balanced, Poisson", "partitions",
            of("mean_ms", divided), "mean, ms", True,
        ),
        "8j": (
            "flow operations", "measured", "partitions", of("operations per request", divided), "per request", False,
        ),
        "8k": (
            f"flow operations of {SLICED:,} subscriptions", "measured, zipf", "requests in a slice at the most",
            of("operations", {"operations": slices}), "operations", False,
        ),
        "8l": (
            f"latency of {SLICED:,} subscriptions", f"simulated, zipf, {USUAL_CONFIGURATORS} configurators",
            "requests in a slice at the most",
            {what: of(what, {what: slices})[what] for what in slices[1] if "_ms" in what}, "ms", True,
        ),
    }  # fmt: skip
    return {
        place: Chart(f"Figure {place[0]}({place[1]}): {title}", about, across, lines, upright, False, log)
        for place, (title, about, across, lines, upright, log) in shown.items()
    }


def run() -> Result:
    found = {load: of_load(make) for load, make in LOADS.items()}
    slices = sliced(dz_of(zipf(SLICED, 0)))
    figures: dict[str, Any] = {"simulated": SIMULATED, **found, "zipf, slices": slices, "differs": DIFFERS}
    write("balancing", figures, charts(found, slices))
    lower = found["zipf"]["at 80 %"]["poisson"][USUAL_CONFIGURATORS]["thrown: lower by"]
    zipfian = found["zipf"]["throughput"]
    goals: dict[str, Goal] = {
        "zipf at 80 % of the saturation without balancing (owners drawn at random): mean latency lower by": at_least(
            lower, 0.30
        ),
        "zipf: throughput of 4 with balancing to without": at_least(
            zipfian["with"][4] / zipfian["without"][4], 1.0
        ),
        "zipf: response time of 8 less than of one that falls behind by": at_least(
            found["zipf"]["less than with one"]["one falls behind, poisson"][8], 0.99
        ),
        "zipf: share of operations saved in slices of 500": at_least(
            1 - slices[500]["operations"] / slices[1]["operations"], 0.40
        ),
    }
    return Result("balancing", figures, goals=goals)


SIMULATED = (
    "Service times, operations and visits are measured, in processor seconds of one core; configurators, arrivals and "
    "queues are simulated. Switches, the dispatcher and the way between them take no time here."
)
DIFFERS = (
    "(g) has the paper's shape: on zipfian requests balancing serves more, on uniform ones hardly. (h) One "
    "configurator that falls behind has no mean latency of its own, for it grows with the number of requests, so "
    "`99 % less` says little; where one keeps up, more of them save less. At 80 % of the saturation without "
    "balancing the gain comes from the assignment by past load: nobody falls behind there, and the monitor moves "
    "next to nothing. How large it is depends on what random means. With partitions dealt out, as many to each, "
    "it is just about the 30 % asked for with 4 configurators, on either side of it by which draws are taken and "
    "how requests arrive, less with 2 and more with 8; with an owner thrown for each partition by itself, more. "
    "(i) has the paper's shape on zipfian requests. (j) has not: covers of 32 dz are mostly finer than "
    "partitions, which therefore add hardly an operation; what grows with them are parts, and the time that each "
    "takes whatever is in it. (k) has. (l) has in part: a slice is what waits already, so nobody waits for it to "
    "fill, and the mean falls; but large slices keep some waiting longest. `monitor alone` begins with the first "
    "of the random assignments."
)
