"""The files that a run leaves behind; their formats are a contract."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from flowsieve.errors import BadScenario
from flowsieve.scenario.plain import plain_flows
from flowsieve.scenario.play import Columns, Played


def write_run(played: Played, folder: Path) -> dict[str, object]:
    """Write report.json, deliveries.csv, matches.csv, packets.csv and flows.json; returns the report."""
    make_folder(folder)
    report = played.report()
    for name, columns in (
        ("deliveries.csv", played.deliveries),
        ("matches.csv", played.matches),
        ("packets.csv", played.packets),
    ):
        _write_columns(folder / name, columns)
    flows = plain_flows(played.scenario.topology, played.tables())
    (folder / "flows.json").write_text(json.dumps(flows, indent=0) + "\n")
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    return report


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadScenario(f"cannot write there: {error.strerror}", place=str(folder)) from None


def _write_columns(path: Path, columns: Columns) -> None:
    joined = columns.joined()
    table = pa.table({name: pa.array(values, pa.string()) for name, values in joined.items()})
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))
