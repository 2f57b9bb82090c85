"""Reports that come to a controller: each is taken once, from whom it is, and nobody crowds out others."""

from __future__ import annotations

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.protocol.report import EventCounts, Report
from flowsieve.serving.telemetry.intake import CALL_ROWS, REPORTS, WAIT_SECONDS, ReportIntake
from flowsieve.serving.telemetry.settings import TelemetrySettings

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
ANN, BOB = bytes(8), bytes(range(8))
SESSION = "00" * 16


def full(**settings: float) -> ReportIntake:
    return ReportIntake(TelemetrySettings(**{"share": 1.0} | settings))  # type: ignore[arg-type]


def report(counts: tuple[int, ...] = (0, 0, 0, 0), rows: int = 0, first: int = 1, **more: object) -> Report:
    events = [[first + n, 0, [n % 1024]] for n in range(rows)]
    said = {"share": 1.0, "publisher": ANN.hex(), "counts": list(counts), "since": [0] * 4}
    if rows:
        said |= {"names": ["price"], "events": events}
    return Report.parse(said | more)


def take(
    intake: ReportIntake, n: int, told: Report, host: str = "ann", session: str = SESSION
) -> dict[str, object]:
    return intake.take(host, session, n, None, told, SCHEMA)


def test_a_report_that_comes_again_adds_nothing_and_is_answered() -> None:
    intake = full()
    first = report((3, 0, 0, 0), rows=3)
    assert take(intake, 5, first)["taken"] == 4
    assert take(intake, 5, first)["taken"] == 0
    assert "wait" not in take(intake, 4, first)
    assert len(intake.drain().rows) == 4


def test_counts_are_differences_and_go_on_after_the_controller_has_forgotten() -> None:
    intake = full()
    take(intake, 1, report((5, 4, 3, 1)))
    take(intake, 2, report((9, 6, 4, 2), since=[5, 4, 3, 1]))
    take(intake, 3, report((9, 6, 4, 2), since=[9, 6, 4, 2]))
    assert [each.counts for each in intake.drain().rows.counts] == [(5, 4, 3, 1), (4, 2, 1, 1)]
    restarted = full()
    take(restarted, 4, report((10, 6, 4, 2), since=[9, 6, 4, 2]))
    assert [each.counts for each in restarted.drain().rows.counts] == [EventCounts(1, 0, 0, 0)]
    assert restarted.counters.aside == {}


def test_counts_that_cannot_be_are_set_aside() -> None:
    intake = full()
    take(intake, 1, report((5, 4, 3, 3)))
    take(intake, 2, report((2**60, 4, 3, 3)))
    assert intake.drain().rows.counts == [] and intake.counters.aside == {"uneven_counts": 2}


def test_rows_that_are_wrong_are_set_aside_one_by_one() -> None:
    intake = full()
    rows = [
        [1, 0, [5]],
        [1, 0, [6]],
        [2, 0, [9999]],
        [3, 0, ["5"]],
        [4, -1, [5]],
        [5, 0, [5, 5]],
        "x",
        [7, 0, [7]],
    ]
    told = report(names=["price"], events=rows, wanted={BOB.hex(): [1, 0, "2"], "bob": [1]})
    assert take(intake, 1, told)["taken"] == 3
    pending = intake.drain().rows
    assert [event.id for event in pending.events] == [f"{ANN.hex()}-1", f"{ANN.hex()}-7"]
    assert [each.id for each in pending.deliveries] == [f"{BOB.hex()}-1"]
    assert intake.counters.aside == {"again": 1, "values": 2, "shape": 6}
    assert take(intake, 2, report(names=["prize"], events=[[9, 0, [5]]]))["taken"] == 0


def test_nobody_reports_in_the_name_of_another_publisher() -> None:
    intake = full()
    with pytest.raises(BadInput, match=f"publishes as {BOB.hex()}, and reports as {ANN.hex()}"):
        intake.take("bob", SESSION, 1, BOB, report(rows=3), SCHEMA)
    assert len(intake.drain().rows) == 0


def test_what_came_from_the_same_host_was_not_carried_by_the_network() -> None:
    intake = full()
    intake.meet("11" * 16, "ann", BOB)
    take(intake, 1, report(unwanted={BOB.hex(): [1]}))
    take(intake, 1, report(unwanted={BOB.hex(): [1]}), host="cy", session="22" * 16)
    assert [each.host for each in intake.drain().rows.deliveries] == ["cy"]
    intake.left("11" * 16)
    take(intake, 2, report(unwanted={BOB.hex(): [1]}))
    assert len(intake.drain().rows) == 1


def test_one_host_gets_half_of_the_room_and_others_still_find_some() -> None:
    intake = full(rate=1024, interval=1.0)
    assert intake.terms.rows == 128
    told, last = [], 1
    for n in range(1, 10):
        told.append(take(intake, n, report(rows=128, first=last)))
        last += 128
    assert [each.get("wait") for each in told] == [None] * 4 + [WAIT_SECONDS] * 5
    assert intake.counters.turned_away == 5 * 128
    assert "wait" not in take(intake, 1, report(rows=128), host="bob", session="11" * 16)
    pending = intake.drain()
    assert len(pending.rows) == 5 * 128
    assert "wait" in take(intake, 20, report(rows=128, first=last))  # not before it is written
    intake.landed(pending)
    assert "wait" not in take(intake, 21, report(rows=128, first=last))


def test_a_thousand_clients_are_told_to_report_more_rarely_and_cost_no_more_than_a_hundred() -> None:
    intake = full(rate=1_000_000)
    every = []
    for _ in range(20):
        calls = round(1000 * intake.settings.interval / intake.terms.every)
        for n in range(calls):
            take(intake, 1, report(), session=f"{n:032x}")
        every.append(intake.terms.every)
        intake.landed(intake.drain())
    assert every[0] == 0.5 and every[-1] == pytest.approx(1000 / REPORTS * 0.5, rel=0.1)
    intake.drain()
    assert intake.terms.every == 0.5


def test_however_many_come_no_more_calls_are_worked_on_than_there_is_room_for() -> None:
    intake = full(rate=1000, interval=1.0)
    waits = ["wait" in take(intake, 1, report(), host=f"h{n}", session=f"{n:032x}") for n in range(100)]
    assert waits.count(False) == 1000 // CALL_ROWS


def test_a_share_that_was_told_before_is_taken_and_any_other_is_not() -> None:
    intake = full()
    intake.settings = TelemetrySettings(share=0.5)
    assert intake.terms.mode == "sampled"
    assert take(intake, 1, report(rows=2))["taken"] == 2  # it has not heard yet
    assert [event.weight for event in intake.drain().rows.events] == [1, 1]
    assert take(intake, 2, report(rows=2, first=3, share=0.001))["taken"] == 0
    assert intake.counters.aside == {"other_share": 2}
    intake.settings = TelemetrySettings(share=0.0)
    told = take(intake, 3, report(rows=2, first=9))
    assert told["taken"] == 0 and told["telemetry"]["mode"] == "off"  # type: ignore[index]
    assert len(intake.drain().rows) == 0
