"""The commands that score a network on Spark, and draw what plans are worth: replay, report."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import options, replay_view, view
from flowsieve.cli.options import option
from flowsieve.cli.scenario import settled
from flowsieve.errors import BadInput
from flowsieve.pipeline.reading.schema_file import read_schema
from flowsieve.pipeline.runtime.frame_files import check_free
from flowsieve.pipeline.runtime.work import Work, working

if TYPE_CHECKING:
    from flowsieve.pipeline.planning.plan_file import Contenders
    from flowsieve.pipeline.report.report_page import Shown
    from flowsieve.pipeline.report.sweeps import Sweep


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.command(
        epilog="Example: flowsieve replay examples/stock/scenario.toml --flows out/stock/flows.json "
        "--events examples/stock/events.csv"
    )(replay)
    app.command(
        epilog="Example: flowsieve report --plan out/plan.json --events out/w/events.parquet "
        "--subscriptions out/w/subscriptions.parquet --out out/report"
    )(report)


def replay(
    scenario: options.ScenarioFile,
    events: Annotated[Path, option("E", "Events: id, host and the attributes; CSV, Parquet, …")],
    flows: options.FlowsFile = None,
    host: Annotated[str | None, option("H", "The host that publishes all the events.")] = None,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Send events through a network's tables on Spark, and count what links carry and hosts get.

    Wanted is what the subscriptions match that the scenario ends with; its own events are not sent. The tables stay as
    they are, and any number of events goes through them.
    """
    started = time.perf_counter()
    from flowsieve.scenario.flow_files import read_flows
    from flowsieve.scenario.read import read_scenario

    setting = read_scenario(scenario)
    dump = read_flows(flows, setting) if flows else None
    if host is not None:
        setting.topology.endpoint(host)  # says which host would be right
    stage = settled(setting)
    seen = stage.plane.view(dump)
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.replay.network_snapshot import NetworkSnapshot
        from flowsieve.pipeline.replay.replay import at_hosts
        from flowsieve.pipeline.replay.replay import replay as send

        snapshot = NetworkSnapshot.of(seen)
        intake = work.events(events, setting.schema, lambda read: at_hosts(read, setting.topology, host))
        with work.watched("events"):
            replayed = send(intake.events, snapshot)
    account = intake.account
    entries = [len(table) for table in (dump or stage.tables()).values()]
    result: dict[str, Any] = {
        "events": account.rows - account.broken,
        "rejected": account.missing + account.outside + replayed.unadvertised,
        **replayed.to_json(),
        "flows": sum(entries),
        "flows_max": max(entries),
        "read": account.to_json(),
        "seconds": time.perf_counter() - started,
    }
    view.answer(as_json, result, lambda: replay_view.replay(result, scenario))
    return 1 if result["false_negatives"] or result["duplicates"] or result["expired"] else 0


