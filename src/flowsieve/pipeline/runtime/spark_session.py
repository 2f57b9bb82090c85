"""One rule for where Spark runs; what runs on it is the same everywhere.

`session()` takes, in this order: the master that is asked for (`sc://…` is a Connect server), the Connect server
in `SPARK_REMOTE`, what spark-submit set, a session that is there already, and else this machine, `local[*]`.
Outside this machine's own processes what executors import of the package is sent along, so that they need Python,
NumPy, Numba, pandas and PyArrow, but no flowsieve.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.errors import PipelineError
from flowsieve.pipeline.runtime.hush import hushed
from flowsieve.pipeline.runtime.master import check_master
from flowsieve.pipeline.runtime.shipped_package import package_zip
from flowsieve.pipeline.runtime.spark_failure import failures, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = {  # what any session may set for itself
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",  # columns may differ by case alone
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # pandas writes such times, and Spark has no type for them
}
DRIVER = {  # what only a driver that we start can set
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    master: str | None = None, settings: Mapping[str, str] | None = None, alone: str = "local[*]"
) -> SparkSession:
    """The session to work in; `settings` are added to those that the pipeline always makes.

    `alone` is the master where nobody says another.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineError(
            "the pipeline needs PySpark; `pip install 'flowsieve[pipeline]'` brings it"
        ) from None
    remote = _remote(master)
    builder = SparkSession.builder
    for key, value in {**QUERY, **(settings or {})}.items():
        builder = builder.config(key, value)
    if remote is not None:
        builder = builder.remote(remote)
    else:
        _check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if master is None and not _submitted() and SparkSession.getActiveSession() is None:
            master = alone
        if master is not None:
            builder = builder.master(master)
            if master.startswith("local") or "//127.0.0.1:" in master or "//localhost:" in master:
                os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if not _submitted():
            quiet = resources.files("flowsieve.pipeline.runtime") / "quiet.properties"
            options = f"-Dlog4j2.configurationFile=file:{quiet}"
            options = f"{options} {(settings or {}).get('spark.driver.extraJavaOptions', '')}"
            for key, value in {**DRIVER, "spark.driver.extraJavaOptions": options.strip()}.items():
                builder = builder.config(key, value)
    try:
        with hushed():
            spark = builder.appName("flowsieve").getOrCreate()
        if not (spark.conf.get("spark.master") or "").startswith("local") or remote is not None:
            spark.addArtifact(str(package_zip()), pyfile=True)
    except failures(OSError) as error:
        where = remote or master or "the session that was set up"
        raise told(error, f"Spark does not start at {where}") from None
    return spark


def _remote(master: str | None) -> str | None:
    """The Connect server to use, if it is one; whatever is asked for has to be there."""
    asked = master or os.environ.get("SPARK_REMOTE") or None
    if asked is not None:
        check_master(asked)
    return asked if master is None or master.startswith("sc://") else None


def _submitted() -> bool:
    """Whether spark-submit started this process, and said where to run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise PipelineError("Spark needs Java 17, and there is no `java` in the path, nor a JAVA_HOME")
