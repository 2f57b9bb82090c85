"""Landed files: what counts of them, and what is set aside with which reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flowsieve.content.schema import Schema
from flowsieve.pipeline.stream.landed_files import LandedRows, TimeLimits, read_landed
from flowsieve.testing.lander import Lander, now

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": -1.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "live": {"type": "bool"},
        "name": {"type": "string"},
    }
)
GOOD = {
    "price": [1, 2],
    "ratio": [0.5, -0.5],
    "side": ["buy", "sell"],
    "live": [True, False],
    "name": ["a", ""],
}
MINUTE = 60_000_000


@pytest.fixture
def lander(tmp_path: Path) -> Lander:
    return Lander(tmp_path, SCHEMA)


def limits(since: int = 0) -> TimeLimits:
    return TimeLimits(since, now(), MINUTE)


def read(path: Path, limits: TimeLimits, schema: Schema = SCHEMA) -> LandedRows:
    return read_landed(path.as_uri(), path.read_bytes(), schema, limits)


def test_what_is_right_counts(lander: Lander) -> None:
    landed = read(lander.events(GOOD, at=[5, 7], waited=0), limits())
    assert (landed.account.rows, landed.account.good, landed.account.reasons) == (2, 2, ())
    assert (landed.account.first, landed.account.last) == (5, 7)
    assert landed.events is not None
    assert landed.events.event(1) == {"price": 2, "ratio": -0.5, "side": "sell", "live": False, "name": ""}


@pytest.mark.parametrize(
    ("cells", "kind", "reason"),
    [
        ({"price": [1, 100]}, "outside", "row 2: price = 100 is above 99"),
        ({"ratio": [float("inf"), 0.0]}, "outside", "row 1: ratio = inf is not finite"),
        ({"side": ["buy", "hold"]}, "outside", "row 2: side = 'hold' is none of buy, sell"),
        ({"price": [None, 1]}, "missing", "row 1: price is missing"),
        ({"ratio": [float("nan"), 1.0]}, "missing", "row 1: ratio is missing"),
        ({"name": [None, "b"]}, "missing", "row 1: name is missing"),
        ({"side": ["buy", None]}, "missing", "row 2: side is missing"),
        ({"live": [None, True]}, "missing", "row 1: live is missing"),
    ],
)
def test_a_row_that_is_no_event_is_set_aside_with_the_reason(
    lander: Lander, cells: dict[str, list[object]], kind: str, reason: str
) -> None:
    account = read(lander.events(GOOD | cells), limits()).account
    assert (account.good, getattr(account, kind)) == (1, 1)
    assert len(account.reasons) == 1
    assert account.reasons[0].startswith(reason)


def test_late_rows_are_set_aside_and_so_are_those_from_the_future(lander: Lander) -> None:
    moment = now()
    account = read(lander.events(GOOD, at=[moment - 10, moment], waited=2 * MINUTE), limits()).account
    assert (account.late, account.reasons[0]) == (2, "row 1: was sent 120 s before it landed")
    account = read(lander.events(GOOD, at=[moment - 10, moment]), limits(since=moment)).account
    assert (account.late, account.good, account.first) == (1, 1, moment)
    account = read(lander.events(GOOD, at=[moment, 10 * moment]), limits()).account
    assert (account.broken, account.last) == (1, moment)


def test_other_kinds_are_checked_too(lander: Lander) -> None:
    landed = read(lander.deliveries([True, False, True]), limits())
    assert landed.account.good == 3
    assert landed.table.column("wanted").to_pylist() == [True, False, True]
    assert read(lander.deliveries([True], weight=-1.0), limits()).account.broken == 1
    assert read(lander.counts(published=3, received=1), limits()).account.good == 1
    account = read(lander.counts(published=-3), limits()).account
    assert (account.broken, account.reasons) == (1, ("row 1: published is not a number from 0 on",))


def whole(lander: Lander) -> pa.Table:
    return pq.read_table(lander.events(GOOD))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.drop_columns(["price"]), "has no column 'price'"),
        (lambda table: table.drop_columns(["sent_at"]), "has no column 'sent_at'"),
        (lambda table: table.set_column(5, "price", pa.array(["1", "2"])), "column price holds string"),
        (lambda table: table.set_column(1, "at", pa.array([1, 2])), "column at holds int64; right is a time"),
        (lambda table: table.set_column(4, "weight", pa.array(["a", "b"])), "column weight holds string"),
        (lambda table: table.append_column("host", pa.array(["a", "b"])), "has no column 'host', or several"),
    ],
)
def test_a_file_of_another_shape_is_set_aside_whole(lander: Lander, change: object, reason: str) -> None:
    account = read(lander.table("events", change(whole(lander))), limits()).account  # type: ignore[operator]
    assert (account.unreadable, account.good, account.broken) == (True, 0, 2)
    assert account.reasons[0].startswith(reason)


def test_bytes_that_are_no_parquet_are_set_aside_whatever_they_are(lander: Lander) -> None:
    good = lander.events({name: cells * 50 for name, cells in GOOD.items()}).read_bytes()
    random = np.random.default_rng(3)
    damaged = [b"", b"PAR1", b"PAR1PAR1", good[:-9], good[: len(good) // 2], random.bytes(500)]
    for _ in range(60):
        wrong = bytearray(good)
        for at in random.integers(0, len(good), 4):
            wrong[at] ^= 1 << int(random.integers(0, 8))
        damaged.append(bytes(wrong))
    for content in damaged:
        account = read(lander.file("events", content), limits()).account
        assert 0 <= account.good <= account.rows
        assert account.reasons or account.good == 100  # or it was hit where it does not matter