def report(
    out: options.Out,
    plan: Annotated[
        list[Path] | None, option("PLAN.json", "A plan to measure; several may be given.")
    ] = None,
    events: options.MaybeEvents = None,
    subscriptions: options.MaybeWanted = None,
    results: Annotated[
        list[Path] | None, option("R.json", "What `evaluate --json` printed, to be drawn as well.")
    ] = None,
    schema: options.SchemaOfPlans = None,
    axes: Annotated[
        str | None, option("X,Y", "Two attributes to draw cells along; else those cut most finely.")
    ] = None,
    max_dz: options.MaxDz = 32,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    overwrite: options.Overwrite = False,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Draw what plans are worth: false positives against bits, dimensions and entries, and how they cut the space.

    Into DIR go report.html, which needs no other file, and each figure as a PNG. Plans that were made from these very
    events are measured on those that were held back then.
    """
    started = time.perf_counter()
    from flowsieve.pipeline.report.report_page import Shown
    from flowsieve.pipeline.report.sweeps import Sweep, read_results

    if not plan and not results:
        raise BadInput("nothing to draw; give --plan PLAN.json, or --results R.json")
    if plan and (events is None or subscriptions is None):
        raise BadInput("plans are measured on data; give --events E and --subscriptions F")
    options.check_max_dz(max_dz)
    across = None if axes is None else _two(axes)
    check_free(out, ["report.html"], overwrite)
    other = tuple(found for path in results or () for found in read_results(path))
    swept, pictures = Sweep(()), list[Shown]()
    facts = ["Drawn from results that were there already."]
    if plan and events is not None and subscriptions is not None:
        from flowsieve.pipeline.planning.plan_file import read_plans

        contenders = read_plans(plan, None if schema is None else read_schema(schema))
        labels = _labels(plan, contenders.methods)
        with working(view.progress, master, max_bad, time_column) as work:
            swept, pictures, facts = _measured(
                work, contenders, labels, (events, subscriptions), across, max_dz
            )
    from flowsieve.pipeline.report.figures import of_sweep, write_report

    shown = replace(swept, plans=(*swept.plans, *other))
    written = write_report(out, shown.plans, [*of_sweep(shown), *pictures], facts)
    result: dict[str, Any] = {
        "plans": [asdict(found) for found in shown.plans],
        "by_bits": [asdict(found) for found in shown.by_bits],
        "by_dimensions": [asdict(found) for found in shown.by_dimensions],
        "by_entries": [asdict(found) for found in shown.by_budget],
        "events": shown.events,
        "measured_on": facts,
        "files": written,
        "seconds": time.perf_counter() - started,
    }
    view.answer(as_json, result, lambda: replay_view.report(result))
    return 0


def _two(axes: str) -> tuple[str, str]:
    names = [name.strip() for name in axes.split(",")]
    if len(names) != 2 or not all(names):
        raise BadInput(f"--axes is {axes!r}; right are two attributes, such as price,volume")
    return names[0], names[1]


def _measured(
    work: Work,
    contenders: Contenders,
    labels: list[str],
    files: tuple[Path, Path],
    axes: tuple[str, str] | None,
    max_dz: int,
) -> tuple[Sweep, list[Shown], list[str]]:
    """What plans are worth on events and subscriptions, the pictures of them, and what was measured on what."""
    from flowsieve.pipeline.planning.plan_file import judged_on
    from flowsieve.pipeline.report.figures import of_plans
    from flowsieve.pipeline.report.plots import MOST_DOTS
    from flowsieve.pipeline.report.sweeps import covers_of, sweep, trials_of
    from flowsieve.pipeline.runtime.spark_sample import SparkSample

    events, subscriptions = files
    plans = dict(zip(labels, contenders.plans, strict=True))
    wanted = work.subscriptions(subscriptions, contenders.schema).subscriptions
    intake = work.events(events, contenders.schema)
    with work.watched("reading"):
        rules = {*contenders.held_back(intake.events)}
        rule = rules.pop() if len(rules) == 1 else None  # plans are compared on the same events
        judged = intake.events if rule is None else rule.judged_on(intake.events)
        drawn = SparkSample.of(intake.events, contenders.schema, intake.account.good, MOST_DOTS)
        dots = drawn.ask(lambda events: events)  # the few that a picture shows
    pictures = list(of_plans(plans, dots, wanted.filters, axes))
    trials = list(trials_of(plans, max_dz))
    with work.watched("covers"):
        candidates = covers_of(work.spark, trials, wanted.filters)
    with work.watched("events"):
        swept = sweep(trials, candidates, wanted.boxes, judged)
    budget = f"at most {max_dz} dz each" if max_dz else "exact covers"
    facts = [
        f"Measured on {swept.events:,} events of {events} ({judged_on(rule)}) and {len(wanted):,} subscriptions of "
        f"{subscriptions}, {budget}. A false positive is an event that a subscription's dz cover and that it does not "
        "match; the rate is its share of all that is covered.",
    ]
    return swept, pictures, facts


def _labels(paths: list[Path], methods: list[str]) -> list[str]:
    """A name for each plan: its method; where two have the same, also its file."""
    labels = [
        method if methods.count(method) == 1 else f"{method} ({path.stem})"
        for method, path in zip(methods, paths, strict=True)
    ]
    return [
        label if labels.count(label) == 1 else str(path) for label, path in zip(labels, paths, strict=True)
    ]
