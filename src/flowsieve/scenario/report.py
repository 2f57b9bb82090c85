"""The files that commands leave behind; their formats are a contract."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as pacsv

from flowsieve.client.batch_packets import SHOWN, Screened
from flowsieve.config.files import writing
from flowsieve.content.event import EventBatch
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.scenario.plain import plain_flows
from flowsieve.scenario.play import Columns, Played


def write_run(played: Played, folder: Path) -> dict[str, object]:
    """Write report.json, deliveries.csv, matches.csv, packets.csv and flows.json; returns the report."""
    report = played.report()
    _write_columns(folder / "deliveries.csv", played.deliveries)
    _write_columns(folder / "matches.csv", played.matches)
    _write_columns(folder / "packets.csv", played.packets)
    flows = plain_flows(played.stage.scenario.topology, played.stage.tables())
    _write_text(folder / "flows.json", json.dumps(flows, indent=0))
    _write_text(folder / "report.json", json.dumps(report, indent=2))
    return report


def write_covers(path: Path, covers: Iterable[tuple[str, DzSet]]) -> None:
    """A line for each filter: its id, and its dz in their order."""
    lines = (json.dumps({"id": id, "dz": sorted(map(str, dz))}) for id, dz in covers)
    _write_text(path, "\n".join(lines))


def write_encoded(path: Path, events: EventBatch, plan: IndexPlan) -> Screened:
    """A row for each event: its id and its dz; none for one outside the content space."""
    faulty, reason = events.faults()
    good = (~faulty).nonzero()[0]
    encoded = plan.encode_batch(events.take(good))
    texts: list[list[str]] = [[] for _ in range(len(events))]
    columns = (good[encoded.rows], encoded.hi, encoded.lo)
    for row, hi, lo in zip(*(column.tolist() for column in columns), strict=True):
        texts[row].append(str(Dz((hi << 64 | lo) >> (128 - encoded.length), encoded.length)))
    with writing(path), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "dz"))
        writer.writerows(zip(events.ids, map(" ".join, texts), strict=True))
    first = faulty.nonzero()[0][:SHOWN].tolist()
    return Screened(~faulty, tuple(f"{events.ids[row]}: {reason(row)}" for row in first))


def _write_text(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text + "\n" if text else "", encoding="utf-8")


def _write_columns(path: Path, columns: Columns) -> None:
    joined = columns.joined()
    table = pa.table({name: pa.array(values, pa.string()) for name, values in joined.items()})
    with writing(path):
        pacsv.write_csv(table, path, pacsv.WriteOptions(quoting_style="needed"))
