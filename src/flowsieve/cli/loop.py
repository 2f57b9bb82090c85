"""The command that shows the whole loop on this machine: loop."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from flowsieve.cli import loop_view, view
from flowsieve.cli.lab import read_topology
from flowsieve.cli.options import Json, option


def add_to(app: typer.Typer) -> None:
    """Put the command among those of an app."""
    app.command(epilog="Example: flowsieve loop --out out/loop")(loop)


def loop(
    topology: Annotated[str, option("TOPOLOGY", "The network to bring up, as for `lab up`.")] = "ring:6",
    subscriptions: Annotated[int, option("N", "Subscriptions, on all hosts but two.")] = 200,
    rate: Annotated[float, option("R", "Events a second, by two publishers.")] = 500.0,
    seconds: Annotated[float, option("S", "Seconds before traffic changes, and after the new plan.")] = 15.0,
    window: Annotated[float, option("S", "Seconds that the stream looks back.")] = 8.0,
    deadline: Annotated[float, option("S", "Seconds that the stream has for a plan.")] = 5.0,
    method: Annotated[str, option("M", "How the stream plans, as `plan` has it.")] = "auto",
    out: Annotated[Path, option("DIR", "Where the series, the report and the logs go.")] = Path("out/loop"),
    as_json: Json = False,
) -> int:
    """Watch an index learn: traffic changes, the stream notices, and the switches go over to another plan.

    It brings up a real network on this machine with a controller, applications and the stream on Spark, and takes all
    of it down in the end. It needs root and Open vSwitch. The exit status is 1 if an event was lost or doubled.
    """
    from flowsieve.lab.machine import check_machine
    from flowsieve.loop.story import LoopOptions, LoopStory

    check_machine()
    options = LoopOptions(read_topology(topology), subscriptions, rate, seconds, window, deadline, method)
    story = LoopStory(
        options,
        out,
        (lambda row: None) if as_json else loop_view.row,
        (lambda text: None) if as_json else loop_view.note,
    )
    with _ending_as_by_hand():
        course, verdict = story.run()
    from flowsieve.loop.report import page

    rows = "".join(json.dumps(row.to_json()) + "\n" for row in course.rows)
    (out / "series.jsonl").write_text(rows)
    (out / "verdict.json").write_text(json.dumps(verdict.to_json(), indent=2) + "\n")
    (out / "report.html").write_text(page(options, course, verdict))
    told = {**verdict.to_json(), "report": str(out / "report.html"), "series": str(out / "series.jsonl")}
    view.answer(as_json, told, lambda: loop_view.verdict(verdict, out / "report.html"))
    return 0 if verdict.holds else 1


@contextmanager
def _ending_as_by_hand() -> Iterator[None]:
    """Whoever ends us by a signal has all that was started ended too, as with Ctrl-C."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
