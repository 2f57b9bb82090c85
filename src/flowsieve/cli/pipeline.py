"""The commands of the data pipeline, which run on Spark: synth, ingest, stats."""

from __future__ import annotations

import time
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from flowsieve.cli import options, pipeline_view, view
from flowsieve.cli.options import option
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.schema_file import read_schema, write_schema
from flowsieve.pipeline.runtime.frame_files import check_format, check_free, write_frame
from flowsieve.pipeline.runtime.work import working
from flowsieve.pipeline.synth.workload import CHOICES, Workload

DEFAULTS = {field.name: field.default for field in fields(Workload)}


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    example = "Example: flowsieve"
    app.command(epilog=f"{example} synth --kind zipfsel --events 100000 --subscriptions 5000 --out out/w")(
        synth
    )
    app.command(epilog=f"{example} ingest --events day.csv --infer day.toml --out out/day")(ingest)
    app.command(
        epilog=f"{example} stats --schema out/w/schema.toml --events out/w/events.parquet "
        "--subscriptions out/w/subscriptions.parquet"
    )(stats)


def _choice(name: str, what: str) -> Any:
    return option("WORD", f"{what}: {', '.join(CHOICES[name])}.")


def synth(
    out: options.Out,
    events: Annotated[int, option("N", "How many events.")],
    subscriptions: Annotated[int, option("N", "How many subscriptions.")],
    kind: Annotated[str, _choice("kind", "What it is like")] = str(DEFAULTS["kind"]),
    attributes: Annotated[int, option("N", "How many attributes an event has.")] = 8,
    bits: Annotated[int, option("N", "Attributes go from 0 to 2^N - 1.")] = 12,
    hotspots: Annotated[int, option("N", "How many hotspots, 1 to 8.")] = 8,
    exponent: Annotated[float, option("X", "The exponent of their zipf popularity.")] = 1.0,
    variance: Annotated[str, _choice("variance", "How dimensions differ in spread")] = "random",
    correlation: Annotated[str, _choice("correlation", "How dimensions hang together")] = "none",
    selectivity: Annotated[str, _choice("selectivity", "How dimensions differ in width of boxes")] = "same",
    width: Annotated[float, option("SHARE", "Mean width of a box.")] = 0.25,
    drift: Annotated[float, option("SHARE", "How far hotspots move from first to last event.")] = 0.0,
    hosts: Annotated[int, option("N", "Give events and subscriptions hosts.")] = 0,
    seed: Annotated[int, option("N", "Another one draws other data.")] = 0,
    format: Annotated[str, option("WORD", "parquet or csv.")] = "parquet",
    parts: Annotated[int | None, option("N", "Files per table; the data is the same.")] = None,
    overwrite: options.Overwrite = False,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Draw a workload: events, subscriptions and their schema.

    The same seed gives the same data wherever it is drawn and however it is split.
    """
    given = {name: value for name, value in locals().items() if name in DEFAULTS}
    workload = Workload(**given)
    check_format(format)
    names = {
        "events": f"events.{format}",
        "subscriptions": f"subscriptions.{format}",
        "schema": "schema.toml",
    }
    check_free(out, list(names.values()), overwrite)
    if parts is not None and parts < 1:
        raise BadInput(f"--parts is {parts}; right is 1 or more")
    with working(view.progress, master) as work:
        from flowsieve.pipeline.synth.synth import synth_events, synth_subscriptions

        start = time.perf_counter()
        drawn = synth_events(work.spark, workload, events, parts)
        wanted = synth_subscriptions(work.spark, workload, subscriptions, parts)
        write_schema(out / names["schema"], workload.schema, f"{workload.kind}, seed {workload.seed}")
        with work.watched("events"):
            write_frame(drawn, out / names["events"])
        with work.watched("subscriptions"):
            write_frame(wanted, out / names["subscriptions"])
        seconds = time.perf_counter() - start
    files = {name: str(out / file) for name, file in names.items()}
    told = f"{events:,} events and {subscriptions:,} subscriptions, {kind}, seed {seed}, in {seconds:.1f} s"
    rows = {"drawn": told, "written": ", ".join(files.values())}
    result = given | {"events": events, "subscriptions": subscriptions, "files": files, "seconds": seconds}
    view.answer(as_json, result, lambda: view.out.print(view.facts(rows)))
    return 0


def ingest(
    events: Annotated[
        Path | None, option("E", "Events: CSV, JSON lines, Parquet, or a folder of them.")
    ] = None,
    subscriptions: options.MaybeWanted = None,
    schema: Annotated[Path | None, options.SCHEMA] = None,
    infer: Annotated[Path | None, option("S.toml", "Find the schema, and write it here.")] = None,
    out: Annotated[Path | None, option("DIR", "Write what is good, and what was set aside.")] = None,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    overwrite: options.Overwrite = False,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Read events and subscriptions, say what is wrong with them, and write them as Parquet.

    Into DIR go events.parquet, subscriptions.parquet, schema.toml, and aside.csv: the rows that cannot be used, each
    with its file, row and reason.
    """
    if (schema is None) == (infer is None):
        raise BadInput(
            "give a schema: either --schema S.toml, or --infer S.toml to have one found and written"
        )
    if events is None and (subscriptions is None or infer is not None):
        raise BadInput("nothing to read; give --events, and --subscriptions if there are any")
    started = time.perf_counter()
    declared = None if schema is None else read_schema(schema)
    if out is not None:
        check_free(out, ["events.parquet", "subscriptions.parquet", "aside.csv", "schema.toml"], overwrite)
    with working(view.progress, master) as work:
        from flowsieve.pipeline.reading.infer import infer_schema
        from flowsieve.pipeline.reading.ingest import IngestedEvents, read_events
        from flowsieve.pipeline.reading.rejects import write_aside
        from flowsieve.pipeline.reading.subscriptions import Subscribed, read_subscriptions

        result: dict[str, Any] = {}
        if declared is None:
            assert infer is not None and events is not None
            with work.watched("schema"):
                found = infer_schema(work.spark, events, time=time_column)
            declared = found.schema
            write_schema(infer, declared, f"found in {events}")
            result["passed_over"] = dict(found.passed_over)
        intake: IngestedEvents | None = None
        subscribed: Subscribed | None = None
        if subscriptions is not None:
            with work.watched("subscriptions"):
                subscribed = read_subscriptions(work.spark, subscriptions, declared)
            result["subscriptions"] = subscribed.account.to_json()
        if events is not None:
            intake = read_events(work.spark, events, declared, time=time_column)
            with work.watched("events"):
                result["events"] = intake.account.to_json()
        if out is not None:
            with work.watched("writing"):
                write_aside(work.spark, out / "aside.csv", intake, subscribed)
        for read in (intake, subscribed):
            if read is not None:
                read.checked(max_bad)
        if out is not None:
            write_schema(out / "schema.toml", declared)
            with work.watched("writing"):
                if intake is not None:
                    write_frame(intake.events, out / "events.parquet")
                if subscribed is not None:
                    write_frame(subscribed.subscriptions.frame(work.spark), out / "subscriptions.parquet")
    told = partial(pipeline_view.intake, result, declared, infer, out, time.perf_counter() - started)
    view.answer(as_json, result | {"schema": declared.to_json()}, told)
    return 0


def stats(
    schema: options.SchemaFile,
    events: options.Events,
    subscriptions: options.Wanted,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Show what a workload is like: spread, matches, overlap and selectivity per dimension; who gets how much."""
    space = read_schema(schema)
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.matching.statistics import statistics

        start = time.perf_counter()
        subscribed = work.subscriptions(subscriptions, space)
        intake = work.events(events, space)
        with work.watched("matching"):
            found = statistics(intake.events, subscribed.subscriptions.boxes)
        read = {"events": intake.account.to_json(), "subscriptions": subscribed.account.to_json()}
        result = found.to_json() | {"read": read, "seconds": time.perf_counter() - start}
    view.answer(as_json, result, lambda: pipeline_view.statistics(result))
    return 0
