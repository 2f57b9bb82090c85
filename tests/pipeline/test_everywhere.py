"""The same code and the same results on this machine, on a real cluster, and over Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import everywhere
import pytest

from flowsieve.pipeline.cluster import cluster, connect_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

PATIENCE = 500  # seconds for one run, on a machine that has much else to do
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both executors are there before work begins
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.executor.extraJavaOptions": LIGHT,
}


@pytest.fixture(scope="module")
def master(_spark_is_there: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as address:
        assert len(_started_in(folder)) == 3
        yield address
    assert not _started_in(folder)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "events.csv"
    rows = "".join(f"{i},{i % 90},{i / 8},{'north' if i % 3 else 'south'}\n" for i in range(2_000))
    path.write_text("id,level,ratio,zone\n" + rows + "x,1\n2000,,1.5,north\n")
    return path


@pytest.fixture(scope="module")
def wanted(spark: SparkSession, events: Path) -> dict[str, Any]:
    """What this machine finds."""
    found: dict[str, Any] = json.loads(json.dumps(everywhere.figures(spark, str(events))))
    assert found["account"]["broken"] == 1
    assert found["account"]["missing"] == 1
    assert len(found.pop("workers")) == 1
    return found


def run(command: list[str], folder: Path, **environment: str) -> dict[str, Any]:
    """The figures that a process finds that knows of Spark only what its command and environment say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def check_places(answer: dict[str, Any]) -> None:
    """Both executors worked, and had the package from what was sent to them."""
    workers = {worker for worker, _ in answer["places"]}
    assert len(workers) == 2, answer["places"]
    assert set(answer["figures"].pop("workers")) == workers
    assert all(".zip/flowsieve" in home for _, home in answer["places"]), answer["places"]


def test_spark_submit_to_a_cluster_finds_the_same(
    master: str, events: Path, wanted: dict[str, Any], tmp_path: Path
) -> None:
    import pyspark

    submit = str(Path(str(pyspark.__file__)).parent / "bin" / "spark-submit")
    options = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
    answer = run([submit, "--master", master, *options, everywhere.__file__, str(events)], tmp_path)
    check_places(answer)
    assert answer["figures"] == wanted


def test_connect_to_a_cluster_finds_the_same(
    master: str, events: Path, wanted: dict[str, Any], tmp_path: Path
) -> None:
    with connect_server(tmp_path, master, SETTINGS) as address:
        answer = run([sys.executable, everywhere.__file__, str(events)], tmp_path, SPARK_REMOTE=address)
    check_places(answer)
    assert answer["figures"] == wanted


def _started_in(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder) in str((entry / "cwd").readlink()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
