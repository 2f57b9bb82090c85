"""A small Spark cluster and a Connect server on this machine, for trials and tests: real ones, all in one folder.

They come from the pip package of PySpark, take ports that are free, work in a folder in which there is no source
of ours, and are gone when their `with` block ends.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flowsieve.errors import PipelineError
from flowsieve.lab.process import die_with_parent

PATIENCE = 120.0  # seconds that a part may take to start; a busy machine is slow
GRACE = 15.0  # seconds to end by itself, and its executors with it
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # of a master and workers, which do little
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def cluster(folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[str]:
    """A master and its workers; gives the address of the master, `spark://…`."""
    size = ["--host", "127.0.0.1", "--cores", str(cores), "--memory", memory, "--webui-port", "0"]
    with ExitStack() as stack:
        command = ["spark-class", MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(_part(folder / "master", command))
        address = master.said(r"Starting Spark master at (spark://\S+)")
        homes = [folder / f"worker{number}" for number in range(workers)]
        commands = [
            ["spark-class", WORKER, *size, "--work-dir", str(home / "work"), address] for home in homes
        ]
        started = [
            stack.enter_context(_part(home, command)) for home, command in zip(homes, commands, strict=True)
        ]
        for worker in started:
            worker.said(r"(Successfully registered) with master")
        yield address


@contextmanager
def connect_server(
    folder: Path, master: str = "local[2]", more: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A Connect server that runs on a master, with `more` settings; gives its address, `sc://…`."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        **(more or {}),
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = ["spark-submit", "--class", CONNECT, "--master", master, *options]
    with _part(folder / "connect", command) as server:
        port = server.said(r"Spark Connect server started at: \S*?:(\d+)")
        yield f"sc://127.0.0.1:{port}"


@dataclass(frozen=True)
class _Part:
    """A process that was started, and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, what: str) -> str:
        """Wait until the log says something; gives the part of it that is asked for."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = self.log.read_text(errors="replace")
            found = re.search(what, text)
            if found:
                return found[1]
            if self.process.poll() is not None:
                raise PipelineError(f"it ended at once; the end of {self.log}: {text[-500:]}")
            time.sleep(0.05)
        raise PipelineError(f"it is not ready after {PATIENCE:.0f} s; the end of {self.log}: {text[-500:]}")


@contextmanager
def _part(folder: Path, command: Sequence[str]) -> Iterator[_Part]:
    """A process with its own folder and log."""
    import pyspark

    home = Path(str(pyspark.__file__)).parent
    folder.mkdir(parents=True)
    log = folder / "log"
    place = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    light = {"SPARK_DAEMON_JAVA_OPTS": LIGHT, "SPARK_DAEMON_MEMORY": "512m"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPARK"))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin" / command[0]), *command[1:]],
            cwd=folder,
            env=kept | place | light,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
    try:
        yield _Part(process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(GRACE)
