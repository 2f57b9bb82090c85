"""How long planning takes from the command line, Spark's start included: GS, and the portfolio.

8 dimensions, 10,000 subscriptions, 100,000 events. Each figure is the wall time of one `flowsieve plan` as a process of
its own, which reads the files, plans, and writes the plan; `ri`, which plans nothing, tells what of it is Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench import Result, at_most, rounded

EVENTS, SUBSCRIPTIONS = 100_000, 10_000
COMMAND = Path(sys.executable).parent / "flowsieve"
LONGEST = 500.0  # seconds that any command may take


def told(*words: str) -> dict[str, Any]:
    """What a command says in JSON."""
    done = subprocess.run(
        [str(COMMAND), *words, "--json"], capture_output=True, text=True, timeout=LONGEST, check=False
    )
    if done.returncode:
        raise RuntimeError(f"flowsieve {' '.join(words)}: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def planned(load: Path, method: str, out: Path) -> tuple[float, dict[str, Any]]:
    """The seconds of one command, and what it said."""
    files = ("--events", f"{load}/events.parquet", "--subscriptions", f"{load}/subscriptions.parquet")
    start = time.perf_counter()
    answer = told("plan", "--schema", f"{load}/schema.toml", *files, "--method", method, "--out", str(out))
    return time.perf_counter() - start, answer


def run() -> Result:
    with tempfile.TemporaryDirectory(prefix="flowsieve-planning-") as folder:
        load = Path(folder) / "load"
        size = ("--events", str(EVENTS), "--subscriptions", str(SUBSCRIPTIONS))
        told("synth", "--kind", "zipfsel", *size, "--seed", "6", "--out", str(load))
        seconds, said = {}, {}
        for method in ("ri", "gs+ri", "auto"):
            seconds[method], said[method] = planned(load, method, Path(folder) / f"{method}.json")
            print(f"{method}: {seconds[method]:.1f} s", file=sys.stderr, flush=True)
    portfolio = said["auto"]["portfolio"]
    figures = {
        "seconds": {method: rounded(value) for method, value in seconds.items()},
        "gs_dimensions": said["gs+ri"]["dimensions"],
        "auto_chose": portfolio["chosen"],
        "auto_tried": len(portfolio["tried"]),
        "auto_passed_over": portfolio["passed_over"],
        "machine": {"cores": os.cpu_count(), "load_now": rounded(os.getloadavg()[0])},
    }
    goals = {
        "gs, seconds": at_most(seconds["gs+ri"], 60),
        "auto, seconds": at_most(seconds["auto"], 120),
    }
    return Result("planning_time", figures, {}, goals)
