"""What has telemetry landed: it follows what changes, and a disk that fails loses rows, never anything else."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.interest import Interest
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import EMPTY
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.report import Report
from flowsieve.serving.telemetry import recorder as module
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.recorder import TelemetryRecorder
from flowsieve.serving.telemetry.settings import Keep, TelemetrySettings

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
TAG = encoding_of("ipv6").tag


class Place:
    """An intake, what has it landed, and what is in force."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder / "telemetry"
        self.intake = ReportIntake(TelemetrySettings(**{"share": 1.0} | settings))
        self.held: dict[str, Interest] = {}
        self.index = ServedIndex(0, TAG, RegularPlan.make(SCHEMA))
        self.recorder = TelemetryRecorder(
            self.intake, self.folder, lambda: self.held.values(), lambda: self.index
        )
        self._calls = 0

    def report(self, count: int = 1) -> None:
        first = 10 * self._calls + 1
        self._calls += 1
        told = {"share": 1.0, "publisher": "00" * 8, "counts": [first + count, 0, 0, 0], "since": [0] * 4}
        told |= {"names": ["price"], "events": [[first + n, 0, [n]] for n in range(count)]}
        self.intake.take("ann", "00" * 16, self._calls, None, Report.parse(told), SCHEMA)

    def look(self, times: int = 1) -> None:
        async def looks() -> None:
            for _ in range(times):
                await self.recorder.look()

        asyncio.run(looks())

    def names(self, kind: str) -> list[str]:
        return sorted(path.name for path in (self.folder / kind).iterdir())


def test_off_touches_no_disk(tmp_path: Path) -> None:
    place = Place(tmp_path, share=0.0)
    place.look(2)
    assert not place.folder.exists()
    place.intake.settings = TelemetrySettings(share=1.0)
    place.look()
    assert place.names("subscriptions") and place.names("index") == ["0.json"] and not place.names("events")
    assert place.folder.stat().st_mode & 0o077 == 0


def test_what_is_in_force_is_landed_at_the_start_and_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SUBSCRIPTIONS_SECONDS", 0.0)
    place = Place(tmp_path)
    place.look(3)
    assert place.names("subscriptions") == ["000000000001.parquet"]
    place.held["s1"] = Interest("s1", "bob", Filter.parse("price < 9", SCHEMA), EMPTY)
    place.look(3)
    assert place.names("subscriptions") == ["000000000001.parquet", "000000000002.parquet"]
    place.held["s1"] = Interest("s1", "bob", Filter.parse("price < 8", SCHEMA), EMPTY)
    place.index = ServedIndex(1, TAG, RegularPlan.make(SCHEMA, bits=3))
    place.look(2)
    table = pq.read_table(place.folder / "subscriptions" / "000000000003.parquet")
    assert table["filter"].to_pylist() == ["price < 8"]
    assert json.loads((place.folder / "index" / "1.json").read_text())["plan"]["bits"] == 3
    assert place.names("index") == ["0.json", "1.json"]


def test_many_changes_make_one_file_every_few_seconds(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for n in range(5):
        place.held[f"s{n}"] = Interest(f"s{n}", "bob", Filter.parse("True", SCHEMA), EMPTY)
        place.look()
    assert len(place.names("subscriptions")) == 1


def test_what_was_taken_is_landed_also_when_the_controller_ends(tmp_path: Path) -> None:
    place = Place(tmp_path, interval=60)

    async def end() -> None:
        await place.recorder.look()
        running = asyncio.create_task(place.recorder.run())
        await asyncio.sleep(0)
        place.report(3)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(end())
    assert pq.read_table(place.folder / "events").num_rows == 3
    assert place.intake.counters.landed == {"events": 3, "counts": 1}
    assert place.intake.told()["rows"] == {"events": 3, "counts": 1} and place.intake.told()["bytes"] > 0


def test_a_folder_that_cannot_be_written_loses_rows_which_are_counted_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path)
    place.folder.write_text("a file where the folder should be")
    for _ in range(3):
        place.report(2)
        place.look()
    assert place.intake.counters.lost == 9
    assert place.intake.told()["trouble"].startswith(f"telemetry cannot be kept in {place.folder}")
    assert len(caplog.records) == 1
    place.folder.unlink()
    place.report(2)
    place.look()
    assert place.intake.told()["trouble"] is None and len(place.names("events")) == 1
    assert place.names("index") == ["0.json"]
    shutil.rmtree(place.folder)  # somebody makes room
    for _ in range(2):
        place.report(2)
        place.look()
    assert (
        len(place.names("events")) == 1
        and place.names("index") == ["0.json"]
        and place.names("subscriptions")
    )
    assert place.intake.counters.lost == 12


def test_what_is_kept_no_longer_goes_also_once_it_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.0)
    place = Place(tmp_path, keep=Keep(files=10))
    for _ in range(15):
        place.report()
        place.look()
    assert len(place.names("events")) == len(place.names("counts")) == 10
    assert place.intake.counters.removed == 10
    place.intake.settings = TelemetrySettings(share=0.0, keep=Keep(hours=1e-9))
    place.look()
    assert place.names("events") == [] and place.names("index") == ["0.json"]
