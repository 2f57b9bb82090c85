"""What a cell means: its value, or what is wrong with it, as column expressions. `content.column` says the same.

Three things can be wrong. A row is *broken* if a cell cannot be read at all (`abc` for a number). An event is
*missing* a value (null, NaN, an empty cell; an empty cell of CSV is an empty string where the attribute is a string),
or is *outside* the content space: out of range, or an unknown word. Such events can be read, but not published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from flowsieve.content.schema import LARGEST_INT, Attribute, listed
from flowsieve.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
NANOSECONDS = 10**17  # whole numbers from here on are times: nanoseconds since 1970, from 1973 on
LAST_SECOND = 253_402_300_800  # the year 10000
SPARK_TYPES = {"int": "bigint", "float": "double", "enum": "string", "bool": "boolean", "string": "string"}
BROKEN, MISSING, OUTSIDE = "broken", "missing", "outside"
KINDS = (BROKEN, MISSING, OUTSIDE)


class ParsedCell(NamedTuple):
    """A value of the attribute's type, what breaks its row, and what keeps its event out; null where nothing does."""

    value: Column
    broken: Column
    fault: Column


def read_cell(attribute: Attribute, cell: Column, type: DataType) -> ParsedCell:
    """The cell of an attribute; a column whose type holds no such thing at all is bad input."""
    if not isinstance(type, StringType | NumericType | BooleanType):
        raise BadInput(
            f"column {attribute.name} holds {type.simpleString()}; {attribute.name} is {attribute.range_text}"
        )
    if attribute.kind == "string":
        return _string(attribute, cell)
    if attribute.kind in ("enum", "bool"):
        return _word(attribute, cell, type)
    return _number(attribute, cell, type)


def read_time(name: str, cell: Column, type: DataType) -> tuple[Column, Column]:
    """A time in UTC, null if the cell is empty; and what breaks its row.

    A number counts seconds since 1970, or milli-, micro- or nanoseconds where it would else be beyond the year 5000.
    """
    if isinstance(type, TimestampType | TimestampNTZType | DateType):
        return cell.cast("timestamp"), _no_fault()
    if isinstance(type, NumericType):
        time = _moment(cell.cast("double"))
        return time, _no_time(name, cell, time.isNull() & cell.isNotNull() & ~F.isnan(cell.cast("double")))
    if not isinstance(type, StringType):
        raise BadInput(
            f"column {name} holds {type.simpleString()}, not a time; right is such as 2026-01-31 12:00:00"
        )
    text = F.trim(cell)
    number = F.when(text.rlike(NUMBER), text.try_cast("double"))
    time = F.coalesce(_moment(number), text.try_cast("timestamp"))
    return time, _no_time(name, cell, time.isNull() & (text != ""))


def _no_time(name: str, cell: Column, wrong: Column) -> Column:
    said = F.concat(F.lit(f"{name} = "), _shown(cell), F.lit(" is not a time such as 2026-01-31 12:00:00"))
    return F.when(wrong, said)


def _moment(number: Column) -> Column:
    size = F.abs(number)
    unit = F.when(size < 1e11, 1.0).when(size < 1e14, 1e3).when(size < NANOSECONDS, 1e6).otherwise(1e9)
    return F.timestamp_seconds(F.when(size / unit < LAST_SECOND, number / unit))  # NaN is above all


def read_name(what: str, cell: Column) -> tuple[Column, Column]:
    """An id or a host, which every row has; and what breaks the row."""
    name = cell.cast("string")
    return name, F.when(name.isNull() | (name == ""), F.lit(f"the {what} is missing"))


def _string(attribute: Attribute, cell: Column) -> ParsedCell:
    value = cell.cast("string")
    return ParsedCell(value, _no_fault(), F.when(value.isNull(), _missing(attribute)))


def _word(attribute: Attribute, cell: Column, type: DataType) -> ParsedCell:
    word = cell.cast("string")
    if attribute.kind == "bool":
        text = F.lower(word)
        value = F.when(text.isin("true", "1"), F.lit(True)).when(text.isin("false", "0"), F.lit(False))
        right = "is neither true nor false"
    else:
        value = F.when(word.isin(list(attribute.values)), word)
        right = f"is none of {listed(attribute.values)}"
    empty = word.isNull() | (word == "") if isinstance(type, StringType) else word.isNull()
    unknown = _outside(attribute, _shown(cell), right)
    fault = F.when(value.isNull() & empty, _missing(attribute)).when(value.isNull(), unknown)
    return ParsedCell(value, _no_fault(), fault)


def _number(attribute: Attribute, cell: Column, type: DataType) -> ParsedCell:
    broken = _no_fault()
    beyond = F.lit(False)
    if isinstance(type, StringType):
        text = F.btrim(cell, F.lit(' \t"'))  # Spark quotes a NaN of JSON
        number = F.when(text.rlike(NUMBER), text.try_cast("double"))
        empty = text.isNull() | (text == "")
        said = _said(attribute, _shown(cell), f"is not a number; {attribute.name} is {attribute.range_text}")
        broken = F.when(number.isNull() & ~empty, said)
        if attribute.kind == "int":  # a float rounds 2^53 + 1
            beyond = F.abs(text.try_cast("decimal(38,10)")) > LARGEST_INT
    else:
        number = cell.cast("double")
        if attribute.kind == "int" and isinstance(type, IntegralType):
            beyond = (cell > LARGEST_INT) | (cell < -LARGEST_INT)
    shown = F.when(number == F.floor(number), F.floor(number).cast("string")).otherwise(number.cast("string"))
    fault = (
        F.when(F.isnan(number) | number.isNull(), _missing(attribute))
        .when(F.abs(number) == float("inf"), _outside(attribute, number.cast("string"), "is not finite"))
        .when(
            (number > attribute.max) | (beyond & (number > 0)),
            _outside(attribute, shown, f"is above {attribute.max}"),
        )
        .when((number < attribute.min) | beyond, _outside(attribute, shown, f"is below {attribute.min}"))
    )
    if attribute.kind == "int":
        fault = fault.when(number != F.floor(number), _outside(attribute, shown, "is not a whole number"))
    sound = F.when(broken.isNull() & fault.isNull(), number)
    return ParsedCell(sound.cast(SPARK_TYPES[attribute.kind]), broken, fault)


def _shown(cell: Column) -> Column:
    text = cell.cast("string")
    return F.concat(
        F.lit("'"), F.substring(text, 1, 60), F.when(F.length(text) > 60, F.lit("…'")).otherwise(F.lit("'"))
    )


def _said(attribute: Attribute, shown: Column, what: str) -> Column:
    return F.concat(F.lit(f"{attribute.name} = "), shown, F.lit(f" {what}"))


def _missing(attribute: Attribute) -> Column:
    return F.struct(F.lit(MISSING).alias("kind"), F.lit(f"{attribute.name} is missing").alias("reason"))


def _outside(attribute: Attribute, shown: Column, what: str) -> Column:
    return F.struct(F.lit(OUTSIDE).alias("kind"), _said(attribute, shown, what).alias("reason"))


def _no_fault() -> Column:
    return F.lit(None).cast("string")
