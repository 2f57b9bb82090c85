"""The files of a story: what the batch planner reads, and the controller's configuration."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from flowsieve.loop.workload import NAMES, Readings, schema_toml

FIRST_EVENTS = 8_000
SEED = 1_000


def first_files(folder: Path, filters: Mapping[str, Sequence[str]]) -> tuple[Path, Path, Path]:
    """Events as they will be at first, the subscriptions, and the schema."""
    events, wanted, schema = (folder / name for name in ("events.csv", "wanted.csv", "schema.toml"))
    drawn = Readings(np.random.default_rng(SEED)).draw(FIRST_EVENTS, drifted=False)
    with events.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", *NAMES))
        rows.writerows((f"e{number}", *row) for number, row in enumerate(drawn.tolist()))
    with wanted.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "host", "filter"))
        rows.writerows(
            (f"{host}-{number}", host, text) for host in filters for number, text in enumerate(filters[host])
        )
    schema.write_text(schema_toml())
    return events, wanted, schema


def write_config(folder: Path, share: float) -> Path:
    """The controller's configuration: the first plan, telemetry of a share of events, offers approved at once."""
    telemetry = folder / "telemetry"
    telemetry.mkdir()
    mode = 'mode = "full"' if share >= 1 else f'mode = "sampled"\nshare = {share:.6f}'
    config = folder / "loop.toml"
    config.write_text(
        f"{schema_toml()}"
        f'[index]\nheader = "ipv6"\nplan = "plan.json"\n'
        f'[controller]\nstate = "state"\n'
        f'[telemetry]\n{mode}\nfolder = "{telemetry}"\nrate = 100000\ninterval = 0.5\n'
        f"[offers]\nauto = true\n"
    )
    return config
