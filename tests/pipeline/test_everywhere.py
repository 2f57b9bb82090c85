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
from replay_scenario import write_scenario

import flowsieve
from flowsieve.pipeline.runtime.shipped_package import package_zip
from flowsieve.testing.spark_cluster import cluster, connect_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

PATIENCE = 500  # seconds for one run, on a machine that has much else to do
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.cores.max": "2",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
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
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where executors keep what they compile; what is compiled here already need not be compiled by them."""
    folder, root = tmp_path_factory.mktemp("kernels"), Path(str(flowsieve.__file__)).parent
    for path in root.rglob("__pycache__/*.nb[ic]"):
        kept = folder / package_zip().name / path.parent.parent.relative_to(root.parent) / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Events to read, and a scenario to replay."""
    folder = tmp_path_factory.mktemp("data")
    rows = "".join(f"{i},{i % 90},{i / 8},{'north' if i % 3 else 'south'}\n" for i in range(2_000))
    (folder / "readings.csv").write_text("id,level,ratio,zone\n" + rows + "x,1\n2000,,1.5,north\n")
    return [str(folder / "readings.csv"), str(write_scenario(folder, 2_000))]


@pytest.fixture(scope="module")
def wanted(spark: SparkSession, files: list[str]) -> dict[str, Any]:
    """What this machine finds."""
    found: dict[str, Any] = json.loads(json.dumps(everywhere.figures(spark, *files)))
    assert found["account"]["broken"] == 1
    assert found["account"]["missing"] == 1
    assert found["passed_over"] == []
    assert found["replayed"]["deliveries"] > 0
    assert len(found["sets"]) == 4
    assert len(found.pop("workers")) == 1
    kinds = {method: plan["kind"] for method, plan in found["plans"].items()}
    assert set(kinds.values()) == {"regular", "selective", "adaptive", "levelwise", "kd"}
    return found


@pytest.fixture(scope="module")
def streamed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a stream finds on this machine."""
    found: dict[str, Any] = json.loads(
        json.dumps(everywhere.streamed(spark, tmp_path_factory.mktemp("streamed")))
    )
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


def check_places(answer: dict[str, Any], log: Path) -> None:
    """Both executors worked, had the package from what was sent to them, and had their part in all that counts."""
    workers = {worker for worker, _ in answer["places"]}
    assert len(workers) == 2, answer["places"]
    assert set(answer["figures"].pop("workers")) == workers
    assert all(".zip/flowsieve" in home for _, home in answer["places"]), answer["places"]
    idle = {name: who for name, who in executors_by_phase(log).items() if len(who) != 2}
    assert not idle


def executors_by_phase(log: Path) -> dict[str, set[str]]:
    """The executors that finished tasks of each phase, as Spark's own log of events has it."""
    found: dict[str, set[str]] = {name: set() for name in everywhere.PHASES}
    phase_of: dict[int, str] = {}
    (path,) = log.iterdir()
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            tags = event["Properties"].get("spark.job.tags", "")
            named = [name for name in everywhere.PHASES if name in tags]
            phase_of |= {stage: name for stage in event["Stage IDs"] for name in named}
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in phase_of:
            found[phase_of[event["Stage ID"]]].add(event["Task Info"]["Executor ID"])
    return found


def logging_to(folder: Path, kernels: Path) -> tuple[dict[str, str], Path]:
    """Settings with which Spark writes its log of events, and where that is then."""
    log = folder / "events"
    log.mkdir()
    more = {"spark.eventLog.dir": log.as_uri(), "spark.executorEnv.NUMBA_CACHE_DIR": str(kernels)}
    return SETTINGS | more, log


def test_spark_submit_to_a_cluster_finds_the_same(
    master: str,
    kernels: Path,
    files: list[str],
    wanted: dict[str, Any],
    streamed: dict[str, Any],
    tmp_path: Path,
) -> None:
    import pyspark

    submit = str(Path(str(pyspark.__file__)).parent / "bin" / "spark-submit")
    settings, log = logging_to(tmp_path, kernels)
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    answer = run([submit, "--master", master, *options, everywhere.__file__, *files], tmp_path)
    check_places(answer, log)
    assert answer["figures"] == wanted
    assert answer["streamed"] == streamed
    assert streamed["totals"]["events"] == 3_200
    assert max(streamed["drift"]) > 0.5


def test_connect_to_a_cluster_finds_the_same(
    master: str, kernels: Path, files: list[str], wanted: dict[str, Any], tmp_path: Path
) -> None:
    settings, log = logging_to(tmp_path, kernels)
    with connect_server(tmp_path, master, settings) as address:
        answer = run([sys.executable, everywhere.__file__, *files], tmp_path, SPARK_REMOTE=address)
    check_places(answer, log)
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
