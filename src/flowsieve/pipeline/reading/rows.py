"""Rows of CSV, JSON lines and Parquet as one kind of table, which can tell where each row stands.

A row of text is one line. Cells of text stay text here, those of Parquet have their own types; what a cell means is
decided in `cell_values`. Finding where a row stands reads the files again, so only rows with a fault are looked up.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType
from pyspark.sql.window import Window

from flowsieve.content.schema import listed, shown
from flowsieve.errors import BadInput
from flowsieve.pipeline.runtime.spark_failure import failures, told

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = {
    "csv": ("csv", "csv.gz"),
    "json": ("jsonl", "ndjson", "json", "jsonl.gz", "json.gz"),
    "parquet": ("parquet",),
}
HEAD = 1000  # lines of JSON whose keys are the columns
BOM = "\ufeff"
FILE, PLACE, TEXT, BROKEN = "_file", "_place", "_text", "_broken"
OWN = (FILE, PLACE, TEXT, BROKEN)
CSV = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN, "quote": '"', "escape": '"'}
JSON = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN}


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of some files: column `names[i]` of the files is column `c<i>` of the frame.

    Beside them are `_file`, `_place` (a struct that `numbered` makes a row number of), `_text` (the line, null in
    Parquet) and `_broken` (what is wrong with the row as such, or null).
    """

    frame: DataFrame
    names: tuple[str, ...]
    format: str
    blocks: DataFrame | None = None  # of text: where each block of a file begins

    @classmethod
    def read(cls, spark: SparkSession, path: str | Path, needed: Sequence[str] = ()) -> Rows:
        """The rows of a file, or of all files of a folder; columns in `needed` are there in any case with JSON."""
        where, format = located(path)
        try:
            if format == "parquet":
                return _parquet(spark, where)
            lines = _lines(spark, where, format)
            return _csv(lines, where) if format == "csv" else _json(lines, where, needed)
        except failures() as error:
            why = told(error)
            raise why if isinstance(why, BadInput) else BadInput(str(why), place=str(path)) from None

    def column(self, name: str) -> Column:
        return F.col(f"c{self.names.index(name)}")

    def type(self, name: str) -> DataType:
        return self.frame.schema[f"c{self.names.index(name)}"].dataType

    def numbered(self, frame: DataFrame) -> DataFrame:
        """A frame of rows made of these, with `row`: the line in the file, from 1; or the row of a Parquet file."""
        if self.blocks is None:
            return frame.withColumn("row", F.col(f"{PLACE}.at") + 1)
        placed = frame.withColumn("_block", F.col(f"{PLACE}.block"))
        joined = placed.join(F.broadcast(self.blocks), [FILE, "_block"], "left")
        number = F.col("_before") + F.col(f"{PLACE}.at") - F.col("_first") + 1
        return joined.withColumn("row", number).drop("_block", "_before", "_first")


def located(path: str | Path) -> tuple[str, str]:
    """The path as Spark takes it, and the format of what is there."""
    text = str(path)
    if "://" in text:
        return text, _format_of([text], text)
    local = Path(text).absolute()
    if ":" in str(local):
        raise BadInput("Spark reads no file with a colon in its path; rename it", place=text)
    if local.is_dir() and not _formats([local.name]):
        names = [entry.name for entry in local.iterdir() if not entry.name.startswith((".", "_"))]
        return str(local), _format_of(names, text)
    if not local.exists():
        raise BadInput("there is no such file or folder", place=text)
    return str(local), _format_of([local.name], text)


def _format_of(names: Sequence[str], path: str) -> str:
    found = _formats(names)
    if len(found) == 1:
        return found.pop()
    right = "right are .csv, .jsonl and .parquet, the first two also with .gz"
    if not found:
        raise BadInput(
            f"{listed(names) or 'an empty folder'} is of no format that is known; {right}", place=path
        )
    raise BadInput(f"has files of several formats, {', '.join(sorted(found))}; right is one", place=path)


def _formats(names: Sequence[str]) -> set[str]:
    return {
        format
        for format, endings in FORMATS.items()
        for name in names
        if name.rstrip("/").lower().endswith(tuple(f".{ending}" for ending in endings))
    }


def _file_name() -> Column:
    return F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "/")


