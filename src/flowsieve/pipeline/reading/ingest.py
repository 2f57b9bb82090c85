"""Events and subscriptions from files; rows that cannot be used are set aside, each with its place and the reason.

What is wrong with a row is one of `cell_values.KINDS`. Broken rows are a mistake in the files: more than a share of
them is an error. An event without a value for some attribute, or outside the content space, cannot be published, so
no subscription matches it: such events are set aside and counted, and are no error by themselves.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

from flowsieve.content.schema import Schema, listed, nearest_of
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.cell_values import BROKEN as BROKEN_KIND
from flowsieve.pipeline.reading.cell_values import MISSING, OUTSIDE, read_cell, read_name, read_time
from flowsieve.pipeline.reading.rows import BROKEN, FILE, OWN, TEXT, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_BAD = 0.01
SHOWN = 5  # reasons that are told


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the rows of some files, and the first reasons: (file, row, reason)."""

    rows: int
    broken: int
    missing: int
    outside: int
    reasons: tuple[tuple[str, int | None, str], ...] = ()

    @property
    def good(self) -> int:
        return self.rows - self.broken - self.missing - self.outside

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("rows", "good", BROKEN_KIND, MISSING, OUTSIDE)}
        return counts | {"first_reasons": [*self.told()]}

    def told(self) -> Iterator[str]:
        """The first reasons, as people read them."""
        for file, row, reason in self.reasons:
            yield f"{file} row {'?' if row is None else row}: {reason}"

    def check(self, max_bad: float, what: str) -> None:
        """Raise if more than that share of the rows is broken, or if none is left."""
        first = "".join(f"\n  {reason}" for reason in self.told())
        if self.broken > max_bad * self.rows:
            share = f"{self.broken:,} of {self.rows:,} rows are broken, {self.broken / self.rows:.1%}"
            raise BadInput(f"{share}; allowed are {max_bad:.1%} (--max-bad){first}", place=what)
        if not self.good:
            raise BadInput(f"none of the {self.rows:,} rows can be used{first}", place=what)


@dataclass(frozen=True, eq=False)
class IngestedEvents:
    """Events as they were read: those that can be published, those set aside, and how many there are of each.

    The frames are lazy: taking `account` reads the files once, using `events` reads them again.
    """

    path: str
    schema: Schema
    rows: Rows
    judged: DataFrame  # the columns of `events`, those that `Rows` adds, and `_fault`

    @cached_property
    def events(self) -> DataFrame:
        """`id`, perhaps `time` and `host`, and the attributes in their order, of events without fault."""
        names = [name for name in self.judged.columns if name not in (*OWN, "_fault")]
        return self.judged.where(F.col("_fault").isNull()).select(*names)

    @cached_property
    def aside(self) -> DataFrame:
        """`file`, `row`, `kind`, `reason` and `text` of the rows that were set aside."""
        faulty = self.rows.numbered(self.judged.where(F.col("_fault").isNotNull()))
        return faulty.select(
            F.col(FILE).alias("file"), "row", "_fault.kind", "_fault.reason", F.col(TEXT).alias("text")
        )

    @cached_property
    def account(self) -> Account:
        counts = {row["kind"]: row["count"] for row in self.judged.groupBy("_fault.kind").count().collect()}
        faults = {kind: counts.get(kind, 0) for kind in (BROKEN_KIND, MISSING, OUTSIDE)}
        reasons: tuple[tuple[str, int | None, str], ...] = ()
        if any(faults.values()):
            worst = self.aside.where(F.col("kind") == BROKEN_KIND) if faults[BROKEN_KIND] else self.aside
            reasons = tuple((row["file"], row["row"], row["reason"]) for row in worst.limit(SHOWN).collect())
        return Account(sum(counts.values()), **faults, reasons=reasons)

    def checked(self, max_bad: float = MAX_BAD) -> DataFrame:
        """The events, after the account was found good enough."""
        self.account.check(max_bad, self.path)
        return self.events


def read_events(
    spark: SparkSession, path: str | Path, schema: Schema, *, time: str | None = None
) -> IngestedEvents:
    """The events in a file or folder.

    A column stands for the attribute that has its name, or else the name that `identifier` makes of it. Without a
    column `id` the rows are named after their file and number. `time` names the column of times; without it that is
    the column `time`, or the only one of a type of times, where the schema has no such attribute.
    """
    rows = Rows.read(spark, path, schema.names)
    try:
        return IngestedEvents(str(path), schema, *_judged(rows, schema, time))
    except BadInput as error:
        raise error.at(str(path)) from None


def joined_events(intakes: Sequence[IngestedEvents]) -> DataFrame:
    """The events of several files; where some say times or hosts and others do not, null stands for these."""
    frames = [intake.events for intake in intakes]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def identifier(name: str) -> str:
    """The attribute that a column is: its name, with `_` for what an attribute's name may not have."""
    word = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))
    word = word if word.isidentifier() else f"_{word}"
    return f"{word}_" if keyword.iskeyword(word) else word


def time_column(rows: Rows, schema: Schema | None, asked: str | None) -> str | None:
    """The column of times, if there is one."""
    if asked is not None:
        if asked not in rows.names:
            right = f"there are {listed(rows.names)}{nearest_of(asked, rows.names)}"
            raise BadInput(f"there is no column {asked!r} for the time; {right}")
        return asked
    timed = [name for name in rows.names if isinstance(rows.type(name), TimestampType | TimestampNTZType)]
    found = "time" if "time" in rows.names else timed[0] if len(timed) == 1 else None
    return None if found is None or (schema is not None and identifier(found) in schema) else found


def column_of(rows: Rows, name: str) -> str:
    """The column that holds an attribute."""
    if name in rows.names:
        return name
    alike = [column for column in rows.names if identifier(column) == name]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise BadInput(f"the columns {listed(alike)} could all be {name!r}; right is one of that very name")
    raise BadInput(
        f"there is no column {name!r}; there are {listed(rows.names)}{nearest_of(name, rows.names)}"
    )


def _judged(rows: Rows, schema: Schema, time: str | None) -> tuple[Rows, DataFrame]:
    frame, values, broken, faults = rows.frame, [], [F.col(BROKEN)], []
    if "id" in rows.names:
        id, fault = read_name("id", rows.column("id"))
        broken.append(fault)
    else:
        frame = rows.numbered(frame)
        id = F.concat_ws(":", F.element_at(F.split(FILE, "/"), -1), F.col("row"))
    values.append(id.alias("id"))
    timed = time_column(rows, schema, time)
    if timed is not None:
        value, fault = read_time(timed, rows.column(timed), rows.type(timed))
        values.append(value.alias("time"))
        broken.append(fault)
    if "host" in rows.names:
        value, fault = read_name("host", rows.column("host"))
        values.append(value.alias("host"))
        broken.append(fault)
    for attribute in schema:
        column = column_of(rows, attribute.name)
        cell = read_cell(attribute, rows.column(column), rows.type(column))
        values.append(cell.value.alias(attribute.name))
        broken.append(cell.broken)
        faults.append(cell.fault)
    reason = F.coalesce(*broken)
    breach = F.when(reason.isNotNull(), F.struct(F.lit(BROKEN_KIND).alias("kind"), reason.alias("reason")))
    return rows, frame.select(*values, *OWN, F.coalesce(breach, *faults).alias("_fault"))
