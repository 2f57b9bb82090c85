"""A controller's log: the first lines of each kind, and of a flood the last, with how many there were."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Iterator

import pytest

from flowsieve.cli.daemon_log import MOST_OF_A_KIND, MOST_OF_ONE, FewOfEach, JsonLines

LONG = 3600.0


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def logger(out: io.StringIO, seconds: float) -> tuple[logging.Logger, FewOfEach]:
    handler = FewOfEach(seconds)
    handler.setStream(out)
    own = logging.Logger("flowsieve.test", logging.INFO)
    own.addHandler(handler)
    return own, handler


def lines(out: io.StringIO) -> Iterator[str]:
    return iter(out.getvalue().splitlines())


def test_of_many_lines_about_one_thing_the_first_are_written_and_at_the_end_the_last(
    out: io.StringIO,
) -> None:
    log, handler = logger(out, LONG)
    for number in range(100):
        log.warning("link %s is down", "s1 - s2")
        log.info("link %s is up again", "s1 - s2")
        if number == 50:
            log.info("link %s is up again", "s3 - s4")
    assert len(list(lines(out))) == 2 * MOST_OF_ONE + 1
    handler.close()
    *_, down, up = lines(out)
    assert down == f"link s1 - s2 is down (the last of {100 - MOST_OF_ONE} such lines)"
    assert up == f"link s1 - s2 is up again (the last of {100 - MOST_OF_ONE} such lines)"


def test_lines_about_ever_new_things_are_bounded_too(out: io.StringIO) -> None:
    log, handler = logger(out, LONG)
    for number in range(10_000):
        log.info("host %s: session begins", number)
    assert len(list(lines(out))) == MOST_OF_A_KIND
    assert len(handler._windows) == MOST_OF_A_KIND + 1
    handler.close()
    assert out.getvalue().endswith("host 9999: session begins (the last of 9,940 such lines)\n")


def test_what_was_kept_is_written_when_the_time_is_over_though_nothing_else_comes(out: io.StringIO) -> None:
    log, handler = logger(out, 0.2)
    for _ in range(MOST_OF_ONE + 1):
        log.info("link %s is down", "s1 - s2")
    end = time.monotonic() + 60
    while len(list(lines(out))) <= MOST_OF_ONE and time.monotonic() < end:
        time.sleep(0.01)
    assert list(lines(out)) == ["link s1 - s2 is down"] * (MOST_OF_ONE + 1)
    handler.close()


def test_a_line_for_machines_is_an_object() -> None:
    record = logging.makeLogRecord(
        {"name": "x", "msg": "switch %s", "args": ("s1",), "levelname": "INFO", "created": 0.5, "msecs": 500}
    )
    assert (
        json.loads(JsonLines().format(record))
        == {
            "time": "1970-01-01T00:00:00.500Z",
            "level": "info",
            "from": "x",
            "text": "switch s1",
        }
        or record.msecs != 500
    )
