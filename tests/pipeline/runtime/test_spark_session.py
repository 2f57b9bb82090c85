"""Where Spark runs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flowsieve.errors import BadInput, PipelineError
from flowsieve.pipeline.runtime.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_that_is_there_is_used_again(spark: SparkSession) -> None:
    assert session() is spark
    assert spark.conf.get("spark.master") == "local[2]"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_master_that_is_none_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"there is no master 'cluster:7077'; right is local\[\*\]"):
        session("cluster:7077")


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PipelineError, match="Spark needs Java 17"):
        session("local[2]")


def test_the_core_and_the_command_line_start_without_pyspark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; import flowsieve.cli.main, flowsieve.cli.pipeline;"
        "from flowsieve.errors import PipelineError;"
        "from flowsieve.pipeline.runtime.spark_session import session\n"
        "try: session()\n"
        "except PipelineError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "the pipeline needs PySpark" in done.stdout, done.stderr
