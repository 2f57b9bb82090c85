"""A schema found in the rows, and schema files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.infer import infer_schema
from flowsieve.pipeline.reading.ingest import read_events
from flowsieve.pipeline.reading.schema_file import read_schema, write_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = Schema.parse(
    {
        "größe": {"type": "float", "min": -1e-300, "max": 1e300},
        "n": {"type": "int", "min": -(2**53), "max": 2**53},
        "word": {"type": "enum", "values": ['"', "\\", "é\x7f\n", "'", "🙂", ""]},
        "flag": {"type": "bool"},
        "s": {"type": "string"},
        "p": {"type": "string", "prefix": True},
    }
)


def test_each_column_becomes_the_narrowest_attribute(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    rows = [
        f"{i},{i - 3},{i / 4},{'x' if i % 2 else 'y'},{'true' if i % 2 else 'False'},w{i},,7"
        for i in range(40)
    ]
    path.write_text("id,n,f,k,b,s,empty,c\n" + "\n".join(rows) + "\n40,,nan,,,,,\n")
    found = infer_schema(spark, path, few_values=10)
    assert found.schema.to_json() == {
        "n": {"type": "int", "min": -3, "max": 36},
        "f": {"type": "float", "min": 0.0, "max": 9.75},
        "k": {"type": "enum", "values": ["x", "y"]},
        "b": {"type": "bool"},
        "s": {"type": "string", "prefix": False},
        "c": {"type": "int", "min": 7, "max": 7},
    }
    assert dict(found.passed_over) == {
        "id": "names the event, its host or its time",
        "empty": "has no value at all",
    }
    account = read_events(spark, path, found.schema).account
    assert (account.good, account.missing) == (40, 1)


def test_types_of_parquet_decide_and_names_are_made_fit(spark: SparkSession, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-01-01", "2026-01-02"]),
            "PM2.5": [1.0, 1.0],
            "class": [1, 2],
            "on": [True, False],
            "huge": [2**60, 1],
        }
    )
    frame.to_parquet(tmp_path / "e.parquet")
    found = infer_schema(spark, tmp_path / "e.parquet")
    assert found.schema.to_json() == {
        "PM2_5": {"type": "float", "min": 1.0, "max": 2.0},  # a float needs some room
        "class_": {"type": "int", "min": 1, "max": 2},
        "on": {"type": "bool"},
        "huge": {"type": "float", "min": 1.0, "max": 2.0**60},
    }
    assert dict(found.passed_over) == {"when": "counts nanoseconds: a time"}
    assert infer_schema(spark, tmp_path / "e.parquet", time="when").schema == found.schema
    events = read_events(spark, tmp_path / "e.parquet", found.schema, time="when").events
    times = [row.time for row in events.orderBy("id").selectExpr("cast(time as string)").collect()]
    assert times == ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]


def test_two_columns_that_would_be_one_attribute_are_bad_input(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("a.b,a-b\n1,2\n")
    with pytest.raises(BadInput, match="two columns would both be the attribute 'a_b'"):
        infer_schema(spark, path)


def test_a_schema_file_reads_as_it_was_written(tmp_path: Path) -> None:
    write_schema(tmp_path / "s.toml", ODD, "two\nlines")
    assert read_schema(tmp_path / "s.toml") == ODD


def test_a_schema_files_mistakes_are_told_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[schema]\na = { type = "int", min = 0 }\nb = { type = "flot" }\n')
    with pytest.raises(BadInput) as error:
        read_schema(path)
    assert f"{path} line 2" in str(error.value)
    assert f"{path} line 3" in str(error.value)
    path.write_text("x = 1\n")
    with pytest.raises(BadInput, match=r"there is no \[schema\]"):
        read_schema(path)
