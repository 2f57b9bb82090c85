"""`flowsieve pub` and `flowsieve sub`, over a network in this process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fabric import Fabric, until

from flowsieve.client.session import connect

Command = Callable[..., Any]
SECONDS = 30.0


@contextmanager
def onlooking(fabric: Fabric, *stories: Callable[[], Awaitable[Any]]) -> Iterator[list[Any]]:
    """A controller in a thread of its own, and others who do something meanwhile; what they returned."""
    ready, over, results = threading.Event(), threading.Event(), []

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), fabric.server():
            ready.set()
            results.extend(await asyncio.gather(*(story() for story in stories)))
            await asyncio.to_thread(over.wait, SECONDS)

    thread = threading.Thread(target=lambda: asyncio.run(whole()))
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield results
    finally:
        over.set()
        thread.join()


@pytest.fixture
def here(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> Fabric:
    """We are on `ann`."""
    monkeypatch.setenv("FLOWSIEVE_CONTROL", fabric.control)
    monkeypatch.setenv("FLOWSIEVE_HOST", "ann")
    monkeypatch.setattr("flowsieve.client.session.connect", partial(connect, wire=fabric.wire))
    return fabric


def collector(fabric: Fabric, filter: str, count: int) -> Callable[[], Awaitable[list[Any]]]:
    """Somebody on `bob` who waits for events."""

    async def collect() -> list[Any]:
        async with fabric.connect("bob") as bob, await bob.subscribe(filter) as found:
            return [(await anext(found)).values for _ in range(count)]

    return collect


def publishing(fabric: Fabric, *prices: int) -> Callable[[], Awaitable[None]]:
    """Somebody on `bob` who publishes once somebody wants something."""

    async def publish() -> None:
        async with fabric.connect("bob") as bob, await bob.advertise():
            await fabric.subscribed()
            for price in prices:
                await bob.publish(price=price, side="sell")

    return publish


def test_pub_publishes_an_event(flowsieve: Command, here: Fabric) -> None:
    with onlooking(here, collector(here, "price < 50", 1)) as results:
        _wait_for_subscription(here)
        answer = flowsieve("pub", "price=10", "side=buy")
        assert (answer.status, answer.out, answer.err) == (0, "published 1 event\n", "")
    assert results == [[{"price": 10, "side": "buy"}]]
    assert here.state.advertisements == {}


CSV = "id,side,price\ne1,buy,10\ne2,sell,1000\n"
JSON = '{"price": 10, "side": "buy"}\n\n{"side": "sell", "price": 1000}\n'


@pytest.mark.parametrize("text", [CSV, JSON], ids=["csv", "json"])
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_pub_publishes_all_events_of_a_file(
    flowsieve: Command, here: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piped: bool
) -> None:
    path = tmp_path / "events"
    path.write_text(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with onlooking(here, collector(here, "True", 4)) as results:
        _wait_for_subscription(here)
        answer = flowsieve("pub", "--from", "-" if piped else path, "--repeat", 2, "--rate", 200, "--json")
    assert answer.status == 0
    assert answer.json["published"] == 4
    assert answer.json["seconds"] >= 0.015
    assert results == [[{"price": 10, "side": "buy"}, {"price": 1000, "side": "sell"}] * 2]


@pytest.mark.parametrize(
    "words, text, wrong",
    [
        (["price=10", "side=bye"], "", "side = 'bye' is none of buy, sell"),
        (["price=10"], "", "side is missing"),
        (["price=10", "side=buy", "--advertise", "price > 50"], "", "'side': 'buy'}, lies outside"),
        (["price=10", "side=buy", "--advertise", "price >"], "", "price >"),
        ([], "", "either an event, ATTR=VALUE…, or a file, --from FILE"),
        (["price=10", "--from", "EVENTS"], "", "either an event"),
        (["--from", "EVENTS"], "price,side\n1,buy\n1024,buy\n", "EVENTS line 3: price = 1024 is above 1023"),
        (["--from", "EVENTS"], "price,side\n1,buy\nx,buy\n", "EVENTS line 3: "),
        (["--from", "EVENTS"], "price,side\n1\n", "EVENTS line 2: has 1 fields and the header 2"),
        (["--from", "EVENTS"], "price\n1\n", "there is no column 'side'"),
        (["--from", "EVENTS"], '{"price": 1, "side": "buy"}\n{"price": 1}\n', "EVENTS line 2: side is missing"),
        (["--from", "EVENTS"], '{"price": 1, "side": "buy"}\n[1]\n', "EVENTS line 2: [1] is no event"),
        (["--from", "EVENTS"], "{\n", "EVENTS line 1: is no JSON"),
        (["--from", "nowhere.csv"], "", "there is no such file"),
        (["price=10", "side=buy", "--host", "anna"], "", "there is no host 'anna'; did you mean 'ann'?"),
    ],
)  # fmt: skip
def test_pub_checks_all_of_its_input_before_anything_is_sent(
    flowsieve: Command, here: Fabric, tmp_path: Path, words: list[str], text: str, wrong: str
) -> None:
    path = tmp_path / "EVENTS"
    path.write_text(text)
    with onlooking(here):
        answer = flowsieve("pub", *(path if word == "EVENTS" else word for word in words))
    assert (answer.status, answer.out) == (2, "")
    assert wrong in answer.err
    assert not here.network.deliveries


def test_sub_prints_events_as_they_come(flowsieve: Command, here: Fabric) -> None:
    with onlooking(here, publishing(here, 10, 600, 20)):
        answer = flowsieve("sub", "price < 50", "--count", 2, "--timeout", SECONDS, "--stats")
    assert (answer.status, answer.out) == (0, "price=10 side=sell\nprice=20 side=sell\n")
    assert "subscribed on ann as ann-" in answer.err
    assert "delivered=2" in answer.err
    assert here.state.subscriptions == {}


def test_sub_prints_json_lines_for_machines(flowsieve: Command, here: Fabric) -> None:
    with onlooking(here, publishing(here, 10, 20)):
        answer = flowsieve("sub", "price < 50", "--count", 2, "--timeout", SECONDS, "--json")
    first, second = map(json.loads, answer.out.splitlines())
    assert answer.status == 0
    assert first["event"] == {"price": 10, "side": "sell"}
    assert (first["seq"], second["seq"]) == (1, 2)
    assert first["publisher"] == second["publisher"]
    assert len(bytes.fromhex(first["publisher"])) == 8


def test_sub_says_when_too_few_came_in_time(flowsieve: Command, here: Fabric) -> None:
    with onlooking(here):
        answer = flowsieve("sub", "price < 50", "--count", 1, "--timeout", 1)
        assert (answer.status, answer.out) == (1, "")
        assert flowsieve("sub", "price < 50", "--timeout", 2).status == 0
    assert here.state.subscriptions == {}


def test_sub_says_when_something_was_lost(flowsieve: Command, here: Fabric) -> None:
    async def publish() -> None:
        async with here.connect("bob") as bob, await bob.advertise():
            await here.subscribed()
            while here.state.subscriptions:
                for lost in (True, False):
                    here.loses = lambda host, payload, lost=lost: lost
                    await bob.publish(price=1, side="sell")
                await asyncio.sleep(0.002)

    with onlooking(here, publish):
        answer = flowsieve("sub", "price < 50", "--count", 50, "--timeout", SECONDS)
    assert answer.status == 1
    assert answer.out.count("\n") == 50
    assert re.search(r"[1-9]\d* packets were lost on the way", answer.err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_sub_cleanly(flowsieve: Command, here: Fabric, number: signal.Signals) -> None:
    async def interrupt() -> None:
        await until(lambda: bool(here.state.subscriptions))
        os.kill(os.getpid(), number)

    with onlooking(here, interrupt):
        assert flowsieve("sub", "price < 50", "--timeout", SECONDS).status == 0
    assert here.state.subscriptions == {}


def test_a_bad_filter_and_a_missing_controller_are_told(
    flowsieve: Command, here: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr("flowsieve.client.session.HELLO_SECONDS", 0.1)
        impatient.setattr("flowsieve.client.session.MARGIN_SECONDS", 0.1)
        answer = flowsieve("sub", "price < 50")
    assert answer.status == 1
    assert f"no controller at {here.control}: No such file or directory; start one with" in answer.err
    with onlooking(here):
        answer = flowsieve("sub", "prise < 50")
    assert (answer.status, answer.out) == (2, "")
    assert "did you mean 'price'" in answer.err


@pytest.mark.parametrize("control", ["unix:/nowhere/to.sock", "SILENT"])
def test_sub_says_that_no_controller_answers_within_its_time(
    flowsieve: Command, here: Fabric, tmp_path: Path, control: str
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:  # takes connections, and says nothing
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        began = time.monotonic()
        where = control.replace("SILENT", f"unix:{tmp_path / 'silent'}")
        answer = flowsieve("sub", "True", "--timeout", 0.3, "--control", where, "--json")
        assert time.monotonic() - began < 3
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith("error: ") and "controller" in answer.err


def test_sub_says_that_its_subscription_was_not_acknowledged_in_time(
    flowsieve: Command, here: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowsieve.client.control_session.BYE_SECONDS", 1.0)

    async def unplug() -> None:
        async with here.connect("bob") as bob, await bob.advertise():
            here.switches.disconnect("s1")
            await until(lambda: bool(here.state.subscriptions))
            await until(lambda: not here.state.subscriptions)

    with onlooking(here, unplug):
        answer = flowsieve("sub", "True", "--timeout", 1)
    assert (answer.status, answer.out) == (1, "")
    assert "not subscribed in time" in answer.err


def _wait_for_subscription(fabric: Fabric) -> None:
    asyncio.run(until(lambda: bool(fabric.state.subscriptions)))
