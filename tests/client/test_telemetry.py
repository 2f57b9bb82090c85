"""What clients report, over a network in this process: by whom, of what, and that nothing waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fabric import SCHEMA, Fabric, until

from flowsieve.client import telemetry as module
from flowsieve.client.control_session import ControlConnection
from flowsieve.client.stats import Stats
from flowsieve.client.telemetry import Reporter, Telemetry, counts_of
from flowsieve.protocol.answer import Answer, refusal
from flowsieve.protocol.call import call_key
from flowsieve.protocol.call_datagram import CallDatagram, encode
from flowsieve.protocol.limits import MAX_DATAGRAM
from flowsieve.protocol.report import EventCounts, TelemetryTerms
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.rows import ReportRows
from flowsieve.serving.telemetry.settings import TelemetrySettings

SOON = TelemetrySettings(share=1.0, interval=0.05)


def test_publishers_and_subscribers_report_the_same_events_and_what_came_unwanted(fabric: Fabric) -> None:
    async def story() -> None:
        fabric.reports = reports = ReportIntake(SOON)
        async with (
            fabric.server(),
            fabric.connect("ann") as ann,
            fabric.connect("bob") as bob,
            fabric.connect("ann") as beside,
        ):
            for client in (bob, beside):
                await client.subscribe("price < 10")
            await ann.advertise()
            for price in range(20):
                await ann.publish(price=price, side="buy", data=b"not to be told")
            await until(lambda: bob.stats.received >= 16)  # a cell of the index has 16 of them
            rows = ReportRows()
            await until(lambda: gathered(reports, rows) >= 20 + 16)
            assert [event.values["price"] for event in rows.events] == list(range(20))
            assert {event.host for event in rows.events} == {"ann"}
            published = [f"{ann.publisher.hex()}-{seq}" for seq in range(1, 21)]
            assert [event.id for event in rows.events] == published
            came = {row.id: row.wanted for row in rows.deliveries}
            assert {row.host for row in rows.deliveries} == {"bob"}  # none of the publisher's own host
            assert came == {id: n < 10 for n, id in enumerate(published[:16])}
            assert all(row.weight == 1.0 for row in (*rows.events, *rows.deliveries))
        gathered(reports, rows)  # what was told at the end
        totals: dict[str, EventCounts] = {}
        for each in rows.counts:
            before = totals.get(each.session, EventCounts())
            totals[each.session] = EventCounts(*map(sum, zip(before, each.counts, strict=True)))
        assert sorted(totals.values()) == [(0, 16, 10, 6), (0, 20, 10, 10), (20, 0, 0, 0)]
        assert not reports.counters.aside and not reports.counters.turned_away
        assert "not to be told" not in repr(rows)

    asyncio.run(story())


def gathered(reports: ReportIntake, rows: ReportRows) -> int:
    """Take what has come, as a recorder would; how many events and deliveries there are by now."""
    pending = reports.drain()
    reports.landed(pending)
    rows.extend(pending.rows)
    return len(rows.events) + len(rows.deliveries)


def test_nothing_is_kept_or_told_unless_the_controller_asks_and_it_can_be_turned_on_and_off(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        fabric.reports = reports = ReportIntake(TelemetrySettings())
        async with fabric.server(lease=0.3), fabric.connect("ann") as ann, fabric.connect("bob") as bob:
            await bob.subscribe("True")
            await ann.advertise()
            await ann.publish(price=1, side="buy")
            assert len(ann._telemetry) == 0 and ann._reporter._running is None
            assert bob._inbox.came is None
            reports.settings = SOON
            await until(lambda: ann._telemetry.terms.on and bob._inbox.came is not None)
            await ann.publish(price=2, side="buy")
            rows = ReportRows()
            await until(lambda: gathered(reports, rows) >= 2)
            assert [event.values["price"] for event in rows.events] == [2]
            reports.settings = TelemetrySettings()
            await until(lambda: not ann._telemetry.terms.on and bob._inbox.came is None)
            await ann.publish(price=3, side="buy")
            assert len(ann._telemetry) == 0
            calls = reports.counters.reports
        assert reports.counters.reports == calls

    asyncio.run(story())


def test_a_short_session_tells_what_it_published_before_it_leaves(fabric: Fabric) -> None:
    async def story() -> None:
        fabric.reports = reports = ReportIntake(TelemetrySettings(share=1.0, interval=30.0))
        async with fabric.server():
            async with fabric.connect("ann") as ann:
                await ann.advertise()
                await ann.publish(price=7, side="sell")
            rows = ReportRows()
            assert gathered(reports, rows) == 1
            assert rows.counts[0].counts == (1, 0, 0, 0)

    asyncio.run(story())


class Answering:
    """In the place of a controller: answers reports as it is told to."""

    room = MAX_DATAGRAM

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        self.heard: list[Mapping[str, Any]] = []

    async def call(self, message: Mapping[str, Any]) -> Answer:
        self.heard.append(json.loads(json.dumps(dict(message))))
        await asyncio.sleep(0)
        return self.answer

    async def close(self) -> None: ...


@asynccontextmanager
async def reporting(
    transport: Answering, host: str = "ann", token: str = "t" * 64
) -> AsyncIterator[tuple[Telemetry, Reporter]]:
    connection = ControlConnection(transport, host, token)
    connection.stage, connection.checks = 1 << 40, True
    telemetry = Telemetry(SCHEMA, bytes(8))
    reporter = Reporter(telemetry, connection, lambda: EventCounts(5, 5, 5, 0), lambda on: None)
    reporter.adopt(TelemetryTerms(1.0, 0.01))
    yield telemetry, reporter
    await reporter.close()


OK = {"ok": {"taken": 1, "telemetry": TelemetryTerms(1.0, 0.01).to_json()}}


def test_in_band_reports_are_several_calls_that_each_fit_a_datagram() -> None:
    async def story() -> None:
        transport = Answering(OK)
        async with reporting(transport, host="h" * 60) as (telemetry, _):
            for seq in range(1, 201):
                telemetry.published(seq, {"price": seq, "side": "sell"})
                telemetry.came(seq.to_bytes(8), MOST, seq % 2 == 0)
            await until(lambda: len(telemetry) == 0)
        assert telemetry.dropped == 0
        assert len(transport.heard) > 5
        for message in transport.heard:
            assert len(encode(CallDatagram(call_key(message), message))) <= MAX_DATAGRAM
        told = [message["report"] for message in transport.heard]
        assert [row[0] for report in told for row in report.get("events", ())] == list(range(1, 201))
        came = [pub for report in told for kind in ("wanted", "unwanted") for pub in report.get(kind, ())]
        assert sorted(came) == [seq.to_bytes(8).hex() for seq in range(1, 201)]
        numbers = [message["n"] for message in transport.heard]
        assert numbers == sorted(set(numbers))

    asyncio.run(story())


MOST = (1 << 63) - 1


def test_a_controller_that_has_too_much_to_do_has_clients_drop_rows_and_wait() -> None:
    async def story() -> None:
        busy = {"ok": {"taken": 0, "wait": 30.0, "telemetry": TelemetryTerms(1.0, 0.01).to_json()}}
        transport = Answering(busy)
        async with reporting(transport) as (telemetry, _):
            telemetry.published(1, {"price": 1, "side": "buy"})
            await until(lambda: telemetry.dropped == 1)
            telemetry.published(2, {"price": 1, "side": "buy"})
            for _ in range(100):
                await asyncio.sleep(0.001)
            assert len(transport.heard) == 1 and len(telemetry) == 1
            transport.answer = OK
        (last,) = transport.heard[1:]  # what is left is told at the end, with all counts
        assert last["report"]["counts"] == [5, 5, 5, 0] and last["report"]["since"] == [0, 0, 0, 0]
        assert telemetry.dropped == 1

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["busy", "bad", "denied", "lost"])
def test_a_report_that_is_refused_ends_nothing_and_is_not_insisted_on(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.1)

    async def story() -> None:
        transport = Answering(refusal(kind, "no"))
        async with reporting(transport) as (telemetry, reporter):
            telemetry.published(1, {"price": 1, "side": "buy"})
            await until(lambda: telemetry.dropped == 1)
            assert reporter._running is not None and not reporter._running.done()
            assert telemetry.terms.on

    asyncio.run(story())


def test_terms_that_cannot_be_read_change_nothing() -> None:
    async def story() -> None:
        async with reporting(Answering(OK)) as (telemetry, reporter):
            for nonsense in (
                3,
                {"share": 2, "every": 1, "rows": 1},
                {"share": "1"},
                {"share": 1.0, "every": 0, "rows": 1},
            ):
                reporter.hear(nonsense)
            assert telemetry.terms == TelemetryTerms(1.0, 0.01)
            reporter.hear(None)
            assert not telemetry.terms.on

    asyncio.run(story())


def test_counts_tell_each_event_once() -> None:
    stats = Stats(
        sent=3, received=20, delivered=15, false_positives=4, passed_over=2, duplicates=3, repeats=1
    )
    assert counts_of(stats) == (3, 16, 10, 6)
