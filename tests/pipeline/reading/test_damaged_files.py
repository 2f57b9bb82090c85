"""Files that cannot be read: one line that names the file, and what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from flowsieve.cli.view import progress
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.runtime.work import working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 1023}})
ROWS = pd.DataFrame({"id": [f"e{i}" for i in range(500)], "a": [(7 * i) % 1024 for i in range(500)]})


def parquet(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    ROWS.to_parquet(path)
    path.write_bytes(spoil(path.read_bytes()))


def zipped(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path.write_bytes(spoil(gzip.compress(ROWS.to_csv(index=False).encode())))


DAMAGED = {
    "half.parquet": lambda path: parquet(path, lambda data: data[: len(data) // 2]),
    "spoilt.parquet": lambda path: parquet(path, lambda data: data[:40] + b"\xff" * 300 + data[340:]),
    "text.parquet": lambda path: path.write_text("hello"),
    "half.csv.gz": lambda path: zipped(path, lambda data: data[: len(data) // 2]),
    "plain.csv.gz": lambda path: path.write_text(ROWS.to_csv(index=False)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_bad_input_that_names_it(spark: SparkSession, tmp_path: Path, name: str) -> None:
    DAMAGED[name](tmp_path / name)
    with pytest.raises(BadInput) as raised, working(progress, None) as work:
        work.events(tmp_path / name, SCHEMA)
    text = str(raised.value)
    assert name in text and "cut off or damaged" in text
    assert "\n" not in text and "Traceback" not in text and len(text) < 500


def test_a_colon_in_a_path_is_told_before_spark_stumbles_over_it(spark: SparkSession, tmp_path: Path) -> None:
    ROWS.to_csv(tmp_path / "a:b.csv", index=False)
    with pytest.raises(BadInput, match=r"a:b\.csv: Spark reads no file with a colon in its path; rename it"):
        read_events(spark, tmp_path / "a:b.csv", SCHEMA)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_columns_may_differ_by_case_alone(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"both.{ending}"
    rows = ROWS.assign(A=-1)
    rows.to_parquet(path) if ending == "parquet" else rows.to_csv(path, index=False)
    assert read_events(spark, path, SCHEMA).account.good == len(ROWS)
