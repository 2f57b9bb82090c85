"""The commands for a shell on a host: pub, sub."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import view
from flowsieve.cli.options import Control, Host, Json, Token, option
from flowsieve.config.files import csv_header, csv_rows, decode, place, read_bytes
from flowsieve.content.event import EventBatch, check_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema, shown
from flowsieve.errors import BadCell, BadInput, BadValue, ControlLost

if TYPE_CHECKING:
    from flowsieve.client.inbox import Event
    from flowsieve.client.interests import Subscription
    from flowsieve.client.session import Client
    from flowsieve.client.stats import Stats

RATE = 1000.0  # events per second, unless somebody asks for another
LATE_SECONDS = 0.2  # for packets that were overtaken, before they count as lost for good
TURN = 64  # events after which a publisher waits for the last of them to leave, and others have their turn
STANDARD_INPUT = Path("standard input")


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.command(epilog="Example: flowsieve lab exec h1 flowsieve pub price=10 side=buy")(pub)
    app.command(epilog="Example: flowsieve lab exec h2 flowsieve sub 'price < 50'")(sub)


def sub(
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="What to get, such as 'price < 50'.")],
    control: Control = None,
    host: Host = None,
    token: Token = None,
    count: Annotated[int | None, option("N", "End after so many events.", min=1)] = None,
    timeout: Annotated[float | None, option("S", "End after so many seconds.", min=0)] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="At the end, on standard error, what was counted.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each event.")] = False,
) -> int:
    """Subscribe, and print events as they come, until Ctrl-C.

    The exit status is 1 if no subscription came about, if fewer than N events came in time, or if some were lost on
    the way.
    """
    from flowsieve.client.session import connect

    got, in_time = 0, True
    counted: Stats | None = None

    async def receive() -> None:
        nonlocal got, in_time, counted
        end = None if timeout is None else asyncio.get_running_loop().time() + timeout
        async with connect(control, host, token, within=timeout) as client:
            try:
                async with await _subscribed(client, filter, end) as subscription:
                    view.err.print(
                        f"subscribed on {client.host} as {subscription.id}: {filter}", soft_wrap=True
                    )
                    async with asyncio.timeout_at(end):
                        async for event in subscription:
                            print(_line(event, as_json), flush=True)
                            got += 1
                            if got == count:
                                await asyncio.sleep(LATE_SECONDS if client.stats.lost else 0)
                                return
            except TimeoutError:
                in_time = False
            finally:
                counted = client.stats

    whole = _run(receive())
    if counted is not None:
        if stats:
            view.err.print(
                " ".join(f"{name}={number}" for name, number in counted.to_json().items()), soft_wrap=True
            )
        if counted.lost or counted.overflow:
            view.err.print(
                f"{counted.lost} packets were lost on the way, {counted.overflow} found no room here"
            )
            return 1
    return 1 if count is not None and not (whole and in_time) else 0


async def _subscribed(client: Client, filter: str, end: float | None) -> Subscription:
    """A subscription that the switches have acknowledged before a time."""
    try:
        async with asyncio.timeout_at(end):
            return await client.subscribe(filter)
    except TimeoutError:
        raise ControlLost(
            "not subscribed in time: the controller is there, and has not said that the switches are ready"
        ) from None


def pub(
    event: Annotated[
        list[str] | None, typer.Argument(metavar="ATTR=VALUE...", help="The event's attributes.")
    ] = None,
    source: Annotated[
        Path | None,
        option("FILE", "Events: CSV with a header row, or JSON lines; - for standard input.", "--from"),
    ] = None,
    advertise: Annotated[str, option("FILTER", "What we promise to publish.")] = "True",
    rate: Annotated[float, option("R", "Events per second; 0: as fast as it goes.", min=0)] = RATE,
    repeat: Annotated[int, option("N", "Publish all of it N times.", min=1)] = 1,
    control: Control = None,
    host: Host = None,
    token: Token = None,
    as_json: Json = False,
) -> int:
    """Publish an event, or all events of a file; they are checked whole before the first is sent."""
    if (source is None) == (not event):
        raise BadInput("what to publish is either an event, ATTR=VALUE…, or a file, --from FILE")
    from flowsieve.client.session import connect

    lines = None if source is None else _read(source)
    sent, seconds = 0, 0.0

    async def send() -> None:
        nonlocal sent, seconds
        async with connect(control, host, token) as client:
            if lines is None:
                from flowsieve.scenario.event_files import parse_assignments

                events = [parse_assignments(event or (), client.schema)]
            else:
                events = _events(*lines, client.schema)
            _check_promise(events, Filter.parse(advertise, client.schema))
            async with await client.advertise(advertise):
                start = time.perf_counter()
                try:
                    for _ in range(repeat):
                        await _publish(client, events, rate, start)
                finally:
                    sent, seconds = client.stats.sent, time.perf_counter() - start

    whole = _run(send())
    result = {"published": sent, "seconds": round(seconds, 3)}
    view.answer(as_json, result, lambda: view.out.print(f"published {sent:,} event{'s' * (sent != 1)}"))
    return 0 if whole else 1


async def _publish(client: Client, events: Sequence[Mapping[str, object]], rate: float, start: float) -> None:
    for number, event in enumerate(events, 1):
        # Now and then wait until one has left, so that no more wait than have to.
        sent = client.publish_nowait(event) if number % TURN else await client.publish(event)
        ahead = start + sent / rate - time.perf_counter() if rate else 0.0
        if ahead > 0.001:
            await asyncio.sleep(ahead)


def _run(work: Coroutine[Any, Any, None]) -> bool:
    """Do it until it is done or we are asked to end; whether it was done."""

    async def until() -> bool:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            await work
        except asyncio.CancelledError:
            return False
        return True

    return asyncio.run(until())


def _line(event: Event, as_json: bool) -> str:
    if as_json:
        told = {"event": dict(event.values), "publisher": event.publisher.hex(), "seq": event.seq}
        return json.dumps(told | ({"data": event.data.hex()} if event.data else {}))
    return " ".join(f"{name}={value}" for name, value in event.values.items())


def _read(source: Path) -> tuple[str, Path]:
    """A file's text, and what to call it."""
    if str(source) == "-":
        return decode(sys.stdin.buffer.read(), STANDARD_INPUT), STANDARD_INPUT
    return decode(read_bytes(source), source), source


