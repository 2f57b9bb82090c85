"""Requests a second from dz to net table difference, and what a request costs in visits and memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench import Goal, Result, at_least, at_most, rounded
from benchmarks.loads import LOADS
from benchmarks.network import Churn, dz_of, small_fat_tree, two_level
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.dzset import DzSet

ACTIVE = (1_000, 4_000, 16_000)
REQUESTS = 2_000
RATE = {"zipf": 10_000, "narrow": 2_000}
WARM = 20
PARTITIONS, DIVIDED_ROUNDS = 64, 5
UNCOMPILED_ACTIVE, UNCOMPILED_REQUESTS = 1_000, 30


def measured(churn: Churn, requests: int) -> dict[str, float]:
    for _ in churn.requests(WARM):
        pass
    visits, start, operations = churn.compiler.visits, time.perf_counter(), 0
    for update in churn.requests(requests):
        operations += len(update)
    spent = time.perf_counter() - start
    return {
        "requests_per_second": rounded(requests / spent),
        "visits_per_request": rounded((churn.compiler.visits - visits) / requests),
        "operations_per_request": rounded(operations / requests),
        "microseconds_per_visit": rounded(1e6 * spent / max(1, churn.compiler.visits - visits)),
        "entries": churn.entries(),
        "bytes_per_subscription": rounded(churn.compiler.memory_bytes / churn.active),
    }


def fat_tree_case(
    load: str, active: int, requests: int, tables: Tables = Tables.OVERLAY, partitions: int = 1
) -> dict[str, float]:
    dz = dz_of(LOADS[load](active + requests + WARM, 0))
    churn = Churn(small_fat_tree(), dz, active, 16, tables, partitions=partitions)
    return measured(churn, requests)


def divided(load: str) -> tuple[dict[str, float], float]:
    """The space in 64 partitions, each with a tree, in one process; the median of what that is against one, in turn."""
    found, gains = {}, []
    for _ in range(DIVIDED_ROUNDS):
        one = fat_tree_case(load, 1_000, REQUESTS)
        found = fat_tree_case(load, 1_000, REQUESTS, partitions=PARTITIONS)
        gains.append(found["requests_per_second"] / one["requests_per_second"])
    return found, statistics.median(gains)


def uncompiled(load: str) -> float:
    """The same engine with its kernels run as plain Python, in a process of its own; requests per second."""
    dz = dz_of(LOADS[load](UNCOMPILED_ACTIVE + UNCOMPILED_REQUESTS + WARM, 0))
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_text(json.dumps([one.texts() for one in dz]))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.requests", file.name],
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            check=True,
        )
    return float(json.loads(done.stdout)["requests_per_second"])


def measure_file(path: str) -> dict[str, float]:
    """What the process without compiled kernels does: serve the dz in a file."""
    dz = [DzSet.of(texts) for texts in json.loads(Path(path).read_text())]
    return measured(Churn(small_fat_tree(), dz, UNCOMPILED_ACTIVE, 16), UNCOMPILED_REQUESTS)


def run() -> Result:
    figures: dict[str, Any] = {}
    peers: dict[str, Any] = {}
    goals: dict[str, Goal] = {}
    fat_tree_case("zipf", 100, 10)  # loads the kernels; `compilation` says what that takes
    for load in LOADS:
        cases = {str(active): fat_tree_case(load, active, REQUESTS) for active in ACTIVE}
        figures[load] = cases
        figures[load]["1000, smallest"] = fat_tree_case(load, 1_000, REQUESTS, Tables.SMALLEST)
        figures[load]["1000, free"] = fat_tree_case(load, 1_000, REQUESTS, Tables.FREE)
        figures[load]["1000, 64 partitions"], share = divided(load)
        goals[f"{load}: 64 partitions against one"] = at_least(share, 0.9)
        slow = uncompiled(load)
        peers[f"{load}, 1000, without compiled kernels"] = {"requests_per_second": slow}
        few, many = cases["1000"], cases["16000"]
        goals[f"{load}: requests per second at 1,000"] = at_least(few["requests_per_second"], RATE[load])
        goals[f"{load}: times the uncompiled engine"] = at_least(few["requests_per_second"] / slow, 8)
        goals[f"{load}: visits at 16,000 against 1,000"] = at_most(
            many["visits_per_request"] / few["visits_per_request"], 1
        )
    for load in LOADS:
        for active in (10_000, 100_000):
            dz = dz_of(LOADS[load](active + REQUESTS + WARM, 0))
            figures[f"{load}, 128 switches, 256 hosts, {active}"] = measured(
                Churn(two_level(128, 256), dz, active, 16), REQUESTS
            )
    return Result("requests", figures, peers, goals)


if __name__ == "__main__":
    print(json.dumps(measure_file(sys.argv[1])))
