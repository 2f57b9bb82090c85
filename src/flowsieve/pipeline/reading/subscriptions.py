"""Subscriptions from files. They are thousands, not millions: they live on the driver, as filters and as boxes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema, listed
from flowsieve.errors import BadFilter, BadInput
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.reading.ingest import MAX_BAD, SHOWN, Account
from flowsieve.pipeline.reading.rows import BROKEN, FILE, TEXT, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 1_000_000
PADRES = ("symbol", "attr", "op", "value")
OPERATORS = {"=": "==", "eq": "==", "==": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True, eq=False)
class Subscriptions:
    """Filters by id, in the order of the files, and the host of each where the files say it."""

    schema: Schema
    ids: tuple[str, ...]
    filters: tuple[Filter, ...]
    hosts: tuple[str, ...] | None = None

    @cached_property
    def boxes(self) -> BoxTable:
        return BoxTable.of(self.schema, self.filters)

    def __len__(self) -> int:
        return len(self.ids)

    def frame(self, spark: SparkSession) -> DataFrame:
        """`id` and `filter`, as they were read, and `host` where it is known."""
        columns = [self.ids, [filter.text for filter in self.filters]]
        names = "id string, filter string"
        if self.hosts is not None:
            columns, names = [*columns, self.hosts], f"{names}, host string"
        return spark.createDataFrame([*zip(*columns, strict=True)], names).coalesce(1)


class Aside(NamedTuple):
    """A row that was set aside."""

    file: str
    row: int
    kind: str
    reason: str
    text: str


class Subscribed(NamedTuple):
    """What was read, and what was set aside on the way."""

    path: str
    subscriptions: Subscriptions
    account: Account
    aside: tuple[Aside, ...]

    def checked(self, max_bad: float = MAX_BAD) -> Subscriptions:
        """The subscriptions, after the account was found good enough."""
        self.account.check(max_bad, self.path)
        return self.subscriptions


def read_subscriptions(
    spark: SparkSession, path: str | Path, schema: Schema, hosts: Collection[str] | None = None
) -> Subscribed:
    """The subscriptions in a file or folder: columns `id` and `filter`; without an id the rows are numbered.

    A column `host` says who subscribes. Where `hosts` are given it has to be there, and whoever is none of them breaks
    the row.

    The PADRES project's own columns do as well: a symbol and one comparison (attr, op, value), either or both. A filter
    that cannot be read, and an id that is there already, break their row; a filter that nothing in the content space
    can match is set aside as `outside`, which is no error by itself.
    """
    rows = Rows.read(spark, path)
    text_of = _reader(rows, str(path))
    if hosts is not None and "host" not in rows.names:
        raise BadInput(
            f"there is no column 'host' among {listed(rows.names)} to say who subscribes; right are id, host, filter",
            place=str(path),
        )
    columns = [rows.column(name).cast("string").alias(f"v{i}") for i, name in enumerate(rows.names)]
    found = (
        rows.numbered(rows.frame)
        .select(FILE, "row", BROKEN, TEXT, *columns)
        .orderBy(FILE, "row")
        .limit(MOST + 1)
    )
    listed_rows = found.collect()
    if len(listed_rows) > MOST:
        raise BadInput(
            f"has more than {MOST:,} subscriptions, which is the most that are planned for", place=str(path)
        )
    parse, aside = cache(lambda text: Filter.parse(text, schema)), []  # thousands often share a few texts
    filters: dict[str, Filter] = {}
    homes: list[str] = []
    for number, row in enumerate(listed_rows):
        cells = {name: row[f"v{i}"] or "" for i, name in enumerate(rows.names)}
        id = cells["id"] if "id" in rows.names else f"s{number}"
        try:
            if row[BROKEN]:
                raise BadInput(row[BROKEN])
            if not id or id in filters:
                raise BadInput(f"the id {id!r} is there already" if id else "the id is missing")
            if hosts is not None and cells["host"] not in hosts:
                raise BadInput(f"host {cells['host']!r} is none that the network reaches")
            filters[id] = parse(text_of(cells))
            homes.append(cells.get("host", ""))
        except BadInput as error:
            empty = isinstance(error, BadFilter) and "can match nothing" in error.message
            kind = "outside" if empty else "broken"
            aside.append(
                Aside(row[FILE], row["row"], kind, str(error).splitlines()[0], row[TEXT] or str(cells))
            )
    worst = sorted(aside, key=lambda fault: fault.kind != "broken")[:SHOWN]
    account = Account(
        len(listed_rows),
        sum(fault.kind == "broken" for fault in aside),
        0,
        sum(fault.kind == "outside" for fault in aside),
        tuple((fault.file, fault.row, fault.reason) for fault in worst),
    )
    made = Subscriptions(
        schema, tuple(filters), tuple(filters.values()), tuple(homes) if "host" in rows.names else None
    )
    return Subscribed(str(path), made, account, tuple(aside))


def _reader(rows: Rows, path: str) -> Callable[[Mapping[str, str]], str]:
    """How the text of a filter is found in the cells of a row."""
    if "filter" in rows.names:
        return lambda cells: cells["filter"]
    if all(name in rows.names for name in PADRES):
        return _padres
    raise BadInput(
        f"there is no column 'filter' among {listed(rows.names)}; right are id and filter", place=path
    )


def _padres(cells: Mapping[str, Any]) -> str:
    """A subscription of the PADRES project as a filter: `symbol == 'YHOO' and high > 11.25`."""
    said = [f"symbol == {cells['symbol']!r}"] if cells["symbol"] else []
    if cells["attr"]:
        operator = OPERATORS.get(cells["op"])
        if operator is None:
            raise BadInput(f"op is {cells['op']!r}; right is one of {', '.join(OPERATORS)}")
        said.append(f"{cells['attr']} {operator} {cells['value']}")
    return " and ".join(said) or "True"
