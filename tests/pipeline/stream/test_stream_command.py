"""The command stream: real Spark, a landing folder, and a controller that takes offers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from desk import TOKEN, desk
from office import SCHEMA

from flowsieve.content.schema import Schema
from flowsieve.errors import PipelineError
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.pipeline.stream.state_files import StateFiles, StreamState
from flowsieve.testing.lander import Lander

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]
PATIENCE = 120.0
BASE = 1_790_000_000_000_000  # some microsecond of 2026
STEP = 500_000  # between two files
MANY = 300  # events of a file
FILTERS = {f"s{i}": f"price >= {24 * i} and price < {24 * i + 8}" for i in range(40)}
QUICK = ("--window", 2, "--least", 500, "--method", "lw", "--deadline", 200, "--pause", 1, "--max-dz", 4)


class Site:
    """A landing folder in which time goes on, and what was landed so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder / "landing", folder / "out"
        self.lander = Lander(self.folder, SCHEMA)
        self.lander.index(0, RegularPlan.make(SCHEMA, bits=4))
        self.lander.subscriptions(1, FILTERS)
        self.random = np.random.default_rng(5)
        self.files = self.fed = 0

    @property
    def now(self) -> int:
        return BASE + self.files * STEP

    def land(self, files: int, middle: int = 250) -> None:
        """Land files of events with prices around some price."""
        for _ in range(files):
            self.lander.events(self.drawn(middle), at=[self.now + i for i in range(MANY)])
            self.files += 1
            self.fed += MANY

    def drawn(self, middle: int) -> dict[str, Any]:
        prices = np.clip(self.random.normal(middle, 40, MANY), 0, 1023).astype(int)
        return {"price": prices, "live": self.random.integers(0, 2, MANY).astype(bool)}

    def command(self, *more: object) -> list[object]:
        return ["stream", self.folder, "--out", self.out, *QUICK, *more]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "series.jsonl").read_text().splitlines()]

    @property
    def query(self) -> str:
        return str(json.loads((self.out / "checkpoint" / "metadata").read_text())["id"])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_traffic_is_counted_once_drift_is_seen_and_better_plans_are_offered(
    spark: SparkSession, site: Site, tmp_path: Path, flowsieve: Flowsieve
) -> None:
    site.land(8)
    site.lander.counts(site.now, published=100, received=80, delivered=20, unwanted=60)
    site.lander.deliveries([True, False, False, False], site.now)
    site.lander.file("events", b"PAR1 and no more")
    cells = site.drawn(100)
    site.lander.events(cells | {"price": [5000, *cells["price"][1:]]}, at=[site.now] * MANY)
    site.fed += MANY - 1
    other = Lander(site.folder, Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}}))
    other._number = 90_000
    other.events({"price": [1, 2, 3]})
    with desk(tmp_path) as controller:
        wanted = ("--control", controller.address, "--operator", TOKEN, "--max-files", 4, "--once", "--json")
        answer = flowsieve(*site.command(*wanted))
        assert answer.status == 0, answer.err
        rows = [json.loads(line) for line in answer.out.splitlines()]
        assert rows == site.lines()
        assert [row["batch"] for row in rows] == list(range(len(rows)))
        totals = rows[-1]["totals"]
        assert (totals["events"], totals["unreadable"], totals["deliveries"]) == (site.fed, 2, 4)
        assert totals["aside"] == {"broken": 3, "missing": 0, "outside": 1, "late": 0}
        assert totals["counts"] == {"published": 100, "received": 80, "delivered": 20, "unwanted": 60}
        assert rows[-1]["fpr_measured"] == 0.75
        aside = [json.loads(line) for line in (site.out / "aside.jsonl").read_text().splitlines()]
        reasons = " ".join(reason for each in aside for reason in each["reasons"])
        assert "has no column 'live'" in reasons and "price = 5000 is above 1023" in reasons

        (first,) = controller.offers
        planning = next(row for row in rows if row["planning"])
        assert (first.query, first.batch, first.fate) == (site.query, planning["batch"], "waiting")
        score = first.body["score"]
        assert score["new"]["fpr"] < 0.9 * score["old"]["fpr"]
        assert score["new"]["false_negatives"] == score["old"]["false_negatives"] == 0
        assert plan_from_json(first.body["plan"], SCHEMA).bits == 4

        listed = flowsieve("offers", "list", "--control", controller.address)
        assert f"{site.query}/{first.batch}" in "".join(listed.out.split())
        assert "a person approves" in listed.out

        # Started again it goes on; nothing new, nothing counted, nothing offered.
        assert flowsieve(*site.command(*wanted)).out == ""
        assert site.lines() == rows

        site.land(6, middle=800)
        again = flowsieve(*site.command(*wanted, "--drift", 0.3))
        assert again.status == 0, again.err
        later = [json.loads(line) for line in again.out.splitlines()]
        assert later[0]["batch"] == len(rows)
        assert later[-1]["totals"]["events"] == site.fed
        assert max(row["dimensions"]["price"]["drift"] for row in later) > 0.3
        assert any("price has drifted" in (row["planning"] or "") for row in later)
        assert [offer.fate for offer in controller.offers] == ["waiting", "superseded"], again.err
        assert controller.index.version == 0
        latest = controller.offers[0]
        at = ("--control", controller.address, "--json")
        name = f"{site.query}/{latest.batch}"
        denied = flowsieve("offers", "approve", name, *at)
        assert (denied.status, "operator's token" in denied.err) == (1, True)
        approved = flowsieve("offers", "approve", name, *at, "--operator", TOKEN)
        assert (approved.status, approved.json["fate"]) == (0, "in force"), approved.err
        assert controller.index.version == 1

    table = pq.read_table(site.out / "series")
    assert table.column("batch").to_pylist() == [row["batch"] for row in rows + later]
    assert table.column("fpr_computed").to_pylist() == [row["fpr_computed"] for row in rows + later]
    gets = pq.read_table(site.out / "subscriptions.parquet")
    assert sorted(gets.column("id").to_pylist()) == sorted(FILTERS)
    assert (
        0 < pa.compute.sum(gets.column("matches")).as_py() < pa.compute.sum(gets.column("deliveries")).as_py()
    )


