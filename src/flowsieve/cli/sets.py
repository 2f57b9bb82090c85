"""The command that learns which hosts share a set of receivers, which runs on Spark: sets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import options, plan_view, view
from flowsieve.cli.options import option
from flowsieve.errors import BadInput
from flowsieve.pipeline.runtime.work import Work, working

if TYPE_CHECKING:
    from flowsieve.content.filter import Filter
    from flowsieve.pipeline.reading.ingest import IngestedEvents
    from flowsieve.scenario.read import Scenario

MOST_LINKS = 100
EXAMPLE = (
    "scenario.toml --events out/w/events.parquet --subscriptions out/w/subscriptions.parquet --out sets.json"
)


def add_to(app: typer.Typer) -> None:
    """Put the command among those of an app."""
    app.command(epilog=f"Example: flowsieve sets {EXAMPLE}")(sets)


def sets(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.toml", help="The schema and the network; steps, if any.")
    ],
    out: Annotated[Path, option("SETS.json", "Where to write the sets.")],
    events: Annotated[Path | None, option("E", "Events; by default those of the scenario's steps.")] = None,
    subscriptions: Annotated[
        Path | None, option("F", "Subscriptions: id, host, filter; by default the scenario's.")
    ] = None,
    max_sets: Annotated[
        int | None, option("N", "At most so many sets; by default as many as cost no further bit.")
    ] = None,
    links: Annotated[
        float, option("W", "What a packet over a link counts against one that a publisher sends.")
    ] = 0.1,
    hold_back: Annotated[
        float, option("SHARE", "The share of events to judge the sets by, the latest ones.")
    ] = 0.2,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Learn which hosts share a set, for labels that name receivers in a network with more hosts than bits.

    An event is sent once for each set in which somebody wants it, so hosts that want the same events are put together.
    Name the file in a scenario: `header = "receivers"` and `sets = "SETS.json"` in [index].
    """
    started = time.monotonic()
    from flowsieve.scenario.read import read_workload

    setting = read_workload(scenario)
    if max_sets is not None and max_sets < 1:
        raise BadInput(f"--max-sets is {max_sets}; right is a number of sets from 1 on")
    if not 0 <= links <= MOST_LINKS:
        raise BadInput(
            f"--links is {links}; right is a number from 0, where links do not matter, to {MOST_LINKS}"
        )
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.planning.holdout import Holdout, fingerprint
        from flowsieve.pipeline.reading.ingest import joined_events
        from flowsieve.pipeline.receiver_sets.learned_sets import learn_sets, write_sets
        from flowsieve.pipeline.receiver_sets.learning import set_sizes

        reached = [host for host in setting.topology.hosts if setting.topology.reachable(host)]
        set_sizes(len(reached), max_sets)  # says what is wrong before anything is read
        wanted = _wanted(work, setting, subscriptions, reached)
        intakes = _events(work, setting, events)
        good = joined_events(intakes)
        with work.watched("reading"):
            rule, name = Holdout.latest(good, hold_back), fingerprint(good)
        made = learn_sets(setting, wanted, good, rule, max_sets, links, work.watched)
        write_sets(out, made, name, rule)
        result: dict[str, Any] = made.to_json() | {
            "held_back": rule.text,
            "written": str(out),
            "read": {
                "events": {intake.path: intake.account.to_json() for intake in intakes},
                "subscriptions": len(wanted),
            },
            "seconds": time.monotonic() - started,
        }
    view.answer(as_json, result, lambda: plan_view.sets(result))
    return 0


def _wanted(work: Work, setting: Scenario, path: Path | None, hosts: list[str]) -> list[tuple[str, Filter]]:
    """Who wants what: as a file says, or the scenario after all its steps."""
    from flowsieve.flow.tables.compiler import Side

    if path is not None:
        read = work.subscriptions(path, setting.schema, frozenset(hosts)).subscriptions
        assert read.hosts is not None
        return [*zip(read.hosts, read.filters, strict=True)]
    asked = setting.asked(Side.SUBSCRIBER).values()
    found = [(each.endpoint, each.filter) for each in asked if each.filter is not None]
    if not found:
        raise BadInput(
            "nobody subscribes in the scenario's steps; give --subscriptions F, with id, host and filter",
            place=str(setting.path),
        )
    return found


def _events(work: Work, setting: Scenario, path: Path | None) -> list[IngestedEvents]:
    """The events of a file, or of each of the scenario's steps."""
    from flowsieve.scenario.read import EventStep

    own = [step.source for step in setting.steps if isinstance(step, EventStep)]
    paths = own if path is None else [path]
    if not paths:
        raise BadInput("the scenario's steps have no events; give --events E", place=str(setting.path))
    return [work.events(each, setting.schema) for each in paths]
