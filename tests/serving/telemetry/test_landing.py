"""Files of telemetry: their columns, their names, and that nobody ever reads half of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.interest import Interest
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import EMPTY
from flowsieve.index.plan import plan_from_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.report import EventCounts
from flowsieve.serving.telemetry.landing import TelemetryFolder
from flowsieve.serving.telemetry.rows import (
    LandedCounts,
    LandedDelivery,
    LandedEvent,
    ReportRows,
)
from flowsieve.serving.telemetry.settings import Keep

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "heat": {"type": "float", "min": 0.0, "max": 9.0},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "live": {"type": "bool"},
        "note": {"type": "string"},
    }
)
AT = 1_795_000_000_123_456
EVENT = {"price": 705, "heat": 0.5, "side": "buy", "live": True, "note": "é"}
UTC = pa.timestamp("us", tz="UTC")


def some_rows() -> ReportRows:
    rows = ReportRows()
    rows.events.append(LandedEvent("0102030405060708-17", AT - 5, "ann", 10.0, EVENT))
    rows.deliveries += [
        LandedDelivery("0102030405060708-17", "bob", True, 10.0),
        LandedDelivery("0102030405060708-18", "bob", False, 10.0),
    ]
    rows.counts.append(LandedCounts("bob", "0123456789abcdef", EventCounts(0, 12, 9, 3)))
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> TelemetryFolder:
    made = TelemetryFolder(tmp_path / "telemetry")
    made.prepare()
    return made


def read(folder: TelemetryFolder, kind: str) -> pa.Table:
    (path,) = (folder.folder / kind).iterdir()
    assert path.suffix == ".parquet" and not path.name.startswith(".")
    return pq.read_table(path)


def test_rows_are_landed_in_the_columns_that_the_pipeline_reads(folder: TelemetryFolder) -> None:
    landed, size = folder.land(some_rows(), SCHEMA, AT)
    assert landed == {"events": 1, "deliveries": 2, "counts": 1} and size > 0
    events = read(folder, "events")
    own = [
        ("id", pa.string()),
        ("at", UTC),
        ("sent_at", UTC),
        ("host", pa.string()),
        ("weight", pa.float64()),
    ]
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.string()]
    assert events.schema.equals(pa.schema([*own, *zip(SCHEMA.names, kinds, strict=True)]))
    (row,) = events.to_pylist()
    assert {name: row[name] for name in SCHEMA.names} == EVENT
    assert (row["id"], row["host"], row["weight"]) == ("0102030405060708-17", "ann", 10.0)
    assert events["at"].cast(pa.int64()).to_pylist() == [AT]
    assert events["sent_at"].cast(pa.int64()).to_pylist() == [AT - 5]
    deliveries = read(folder, "deliveries")
    assert deliveries.column_names == ["id", "at", "host", "wanted", "weight"]
    assert deliveries["wanted"].to_pylist() == [True, False] and deliveries.schema.field("at").type == UTC
    counts = read(folder, "counts")
    assert counts.column_names == ["at", "host", "session", "published", "received", "delivered", "unwanted"]
    assert counts.to_pylist()[0] | {"at": None} == {
        "at": None,
        "host": "bob",
        "session": "0123456789abcdef",
        "published": 0,
        "received": 12,
        "delivered": 9,
        "unwanted": 3,
    }


def test_nothing_makes_no_file_and_files_of_one_moment_have_names_of_their_own(
    folder: TelemetryFolder,
) -> None:
    assert folder.land(ReportRows(), SCHEMA, AT) == ({}, 0)
    assert list(folder.files()) == []
    for _ in range(3):
        folder.land(some_rows(), SCHEMA, AT)
    assert len(list((folder.folder / "events").iterdir())) == 3


def test_versions_of_subscriptions_grow_also_over_a_restart(folder: TelemetryFolder) -> None:
    held = [Interest("s1", "bob", Filter.parse("price < 50", SCHEMA), EMPTY)]
    folder.land_subscriptions(held, AT)
    folder.land_subscriptions([], AT + 1)
    again = TelemetryFolder(folder.folder)
    again.land_subscriptions([*held, Interest("border", "other", None, EMPTY)], AT + 2)
    tables = [pq.read_table(path) for path in sorted((folder.folder / "subscriptions").iterdir())]
    assert [table["version"].to_pylist() for table in tables] == [[1], [], [3]]
    assert tables[2].select(["id", "host", "filter"]).to_pylist() == [
        {"id": "s1", "host": "bob", "filter": "price < 50"}
    ]
    assert tables[1].schema.equals(tables[0].schema) and tables[0].schema.field("at").type == UTC


def test_the_index_is_told_whole_under_its_version(folder: TelemetryFolder) -> None:
    plan = RegularPlan.make(SCHEMA, bits=9)
    for version in (0, 1):
        folder.land_index(ServedIndex(version, encoding_of("ipv6").tag, plan), AT)
    told = json.loads((folder.folder / "index" / "1.json").read_text())
    assert (told["version"], told["tag"]) == (1, "ff0e::/16")
    assert told["at"] == "2026-11-18T11:06:40.123456+00:00"
    assert plan_from_json(told["plan"], Schema.parse(told["schema"])) == plan
    assert sorted(path.name for path in (folder.folder / "index").iterdir()) == ["0.json", "1.json"]
    folder.land_index(ServedIndex(0, encoding_of("ipv6").tag, plan), AT)  # of a state that began anew
    assert [path.name for path in (folder.folder / "index").iterdir()] == ["0.json"]


def test_what_is_old_goes_but_not_what_is_in_force(folder: TelemetryFolder) -> None:
    folder.land(some_rows(), SCHEMA, AT)
    folder.land_subscriptions([], AT)
    folder.land_subscriptions([], AT)
    folder.land_index(ServedIndex(0, encoding_of("ipv6").tag, RegularPlan.make(SCHEMA, bits=9)), AT)
    assert folder.sweep(Keep(hours=1), time.time()) == (0, 6)
    assert folder.sweep(Keep(hours=1), time.time() + 3700) == (4, 2)
    assert sorted(file.kind for file in folder.files()) == ["index", "subscriptions"]
    assert [path.stem for path in (folder.folder / "subscriptions").iterdir()] == ["000000000002"]


def test_files_that_cannot_be_written_leave_nothing_behind(
    folder: TelemetryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.land(some_rows(), SCHEMA, AT)
    assert list((folder.folder / "events").iterdir()) == []


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import test_landing as tests
from flowsieve.serving.telemetry.landing import TelemetryFolder
folder = TelemetryFolder(Path(sys.argv[2]))
folder.prepare()
folder.land(tests.some_rows(), tests.SCHEMA, tests.AT)
assert "pandas" not in sys.modules, "it is large, and a controller has no use for it"
Path.rename = lambda half, whole: os.kill(os.getpid(), signal.SIGKILL)
folder.land(tests.some_rows(), tests.SCHEMA, tests.AT + 1)
"""


def test_a_kill_before_a_file_has_its_name_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    where = tmp_path / "telemetry"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(where)], timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    names = sorted(path.name for path in (where / "events").iterdir())
    assert len(names) == 2 and names[0].startswith(".")
    assert pq.read_table(where / "events").num_rows == 1  # what begins with a dot is passed over
    stranger = where / "events" / ".of-somebody-else"
    stranger.touch()
    TelemetryFolder(where).prepare()
    assert sorted(path.name for path in (where / "events").iterdir()) == [stranger.name, names[1]]
