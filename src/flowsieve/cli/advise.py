"""The command that says which way to address packets suits a workload and a network: advise."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import advise_view, options, view
from flowsieve.cli.options import option
from flowsieve.errors import BadInput

if TYPE_CHECKING:
    from flowsieve.content.event import EventBatch
    from flowsieve.control.request import Request
    from flowsieve.pipeline.advice.trials import TriedLoad
    from flowsieve.scenario.read import Scenario

EXAMPLES = (
    "flowsieve advise examples/stock/scenario.toml",
    "flowsieve advise network.toml --events out/w/events.parquet --subscriptions out/w/subscriptions.parquet",
)


def add_to(app: typer.Typer) -> None:
    """Put the command among those of an app."""
    app.command(epilog=f"Examples: {'; '.join(EXAMPLES)}")(advise)


def advise(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.toml", help="The schema and the network; steps, if any.")
    ],
    events: Annotated[
        Path | None, option("E", "Events, read on Spark; by default those of the scenario's steps.")
    ] = None,
    subscriptions: Annotated[
        Path | None, option("F", "Subscriptions: id, host, filter; by default the scenario's.")
    ] = None,
    publishers: Annotated[
        int, option("N", "So many hosts publish anything, where nobody advertises and events name no host.")
    ] = 4,
    churn: Annotated[float, option("R", "Subscriptions a second that come or go.")] = 0.0,
    private: Annotated[
        bool, typer.Option("--private", help="Filters must not be told to publishers.")
    ] = False,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Say which suits a workload and a network: dz, labels that name receivers, or Bloom filters; and why.

    Each is played on the embedded network, with at most 2,000 subscriptions and 4,000 events. [index] gives the
    settings of the one that it names.
    """
    started = time.monotonic()
    from flowsieve.pipeline.advice.recommendation import OVS_RATIO, TOLD, Circumstances, recommend
    from flowsieve.pipeline.advice.trials import try_all
    from flowsieve.scenario.read import read_scenario

    if publishers < 1:
        raise BadInput(f"--publishers is {publishers}; right is a number from 1 on")
    if not 0 <= churn < 1e9:
        raise BadInput(f"--churn is {churn}; right is a number of subscriptions a second")
    setting = read_scenario(scenario)
    read = _read_files(setting, events, subscriptions, max_bad, time_column, master)
    load = _load(setting, *read, publishers)
    with view.progress() as progress:
        trials = try_all(load, progress)
    advice = recommend(trials, Circumstances(private, churn))
    result: dict[str, Any] = {
        "recommended": advice.recommended,
        "reasons": list(advice.reasons),
        "headers": {
            name: trial.to_json() | {"told": TOLD[name], "ovs_packets_ratio": OVS_RATIO[name]}
            for name, trial in trials.items()
        },
        "workload": {
            "switches": len(setting.topology.switches),
            "hosts": len(setting.topology.hosts),
            "publishers": len({offer.endpoint for offer in load.offers}),
            "subscriptions": {"given": load.given, "used": len(load.wishes)},
            "events": {"sampled": len(load.earlier), "sent": len(load.later)},
        },
        "seconds": time.monotonic() - started,
    }
    view.answer(as_json, result, lambda: advise_view.advice(result))
    return 0 if advice.recommended else 1


def _load(
    setting: Scenario, events: EventBatch | None, wishes: list[Request] | None, publishers: int
) -> TriedLoad:
    """What is to be played: from files where they are given, else what the scenario's steps come to."""
    from flowsieve.content.event import EventBatch
    from flowsieve.flow.tables.compiler import Side
    from flowsieve.pipeline.advice.trials import load_of
    from flowsieve.scenario.read import EventStep

    if events is None:
        steps = [step.events for step in setting.steps if isinstance(step, EventStep)]
        if not steps:
            raise BadInput("the scenario's steps have no events; give --events E", place=str(setting.path))
        events = EventBatch.joined(steps)
        faulty, _ = events.faults()
        events = events.take(~faulty)
    if wishes is None:
        wishes = [*setting.asked(Side.SUBSCRIBER).values()]
    return load_of(setting, wishes, events, publishers)


def _read_files(
    setting: Scenario,
    events: Path | None,
    subscriptions: Path | None,
    max_bad: float,
    time_column: str | None,
    master: str | None,
) -> tuple[EventBatch | None, list[Request] | None]:
    """A sample of the events in a file, and the subscriptions in one, read on Spark; None for what is not given."""
    if events is None and subscriptions is None:
        return None, None
    from flowsieve.control.request import Op, Request
    from flowsieve.pipeline.advice.trials import MOST_EVENTS, MOST_SAMPLED
    from flowsieve.pipeline.runtime.work import working

    batch: EventBatch | None = None
    wishes: list[Request] | None = None
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.runtime.spark_sample import SparkSample

        if subscriptions is not None:
            reached = {host for host in setting.topology.hosts if setting.topology.reachable(host)}
            found = work.subscriptions(subscriptions, setting.schema, reached).subscriptions
            rows = zip(found.ids, found.hosts or (), found.filters, strict=True)
            wishes = [Request(Op.SUBSCRIBE, id, host, filter) for id, host, filter in rows]
        if events is not None:
            intake = work.events(events, setting.schema)
            with work.watched("events"):
                most = MOST_EVENTS + MOST_SAMPLED
                drawn = SparkSample.of(intake.events, setting.schema, intake.account.good, most)
                batch = drawn.ask(lambda sampled: sampled)
                drawn.forget()
    return batch, wishes