def _events(text: str, path: Path, schema: Schema) -> list[dict[str, object]]:
    """The events in a text: JSON lines if it begins like one, CSV otherwise."""
    return (
        _json_events(text, path, schema) if text.lstrip().startswith("{") else _csv_events(text, path, schema)
    )


def _json_events(text: str, path: Path, schema: Schema) -> list[dict[str, object]]:
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadValue(f"is no JSON: {error}", place=place(path, number)) from None
            if not isinstance(event, dict):
                raise BadValue(f"{shown(event)} is no event, which is an object", place=place(path, number))
            try:
                events.append(check_event(schema, event))
            except BadInput as error:
                raise error.at(place(path, number)) from None
    return events


def _csv_events(text: str, path: Path, schema: Schema) -> list[dict[str, object]]:
    rows = csv_rows(text, path)
    header = csv_header(rows, path, schema.names)
    columns = [(name, header.index(name)) for name in schema.names]
    cells, lines = [], []
    for row in rows:
        if len(row.fields) != len(header):
            wrong = f"has {len(row.fields)} fields and the header {len(header)}"
            raise BadValue(wrong, place=place(path, row.line))
        cells.append({name: row.fields[column] for name, column in columns})
        lines.append(row.line)
    try:
        batch = EventBatch.from_events(schema, "", cells)
    except BadCell as error:
        raise BadValue(error.message, place=place(path, lines[error.row])) from None
    faulty, reason = batch.faults()
    for at, bad in enumerate(faulty.tolist()):
        if bad:
            raise BadValue(reason(at), place=place(path, lines[at]))
    return [batch.event(at) for at in range(len(batch))]


def _check_promise(events: Sequence[Mapping[str, object]], promise: Filter) -> None:
    for number, event in enumerate(events, 1):
        if not promise.matches(event):
            raise BadValue(
                f"event {number}, {shown(dict(event))}, lies outside --advertise {shown(promise.text)}"
            )