def _parquet(spark: SparkSession, path: str) -> Rows:
    frame = spark.read.parquet(path)
    names = tuple(frame.columns)
    columns = [F.col(f"`{name}`").alias(f"c{i}") for i, name in enumerate(names)]
    nothing = F.lit(None).cast("string")
    own = [
        _file_name().alias(FILE),
        F.struct(F.col("_metadata.row_index").alias("at")).alias(PLACE),
        nothing.alias(TEXT),
        nothing.alias(BROKEN),
    ]
    return Rows(frame.select(*columns, *own), names, "parquet")


def _lines(spark: SparkSession, path: str, format: str) -> DataFrame:
    place = F.struct(
        F.col("_metadata.file_block_start").alias("block"), F.monotonically_increasing_id().alias("at")
    )
    reader = spark.read
    if Path(path).is_dir():  # which may have other files in it
        reader = reader.option("pathGlobFilter", "*.{" + ",".join(FORMATS[format]) + "}")
    return reader.text(path).select(F.col("value").alias(TEXT), _file_name().alias(FILE), place.alias(PLACE))


def _blocks(lines: DataFrame) -> DataFrame:
    """How many lines of its file stand before each block, and the mark of its first line."""
    block = F.col(f"{PLACE}.block").alias("_block")
    counted = lines.groupBy(FILE, block).agg(
        F.min(f"{PLACE}.at").alias("_first"), F.count("*").alias("_lines")
    )
    earlier = Window.partitionBy(FILE).orderBy("_block").rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum("_lines").over(earlier), F.lit(0))
    return counted.select(FILE, "_block", "_first", before.alias("_before"))


def _csv(lines: DataFrame, path: str) -> Rows:
    first = lines.select(TEXT, FILE).first()
    if first is None:
        raise BadInput("is empty; right is a header and rows", place=path)
    header = first[TEXT].removeprefix(BOM)
    names = tuple(next(csv.reader([header]), []))
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"column {name!r} stands twice in the header; right is once", place=path)
    is_header = F.ltrim(F.col(TEXT), F.lit(BOM)) == F.lit(header)
    _check_headers(lines, is_header, header)
    cells = StructType(
        [StructField(f"c{i}", StringType()) for i in range(len(names))] + [StructField(BROKEN, StringType())]
    )
    record = F.from_csv(F.col(TEXT), cells.simpleString()[7:-1].replace(":", " "), CSV)
    columns = [F.coalesce(f"_cells.c{i}", F.lit("")).alias(f"c{i}") for i in range(len(names))]
    wrong = f"has not the {len(names)} fields of the header"
    frame = _parsed(lines.where(~is_header & (F.trim(TEXT) != "")), record, columns, wrong)
    return Rows(frame, names, "csv", _blocks(lines))


def _parsed(lines: DataFrame, record: Column, columns: Sequence[Column], wrong: str) -> DataFrame:
    """Lines as records, with the columns that are taken from `_cells`; of those that are none, what is wrong."""
    said = F.concat(F.lit(f"{wrong}: "), F.substring(BROKEN, 1, 200))
    return (
        lines.withColumn("_cells", record)
        .select(*columns, f"_cells.{BROKEN}", FILE, PLACE, TEXT)
        .withColumn(BROKEN, F.when(F.col(BROKEN).isNotNull(), said))
    )


def _check_headers(lines: DataFrame, is_header: Column, header: str) -> None:
    """Every file of a folder begins with the same header."""
    if len(lines.inputFiles()) < 2:
        return
    other = lines.groupBy(FILE).agg(F.max(is_header).alias("same")).where("not same").first()
    if other is not None:
        raise BadInput(
            f"has another header than the files beside it; right is {shown(header, 200)}", place=other[FILE]
        )


def _json(lines: DataFrame, path: str, needed: Sequence[str]) -> Rows:
    names: dict[str, None] = {}
    for row in lines.select(TEXT).limit(HEAD).collect():
        try:
            value = json.loads(row[TEXT])
        except ValueError:
            continue
        names.update(dict.fromkeys(value if isinstance(value, dict) else ()))
    if not names:
        raise BadInput("has no JSON object in its first lines; right is one a line", place=path)
    names.update(dict.fromkeys(needed))
    cells = StructType([StructField(name, StringType()) for name in (*names, BROKEN)])
    columns = [F.col(f"_cells.`{name}`").alias(f"c{i}") for i, name in enumerate(names)]
    record = F.from_json(F.col(TEXT), cells, JSON)
    frame = _parsed(lines.where(F.trim(TEXT) != ""), record, columns, "is no JSON object")
    return Rows(frame, tuple(names), "json", _blocks(lines))
