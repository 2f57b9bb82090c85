"""Telemetry, whatever is published and whatever clients say: all choose the same events, and it stays within bounds."""

from __future__ import annotations

import json
from typing import Any

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client import telemetry as client_side
from flowsieve.client.telemetry import Telemetry
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadMessage
from flowsieve.protocol.limits import MAX_NUMBER
from flowsieve.protocol.report import EventCounts, Report, TelemetryTerms
from flowsieve.protocol.sampling import ALL, event_hash, is_sampled, threshold_of
from flowsieve.serving.telemetry.intake import CALL_ROWS, ReportIntake
from flowsieve.serving.telemetry.rows import LATEST_US, MOST_COUNTED, Reporting, checked_rows
from flowsieve.serving.telemetry.settings import TelemetrySettings

SCHEMA = Schema.parse(
    {
        "n": {"type": "int", "min": 0, "max": 1023},
        "x": {"type": "float", "min": 0.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell"]},
        "live": {"type": "bool"},
        "note": {"type": "string"},
    }
)
publishers = st.binary(min_size=8, max_size=8)
numbers = st.integers(1, MAX_NUMBER)
shares = st.floats(1e-6, 1.0)
events = st.fixed_dictionaries(
    {
        "n": st.integers(0, 1023),
        "x": st.floats(0, 1),
        "side": st.sampled_from(["buy", "sell"]),
        "live": st.booleans(),
        "note": st.text(st.characters(codec="utf-8"), max_size=100),
    }
)
ANN, BOB = bytes(range(8)), bytes(range(8, 16))


def plain_hash(publisher: bytes, seq: int) -> int:
    """As docs/protocol.md says it."""
    x = (int.from_bytes(publisher, "big") + seq * 0x9E3779B97F4A7C15) % 2**64
    h = (x ^ (x >> 32)) % 2**32
    h = (h ^ (h >> 16)) * 0x85EBCA6B % 2**32
    h = (h ^ (h >> 13)) * 0xC2B2AE35 % 2**32
    return h ^ (h >> 16)


@given(publisher=publishers, seq=numbers, share=shares, less=shares)
def test_all_who_see_an_event_choose_alike_and_a_smaller_share_takes_a_part(
    publisher: bytes, seq: int, share: float, less: float
) -> None:
    assert event_hash(publisher, seq) == plain_hash(publisher, seq) < ALL
    chosen = is_sampled(publisher, seq, threshold_of(share))
    assert chosen == (plain_hash(publisher, seq) < round(share * ALL))
    assert is_sampled(publisher, seq, threshold_of(1.0))
    assert not is_sampled(publisher, seq, threshold_of(0.0))
    if is_sampled(publisher, seq, threshold_of(min(share, less))):
        assert chosen
    sender, receiver = Telemetry(SCHEMA, publisher), Telemetry(SCHEMA, BOB)
    for each in (sender, receiver):
        each.adopt(TelemetryTerms(share))
    sender.published(seq, {})
    receiver.came(publisher, seq, True)
    assert len(sender) == len(receiver) == chosen


@given(publisher=publishers, first=st.integers(1, 1 << 40), step=st.sampled_from((1, 2, 3, 8, 256)))
def test_a_share_of_numbers_that_follow_each_other_is_that_share(
    publisher: bytes, first: int, step: int
) -> None:
    count = 4_000
    threshold = threshold_of(0.1)
    taken = sum(is_sampled(publisher, first + step * n, threshold) for n in range(count))
    assert abs(taken - count / 10) < 6 * (count * 0.1 * 0.9) ** 0.5  # six standard deviations


@given(
    told=st.lists(st.tuples(st.booleans(), events), max_size=60),
    room=st.integers(0, 1500),
    rows=st.integers(1, 40),
    counts=st.lists(st.integers(0, 10**6), min_size=2, max_size=2),
)
def test_reports_fit_bring_each_row_once_and_are_taken_whole(
    told: list[tuple[bool, dict[str, object]]], room: int, rows: int, counts: list[int]
) -> None:
    telemetry = Telemetry(SCHEMA, ANN)
    telemetry.adopt(TelemetryTerms(1.0, rows=rows))
    published, came = [], []
    for seq, (own, event) in enumerate(told, 1):
        if own:
            telemetry.published(seq, event)
            published.append((seq, event))
        else:
            telemetry.came(BOB, seq, bool(event["live"]))
            came.append((seq, event["live"]))
    totals = EventCounts(counts[0], counts[1], counts[1], 0)
    known, landed, said = Reporting("ann", ANN), [], 0
    for _ in range(2 * len(told) + 2):
        report = telemetry.report(totals, room)
        if report is None:
            break
        assert report.rows <= rows
        if report.rows:
            assert len(msgpack.packb(report.to_json())) <= room
        again = Report.parse(json.loads(json.dumps(report.to_json())))
        assert again.to_json() == Report.parse(msgpack.unpackb(msgpack.packb(report.to_json()))).to_json()
        taken = checked_rows(again, "0" * 32, known, SCHEMA, {})
        assert not taken.aside
        landed += taken.events + taken.deliveries
        said += sum(each.counts.published for each in taken.counts)
        telemetry.taken(report)
    assert telemetry.report(totals, room) is None
    assert said == counts[0]
    assert len(landed) + telemetry.dropped == len(told)
    if room > 700:
        assert telemetry.dropped == 0
        ids = [row.id for row in landed]
        assert sorted(ids) == sorted(
            [f"{ANN.hex()}-{seq}" for seq, _ in published] + [f"{BOB.hex()}-{seq}" for seq, _ in came]
        )
        values = {row.id: row.values for row in landed if hasattr(row, "values")}
        assert all(values[f"{ANN.hex()}-{seq}"] == event for seq, event in published)


@given(rows=st.integers(0, 60), share=st.sampled_from((0.5, 1.0)))
def test_what_waits_is_bounded_and_what_is_dropped_is_counted(rows: int, share: float) -> None:
    before, client_side.MOST_KEPT = client_side.MOST_KEPT, 20
    try:
        telemetry = Telemetry(SCHEMA, ANN)
        telemetry.adopt(TelemetryTerms(share))
        chosen = 0
        for seq in range(1, rows + 1):
            telemetry.published(seq, {})
            telemetry.came(BOB, seq, False)
            chosen += sum(is_sampled(each, seq, threshold_of(share)) for each in (ANN, BOB))
        assert len(telemetry) == min(chosen, 20)
        assert len(telemetry) + telemetry.dropped == chosen
        telemetry.adopt(TelemetryTerms(share / 2))
        assert len(telemetry) == 0 and telemetry.dropped == chosen
    finally:
        client_side.MOST_KEPT = before


# Whatever a client says.

anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([ANN.hex(), BOB.hex(), "n", 0, 1, 5, 0.5, 1.0]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
rows = st.tuples(st.integers(0, 50), st.integers(-1, LATEST_US + 1), st.lists(anything, max_size=6)).map(list)
reports = st.fixed_dictionaries(
    {
        "share": st.sampled_from([0.5, 0.25, 1.0]) | anything,
        "publisher": st.sampled_from([ANN.hex(), BOB.hex()]) | anything,
        "counts": st.lists(st.integers(0, MAX_NUMBER), min_size=4, max_size=4) | anything,
        "since": st.lists(st.integers(0, MAX_NUMBER), min_size=4, max_size=4) | anything,
    },
    optional={
        "names": st.permutations(SCHEMA.names).map(list) | anything,
        "events": st.lists(rows | anything, max_size=6) | anything,
        "wanted": st.dictionaries(
            st.sampled_from([ANN.hex(), BOB.hex(), "x"]), st.lists(st.integers(0, 9) | anything, max_size=5)
        )
        | anything,
        "unwanted": anything,
    },
)


@given(said=st.lists(reports, max_size=8))
def test_whatever_is_reported_only_what_is_right_is_taken_and_never_more_than_there_is_room_for(
    said: list[Any],
) -> None:
    intake = ReportIntake(TelemetrySettings(share=0.5, rate=8 * CALL_ROWS, interval=1.0))
    for number, message in enumerate(said, 1):
        try:
            report = Report.parse(message)
            told = intake.take("ann", "0" * 32, number, ANN, report, SCHEMA)
        except (BadInput, BadMessage):
            continue
        assert told["taken"] <= report.rows + 1
    pending = intake.drain()
    assert sum(pending.taken.values()) <= 4 * CALL_ROWS  # half of what there is, for one alone
    for event in pending.rows.events:
        publisher, _, seq = event.id.partition("-")
        assert publisher == ANN.hex() and is_sampled(ANN, int(seq), threshold_of(0.5))
        assert event.host == "ann" and event.weight == 2.0 and 0 <= event.sent_at_us <= LATEST_US
        assert list(event.values) == list(SCHEMA.names)
    ids = [event.id for event in pending.rows.events]
    assert len(set(ids)) == len(ids)
    for delivery in pending.rows.deliveries:
        publisher, _, seq = delivery.id.partition("-")
        assert is_sampled(bytes.fromhex(publisher), int(seq), threshold_of(0.5)) and delivery.weight == 2.0
    for each in pending.rows.counts:
        assert each.counts.received == each.counts.delivered + each.counts.unwanted
        assert max(each.counts) <= MOST_COUNTED
