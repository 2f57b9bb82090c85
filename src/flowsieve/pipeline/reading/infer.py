"""A schema from the rows themselves: for each column the narrowest attribute that all of its cells fit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, FractionalType, IntegralType, NumericType, StringType

from flowsieve.content.schema import LARGEST_INT, RESERVED, Attribute, Schema
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.cell_values import NANOSECONDS, NUMBER
from flowsieve.pipeline.reading.ingest import identifier, time_column
from flowsieve.pipeline.reading.rows import BROKEN, Rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FEW_VALUES = 256  # an enum has at most so many; a column with more is a string
DOUBT = 1.2  # how far the estimate of distinct values may be off


class Inferred(NamedTuple):
    """The schema, and what became of the columns that are no attributes: (column, why)."""

    schema: Schema
    passed_over: tuple[tuple[str, str], ...]


def infer_schema(
    spark: SparkSession, path: str | Path, *, time: str | None = None, few_values: int = FEW_VALUES
) -> Inferred:
    """The schema of the events in a file or folder: two passes over them, the second for short lists of words.

    Whole numbers become an int and other numbers a float, both from the least to the greatest that is there; `true`
    and `false` a bool; other texts an enum if there are few, else a string. A column of CSV or JSON is judged by its
    texts. Times, lists and columns without any value become no attribute.
    """
    rows = Rows.read(spark, path)
    frame = rows.frame.where(F.col(BROKEN).isNull())
    timed = time_column(rows, None, time)
    skipped = [
        (name, "names the event, its host or its time") for name in rows.names if name in (*RESERVED, timed)
    ]
    columns: dict[str, tuple[str, DataType]] = {}
    for i, name in enumerate(rows.names):
        type = rows.type(name)
        if name in (*RESERVED, timed):
            continue
        if not isinstance(type, StringType | NumericType | BooleanType):
            skipped.append((name, f"holds {type.simpleString()}"))
        else:
            columns[name] = (f"c{i}", type)
    if not columns:
        raise BadInput("has no column that could be an attribute", place=str(path))
    found = frame.agg(*(figure for c, type in columns.values() for figure in _figures(c, type))).first()
    assert found is not None
    attributes: list[Attribute] = []
    for name, (c, type) in columns.items():
        attribute = _attribute(_free(name, attributes), c, type, found.asDict(), frame, few_values)
        if attribute is None:
            empty = found[f"{c}_said"] == 0
            skipped.append((name, "has no value at all" if empty else "counts nanoseconds: a time"))
        else:
            attributes.append(attribute)
    if not attributes:
        raise BadInput("has no value in any column", place=str(path))
    return Inferred(Schema(tuple(attributes)), tuple(skipped))


def _figures(c: str, type: DataType) -> list[Column]:
    """What is to be known of a column: how many cells say something, as what, from where to where."""
    text = isinstance(type, StringType)
    cell = F.btrim(F.col(c), F.lit(' \t"')) if text else F.col(c)
    number = F.when(cell.rlike(NUMBER), cell.try_cast("double")) if text else cell.cast("double")
    said = (cell != "") if text else cell.isNotNull()
    real = F.when(~F.isnan(number) & (F.abs(number) != float("inf")), number)
    figures = {
        "said": F.count(F.when(said & ~F.isnan(number), 1)),
        "numbers": F.count(F.when(number.isNotNull() & ~F.isnan(number), 1)),
        "fractions": F.count(F.when(real != F.floor(real), 1)),
        "least": F.min(real),
        "greatest": F.max(real),
    }
    if text:
        figures["bools"] = F.count(F.when(F.lower(cell).isin("true", "false"), 1))
        figures["words"] = F.approx_count_distinct(F.col(c), 0.05)
    return [figure.alias(f"{c}_{name}") for name, figure in figures.items()]


def _attribute(
    name: str, c: str, type: DataType, found: dict[str, object], frame: DataFrame, few_values: int
) -> Attribute | None:
    figures = {key.removeprefix(f"{c}_"): value for key, value in found.items() if key.startswith(f"{c}_")}
    said = figures["said"]
    if not said:
        return None
    if isinstance(type, BooleanType) or figures.get("bools") == said:
        return Attribute(name, "bool", 0, 1)
    if figures["numbers"] == said and figures["least"] is not None:
        least, greatest = float(str(figures["least"])), float(str(figures["greatest"]))
        if isinstance(type, IntegralType) and least >= NANOSECONDS:
            return None
        whole = not figures["fractions"] and max(abs(least), abs(greatest)) <= LARGEST_INT
        if whole and (isinstance(type, IntegralType | StringType) or not isinstance(type, FractionalType)):
            return Attribute(name, "int", int(least), int(greatest))
        if least == greatest:  # a float needs some room
            greatest = max(least + 1.0, math.nextafter(least, math.inf))
        return Attribute(name, "float", least + 0.0, greatest + 0.0)
    if int(str(figures["words"])) <= DOUBT * few_values:
        cells = frame.select(c).where(F.col(c) != "").distinct().limit(few_values + 1).collect()
        words = tuple(sorted(row[0] for row in cells))
        if len(words) <= few_values:
            return Attribute(name, "enum", 0, len(words) - 1, words)
    return Attribute.parse(name, {"type": "string"})


def _free(name: str, taken: list[Attribute]) -> str:
    """An attribute's name for a column."""
    word = identifier(name)
    if any(attribute.name == word for attribute in taken):
        raise BadInput(f"two columns would both be the attribute {word!r}; rename one of them")
    return word