def test_a_schema_or_subscriptions_that_change_are_followed_and_an_offer_may_be_approved_at_once(
    spark: SparkSession, site: Site, tmp_path: Path, flowsieve: Flowsieve
) -> None:
    site.land(6)
    with desk(tmp_path, auto=True) as controller:
        wanted = ("--control", controller.address, "--operator", TOKEN, "--auto", "--once", "--json")
        answer = flowsieve(*site.command(*wanted, "--max-files", 3))
        assert answer.status == 0, answer.err
        _eventually(lambda: True if controller.index.version == 1 else None)
        assert plan_to_json(controller.index.plan) == plan_to_json(_offered(site))
    wider = Schema.parse({"price": {"type": "int", "min": 0, "max": 4095}, "live": {"type": "bool"}})
    site.lander.index(1, RegularPlan.make(wider, bits=6))
    (site.folder / "index" / "2.json").write_text('{"version": 3, "plan": ')
    site.lander.subscriptions(2, {"wide": "price > 2000", "odd": "price >>", "gone": "colour == 3"} | FILTERS)
    site.lander.events({"price": [3000] * 10, "live": [True] * 10}, at=[site.now] * 10)
    later = flowsieve(*site.command("--once", "--json"))
    assert later.status == 0, later.err
    assert "2.json" in later.err
    (row,) = [json.loads(line) for line in later.out.splitlines()]
    assert (row["plan"], row["subscriptions"], row["subscriptions_aside"]) == (1, 41, 2)
    assert (row["aside"]["outside"], row["events"]) == (0, 10)
    assert row["fpr_computed"] == 0.0  # of what lies above 2000 nothing else is covered


@pytest.mark.slow
def test_a_job_that_was_killed_goes_on_counts_once_and_makes_the_same_offer(
    spark: SparkSession, site: Site, tmp_path: Path, flowsieve: Flowsieve
) -> None:
    site.land(6)
    nobody = ("--control", "http://127.0.0.1:9", "--trigger", 0.1, "--max-files", 1, "--json")
    command = [
        sys.executable,
        "-m",
        "flowsieve.cli",
        *map(str, site.command(*nobody, "--master", "local[2]")),
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            order = _eventually(lambda: _latest(site).order, process)
            site.land(4)
            _eventually(lambda: _latest(site).batch >= 7 or None, process)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    site.land(2)
    with desk(tmp_path) as controller:
        wanted = ("--control", controller.address, "--operator", TOKEN, "--once", "--json")
        answer = flowsieve(*site.command(*wanted))
        assert answer.status == 0, answer.err
        assert (site.query, order.batch) in [(offer.query, offer.batch) for offer in controller.offers]
    rows = site.lines()
    assert [row["batch"] for row in rows] == list(range(len(rows)))
    assert sum(row["events"] for row in rows) == rows[-1]["totals"]["events"] == site.fed


def _offered(site: Site) -> IndexPlan:
    """The plan that was made first."""
    first = min((site.out / "plans").iterdir())
    return plan_from_json(json.loads(first.read_text())["plan"], SCHEMA)


def _latest(site: Site) -> StreamState:
    """The state of a job that runs beside us; what it removes while we look is looked for once more."""
    for _ in range(100):
        try:
            return StateFiles(site.out / "state").latest()
        except PipelineError:
            time.sleep(0.01)
    return StateFiles(site.out / "state").latest()


def _eventually(look: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What a look finds, sooner or later, while a process lives."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and (process is None or process.poll() is None):
        if (found := look()) is not None:
            return found
        time.sleep(0.01)
    raise AssertionError("not seen, or the process has ended")


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--drift", 2], 2, "--drift is 2.0"),
        (["--window", 0], 2, "--window is 0.0"),
        (["--method", "magic"], 2, "magic"),
        (["--deadline", 0], 2, "--deadline is 0.0"),
        (["--max-dz", -1], 2, "--max-dz is -1"),
        (["--auto"], 2, "--auto needs a controller"),
        (["--master", "sc://127.0.0.1:15002"], 2, "Connect server"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    spark: SparkSession, site: Site, flowsieve: Flowsieve, more: list[object], status: int, said: str
) -> None:
    answer = flowsieve(*site.command(*more, "--once"))
    assert answer.status == status
    assert said in " ".join(answer.err.split())


def test_auto_is_refused_at_once_where_the_controller_has_a_person_approve(
    site: Site, tmp_path: Path, flowsieve: Flowsieve
) -> None:
    with desk(tmp_path) as controller:
        answer = flowsieve(*site.command("--auto", "--control", controller.address, "--once"))
    assert answer.status == 1
    assert "auto = true in [offers]" in " ".join(answer.err.split())


def test_without_an_index_it_says_so(spark: SparkSession, tmp_path: Path, flowsieve: Flowsieve) -> None:
    (tmp_path / "empty").mkdir()
    answer = flowsieve("stream", tmp_path / "empty", "--out", tmp_path / "out", "--once")
    assert (answer.status, "has no index" in answer.err) == (2, True)
    answer = flowsieve("stream", tmp_path / "nothing", "--out", tmp_path / "out", "--once")
    assert (answer.status, "there is no such folder" in answer.err) == (2, True)
