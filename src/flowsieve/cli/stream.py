"""The command that watches live traffic on Spark and offers plans that follow it: stream."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import options, stream_view, view
from flowsieve.cli.offers import link_to
from flowsieve.cli.options import option
from flowsieve.errors import BadInput, Denied, FlowsieveError

if TYPE_CHECKING:
    from flowsieve.pipeline.stream.offering import ControllerLink

CONNECT = "sc://"


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.command(
        epilog="Example: flowsieve stream /var/lib/flowsieve/telemetry --out out/stream "
        "--control http://127.0.0.1:7420"
    )(stream)


def stream(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where a controller lands telemetry.")],
    out: Annotated[
        Path, option("DIR", "Where statistics, plans and the checkpoint go; it goes on from there.")
    ],
    control: options.Control = None,
    lab: options.LabName = None,
    operator: options.Operator = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto", help="Have the controller go over without asking anybody, if it is configured to."
        ),
    ] = False,
    window: Annotated[float, option("S", "Seconds that statistics and plans look back.")] = 60.0,
    trigger: Annotated[float, option("S", "Seconds between two looks for new files.")] = 1.0,
    drift: Annotated[float, option("SHARE", "Plan when a dimension has drifted so far, 0 to 1.")] = 0.2,
    rise: Annotated[float, option("SHARE", "Plan when the false-positive rate has risen by that.")] = 0.05,
    fpr: Annotated[float | None, option("SHARE", "Plan when the false-positive rate is so high.")] = None,
    every: Annotated[float, option("S", "Plan at least that often.")] = 600.0,
    pause: Annotated[float, option("S", "Plan no sooner than that after the last time.")] = 30.0,
    least: Annotated[int, option("N", "Fewer events in a window say nothing.")] = 1000,
    method: Annotated[str, option("M", "How to plan, as `plan` has it.")] = "auto",
    deadline: Annotated[float, option("S", "Seconds for a plan.")] = 8.0,
    bits: Annotated[int | None, option("N", "The longest dz; by default as in the running plan.")] = None,
    max_dz: Annotated[int, option("N", "The dz of a filter to plan for; 0: any number.")] = 32,
    margin: Annotated[float, option("SHARE", "Offer a plan whose rate is lower by that share.")] = 0.1,
    horizon: Annotated[float, option("S", "Seconds in which a move to it has to pay.")] = 3600.0,
    move_seconds: Annotated[float, option("S", "Seconds that a move takes.")] = 3.0,
    late: Annotated[float, option("S", "Set aside events that landed so long after they were sent.")] = 60.0,
    max_files: Annotated[int, option("N", "Files that are read at a time.")] = 200,
    once: Annotated[bool, typer.Option("--once", help="End when all that is there has been read.")] = False,
    master: options.Master = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each micro-batch, and nothing else.")
    ] = False,
) -> int:
    """Watch live traffic, and offer the controller a new plan where that is worth the move.

    It runs until it is interrupted. Started again with the same --out it goes on where it was: everything is counted
    once, whatever it was killed at.
    """
    from flowsieve.pipeline.runtime.spark_session import session
    from flowsieve.pipeline.stream.landing import LandingFolder

    options.check_max_dz(max_dz)
    link = link_to(control, lab, operator) if control or lab else None
    _check_place(folder, master)
    if auto:
        _check_auto(link)
    with _alone(out):
        settings = {
            "spark.driver.extraJavaOptions": "-Xss8m"
        }  # Spark looks through whole traces when it stops
        spark = session(master, settings, _alone_here())
        from flowsieve.pipeline.stream.decision import MovePrice, Thresholds
        from flowsieve.pipeline.stream.replanning import PlanningOptions
        from flowsieve.pipeline.stream.stream_job import StreamJob, StreamOptions

        chosen_options = StreamOptions(
            window,
            trigger,
            late,
            max_files,
            Thresholds(drift, rise, fpr, every, pause, least),
            MovePrice(margin, horizon, move_seconds),
            PlanningOptions(method, deadline, bits, max_dz),
            auto,
        )
        landing = LandingFolder(folder if "://" in folder else str(Path(folder).absolute()))
        tell = view.print_json if as_json else stream_view.batch
        job = StreamJob(spark, landing, out, chosen_options, link, tell, stream_view.note)
        if not as_json:
            stream_view.begin(folder, out, link.addresses if link is not None else ())
        with _ending() as ended:
            totals = job.run(ended, once)
    if not as_json:
        stream_view.end(vars(totals))
    return 0


def _check_place(folder: str, master: str | None) -> None:
    if (master or os.environ.get("SPARK_REMOTE", "")).startswith(CONNECT):
        raise BadInput(
            f"{CONNECT}… is a Connect server, which would have the job run in a process of its own; right is "
            "spark://HOST:PORT or local[4]"
        )
    if "://" not in folder and not Path(folder).is_dir():
        raise BadInput("there is no such folder; right is where a controller lands telemetry", place=folder)


def _check_auto(link: ControllerLink | None) -> None:
    """Raise at once where --auto is of no use, rather than with the first offer; a controller may be away."""
    if link is None:
        raise BadInput("--auto needs a controller; right is --control ADDRESS")
    try:
        allowed = bool(link.offers().get("auto"))
    except FlowsieveError as error:
        view.err.print(f"the controller does not say whether --auto is allowed: {error}", soft_wrap=True)
        return
    if not allowed:
        raise Denied(
            "this controller has plans approved by a person; right is auto = true in [offers] of its "
            "configuration, or no --auto"
        )


def _alone_here() -> str:
    """As many tasks at a time on this machine as it has cores, and those of a planner beside them."""
    from flowsieve.pipeline.planning.spark_planning import AT_ONCE

    return f"local[{(os.cpu_count() or 1) + AT_ONCE}]"


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Nobody else works in the folder meanwhile."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with (out / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInput(
                    "another stream writes there; right is another --out", place=str(out)
                ) from None
            yield
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror or error}", place=str(out)) from None


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """An event that is set when a signal asks to end."""
    ended = threading.Event()

    def end(*_: Any) -> None:
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
