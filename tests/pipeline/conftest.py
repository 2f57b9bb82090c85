"""One Spark session for all tests of the pipeline; where there is no Java, or no PySpark, they are skipped."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flowsieve.content.schema import Schema
from flowsieve.pipeline.runtime.spark_session import QUERY, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parent))

PARTITIONS = "spark.sql.shuffle.partitions"
QUICK = {
    PARTITIONS: "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def _spark_is_there() -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")


@pytest.fixture(scope="session")
def spark(_spark_is_there: None) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUERY, PARTITIONS, QUICK[PARTITIONS])  # or the first command here would set it back
        spark = session("local[2]", QUICK)
        yield spark
        spark.stop()


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.parse(
        {
            "price": {"type": "int", "min": 0, "max": 1023},
            "ratio": {"type": "float", "min": -1.0, "max": 1.0},
            "side": {"type": "enum", "values": ["buy", "sell"]},
            "live": {"type": "bool"},
            "name": {"type": "string"},
        }
    )
