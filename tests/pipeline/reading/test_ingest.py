"""Events from files: what they mean, what is set aside and why, and where that stands."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.ingest import identifier, read_events
from flowsieve.scenario.event_files import read_events as read_events_of_the_core

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADER = "id,price,ratio,side,live,name\n"
GOOD = 'e1,60,0.5,buy,true,ann\ne2,7.0,-1,sell,0,\ne3, 8 ,1e-3,buy,FALSE,"a, ""b"""\n'
OUTSIDE = {
    "o1,1024,0,buy,1,x": "price = 1024 is above 1023",
    "o2,-1,0,buy,1,x": "price = -1 is below 0",
    "o3,1.5,0,buy,1,x": "price = 1.5 is not a whole number",
    "o4,1,0,hold,1,x": "side = 'hold' is none of buy, sell",
    "o5,1,0,buy,maybe,x": "live = 'maybe' is neither true nor false",
    "o6,inf,0,buy,1,x": "price = Infinity is not finite",
    "o7,1,9007199254740993,buy,1,x": "ratio = 9007199254740992 is above 1.0",
}
MISSING = {
    "m1,,0,buy,1,x": "price is missing",
    "m2,1,NaN,buy,1,x": "ratio is missing",
    "m3,1,0,,1,x": "side is missing",
    "m4,1,0,buy,,x": "live is missing",
}
BROKEN = {
    "b1,abc,0,buy,1,x": "price = 'abc' is not a number; price is an int from 0 to 1023",
    "b2,1_000,0,buy,1,x": "price = '1_000' is not a number; price is an int from 0 to 1023",
    "b3,1d,0,buy,1,x": "price = '1d' is not a number; price is an int from 0 to 1023",
    "b4,1,0x1p3,buy,1,x": "ratio = '0x1p3' is not a number; ratio is a float from -1.0 to 1.0",
    ",1,0,buy,1,x": "the id is missing",
    "b5,1,0,buy,1": "has not the 6 fields of the header: b5,1,0,buy,1",
    "b6,1,0,buy,1,x,y": "has not the 6 fields of the header: b6,1,0,buy,1,x,y",
}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_csv_file_gives_events_of_the_declared_types(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    events = read_events(spark, write(tmp_path / "e.csv", HEADER + GOOD), schema).checked()
    assert events.dtypes == [
        ("id", "string"),
        ("price", "bigint"),
        ("ratio", "double"),
        ("side", "string"),
        ("live", "boolean"),
        ("name", "string"),
    ]
    assert [tuple(row) for row in events.orderBy("id").collect()] == [
        ("e1", 60, 0.5, "buy", True, "ann"),
        ("e2", 7, -1.0, "sell", False, ""),
        ("e3", 8, 0.001, "buy", False, 'a, "b"'),
    ]


def test_every_row_that_cannot_be_used_is_set_aside_with_its_row_and_reason(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    kinds = {"outside": OUTSIDE, "missing": MISSING, "broken": BROKEN}
    lines = [(line, kind, reason) for kind, faults in kinds.items() for line, reason in faults.items()]
    path = write(tmp_path / "e.csv", HEADER + GOOD + "\n" + "".join(f"{line}\n" for line, _, _ in lines))
    intake = read_events(spark, path, schema)
    found = [
        (row.file, row.row, row.kind, row.reason, row.text) for row in intake.aside.orderBy("row").collect()
    ]
    wanted = [(str(path), 6 + i, kind, reason, line) for i, (line, kind, reason) in enumerate(lines)]
    assert found == wanted  # line 1 is the header, line 5 is blank
    account = intake.account
    assert (account.rows, account.good) == (3 + len(lines), 3)
    assert (account.outside, account.missing, account.broken) == (len(OUTSIDE), len(MISSING), len(BROKEN))


def test_what_is_set_aside_is_what_the_core_rejects(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    path = write(tmp_path / "e.csv", HEADER + GOOD + "\n".join([*OUTSIDE, *MISSING]) + "\n")
    batch = read_events_of_the_core(path, schema)
    faulty, _ = batch.faults()
    kept = [row.id for row in read_events(spark, path, schema).events.collect()]
    assert sorted(kept) == sorted(batch.ids[~faulty])


def test_too_many_broken_rows_are_an_error_that_names_the_first(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    path = write(tmp_path / "e.csv", HEADER + GOOD + "b1,abc,0,buy,1,x\n")
    intake = read_events(spark, path, schema)
    with pytest.raises(BadInput, match=r"1 of 4 rows are broken, 25.0%; allowed are 1.0%") as error:
        intake.checked()
    assert f"{path} row 5: price = 'abc' is not a number" in str(error.value)
    assert intake.checked(max_bad=0.25).count() == 3


def test_missing_values_are_no_error_but_having_nothing_left_is(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    lines = "\n".join(MISSING) + "\n"
    assert (
        read_events(spark, write(tmp_path / "e.csv", HEADER + GOOD + lines), schema).checked(0.0).count() == 3
    )
    with pytest.raises(BadInput, match="none of the 4 rows can be used"):
        read_events(spark, write(tmp_path / "none.csv", HEADER + lines), schema).checked()


def test_json_lines_mean_what_csv_means(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    objects: list[Any] = [
        {"id": "e1", "price": 60, "ratio": 0.5, "side": "buy", "live": True, "name": "ann", "more": [1]},
        {"id": 2, "price": "7", "ratio": -1, "side": "sell", "live": 0, "name": ""},
        {"id": "m1", "price": None, "ratio": 0, "side": "buy", "live": True, "name": "x"},
        {"id": "m2", "price": 1, "ratio": float("nan"), "side": "buy", "live": True, "name": "x"},
        {"id": "m3", "price": 1, "ratio": 0, "side": "buy", "live": True},
        {"id": "o1", "price": 5000, "ratio": 0, "side": "buy", "live": True, "name": "x"},
        {"id": "b1", "price": {"a": 1}, "ratio": 0, "side": "buy", "live": True, "name": "x"},
        [1, 2],
    ]
    text = "".join(json.dumps(value) + "\n" for value in objects) + "{broken\n"
    intake = read_events(spark, write(tmp_path / "e.jsonl", text), schema)
    rows = [tuple(row) for row in intake.events.orderBy("id").collect()]
    assert rows == [("2", 7, -1.0, "sell", False, ""), ("e1", 60, 0.5, "buy", True, "ann")]
    account = intake.account
    assert (account.missing, account.outside, account.broken) == (3, 1, 3)
    assert [row.row for row in intake.aside.orderBy("row").collect()] == [3, 4, 5, 6, 7, 8, 9]


def test_parquet_keeps_its_types_and_tells_rows(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": ["e1", "m1", "o1"],
            "price": [60, 1, 1024],
            "ratio": [0.5, None, 0.0],
            "side": ["buy", "sell", "buy"],
            "live": [True, False, True],
            "name": ["", "x", "y"],
            "host": ["h1", "h2", "h3"],
            "time": pd.to_datetime(["2026-01-01 12:00:00"] * 3),
        }
    )
    frame.to_parquet(tmp_path / "e.parquet")
    intake = read_events(spark, tmp_path / "e.parquet", schema)
    (row,) = intake.events.withColumn("time", intake.events["time"].cast("string")).collect()
    assert tuple(row)[:4] == ("e1", "2026-01-01 12:00:00", "h1", 60)
    assert [(row.row, row.reason) for row in intake.aside.orderBy("row").collect()] == [
        (2, "ratio is missing"),
        (3, "price = 1024 is above 1023"),
    ]


def test_a_folder_is_all_its_files_and_rows_are_numbered_within_each(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    write(tmp_path / "a.csv", HEADER + GOOD)
    (tmp_path / "b.csv.gz").write_bytes(
        gzip.compress((HEADER + "x1,1,0,buy,1,n\nb1,abc,0,buy,1,n\n").encode())
    )
    intake = read_events(spark, tmp_path, schema)
    assert intake.account.good == 4
    assert [(Path(row.file).name, row.row) for row in intake.aside.collect()] == [("b.csv.gz", 3)]


def test_lines_are_numbered_through_all_blocks_of_a_large_file(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    bad = {500, 2_001, 4_999}
    lines = [f"e{i},{'abc' if i in bad else i % 1000},0,buy,1,n\n" for i in range(5_000)]
    path = write(tmp_path / "e.csv", HEADER + "".join(lines))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16384")
    try:
        intake = read_events(spark, path, schema)
        assert intake.rows.frame.select("_place.block").distinct().count() > 3
        assert [row.row for row in intake.aside.orderBy("row").collect()] == sorted(i + 2 for i in bad)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


def test_rows_without_an_id_are_named_after_their_place(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.parse({"PM2_5": {"type": "float", "min": 0.0, "max": 9.0}})
    events = read_events(spark, write(tmp_path / "e.csv", "PM2.5\n1.5\n2.5\n"), schema).checked()
    assert [tuple(row) for row in events.orderBy("id").collect()] == [("e.csv:2", 1.5), ("e.csv:3", 2.5)]


def test_a_time_is_read_in_utc_and_one_that_is_none_breaks_its_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = Schema.parse({"a": {"type": "int", "min": 0, "max": 9}})
    cells = [
        "2026-01-31 12:00:00",
        "2026-01-31T13:00:00+01:00",
        "1769860800",
        "",
        "1769860800000",
        "noon",
        "1e99",
    ]
    text = "id,when,a\n" + "".join(f"{i},{cell},1\n" for i, cell in enumerate(cells))
    intake = read_events(spark, write(tmp_path / "e.csv", text), schema, time="when")
    times = [row.time for row in intake.events.orderBy("id").selectExpr("cast(time as string)").collect()]
    noon = "2026-01-31 12:00:00"
    assert times == [noon, noon, noon, None, noon]
    assert [row.reason for row in intake.aside.orderBy("row").collect()] == [
        "when = 'noon' is not a time such as 2026-01-31 12:00:00",
        "when = '1e99' is not a time such as 2026-01-31 12:00:00",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.csv", "id,price\n1,2\n", "there is no column 'ratio'; there are id, price"),
        ("e.csv", "", "is empty; right is a header and rows"),
        ("e.csv", "id,id\n1,2\n", "column 'id' stands twice in the header"),
        ("e.txt", "id\n", "e.txt is of no format that is known; right are .csv, .jsonl and .parquet"),
        ("e.jsonl", "nothing\n", "has no JSON object in its first lines"),
    ],
)
def test_a_file_that_holds_no_such_events_is_bad_input(
    spark: SparkSession, schema: Schema, tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(BadInput) as error:
        read_events(spark, write(tmp_path / name, text), schema).checked()
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)


def test_files_of_a_folder_have_one_header_and_one_format(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    write(tmp_path / "a.csv", HEADER + GOOD)
    write(tmp_path / "b.csv", "id,side\n1,buy\n")
    with pytest.raises(BadInput, match="has another header than the files beside it"):
        read_events(spark, tmp_path, schema)
    write(tmp_path / "c.jsonl", "{}\n")
    with pytest.raises(BadInput, match="has files of several formats, csv, json; right is one"):
        read_events(spark, tmp_path, schema)


def test_a_path_that_is_not_there_is_bad_input(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file or folder"):
        read_events(spark, tmp_path / "none.csv", schema)


def test_a_columns_name_becomes_an_attributes_name() -> None:
    assert [identifier(name) for name in ("price", "PM2.5", "a b", "1st", "ﬁt")] == [
        "price",
        "PM2_5",
        "a_b",
        "_1st",
        "fit",
    ]
