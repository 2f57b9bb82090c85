"""Subscriptions from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.subscriptions import read_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_filters_are_read_in_order_and_bad_ones_set_aside(
    spark: SparkSession, schema: Schema, tmp_path: Path
) -> None:
    path = tmp_path / "f.csv"
    path.write_text(
        "id,filter\n"
        "a,price < 10\n"
        'b,"side in (""buy"", ""sell"") and live"\n'
        "c,price <\n"
        "d,price > 5000\n"
        "a,price > 10\n"
        "e,name == 'x'\n"
        ",True\n"
    )
    read = read_subscriptions(spark, path, schema)
    assert read.subscriptions.ids == ("a", "b", "e")
    assert read.subscriptions.filters[0].text == "price < 10"
    assert [(row.row, row.kind) for row in read.aside] == [
        (4, "broken"),
        (5, "outside"),
        (6, "broken"),
        (8, "broken"),
    ]
    assert "the id 'a' is there already" in read.aside[2].reason
    assert (read.account.rows, read.account.good, read.account.broken, read.account.outside) == (7, 3, 3, 1)
    with pytest.raises(BadInput, match="3 of 7 rows are broken"):
        read.checked()
    assert len(read.checked(0.5).boxes) == 3


def test_the_columns_of_padres_are_understood(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.parse(
        {
            "symbol": {"type": "enum", "values": ["AAPL", "YHOO"]},
            "high": {"type": "float", "min": 0.0, "max": 99.0},
        }
    )
    path = tmp_path / "f.csv"
    path.write_text("symbol,attr,op,value,matches\nYHOO,high,>,11.25,21\nAAPL,,,,5\n,high,<,9,7\n")
    read = read_subscriptions(spark, path, schema).checked()
    assert [filter.text for filter in read.filters] == [
        "symbol == 'YHOO' and high > 11.25",
        "symbol == 'AAPL'",
        "high < 9",
    ]
    assert read.ids == ("s0", "s1", "s2")


def test_a_file_without_filters_is_bad_input(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": "a", "text": "True"}\n')
    with pytest.raises(BadInput, match="there is no column 'filter' among id, text"):
        read_subscriptions(spark, path, schema)
