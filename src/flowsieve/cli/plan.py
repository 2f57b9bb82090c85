"""The commands that make index plans and judge them, which run on Spark: plan, evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import options, plan_view, view
from flowsieve.cli.options import option
from flowsieve.errors import BadInput
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.pipeline.reading.schema_file import read_schema
from flowsieve.pipeline.runtime.work import working

if TYPE_CHECKING:
    from flowsieve.pipeline.planning.holdout import Holdout
    from flowsieve.pipeline.reading.ingest import IngestedEvents
    from flowsieve.pipeline.runtime.spark_sample import SparkSample


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    data = "--events out/w/events.parquet --subscriptions out/w/subscriptions.parquet"
    app.command(
        epilog=f"Example: flowsieve plan --schema out/w/schema.toml {data} --bits 23 --out out/plan.json"
    )(plan)
    app.command(epilog=f"Example: flowsieve evaluate --plan out/plan.json {data}")(evaluate)


def plan(
    schema: options.SchemaFile,
    events: options.Events,
    subscriptions: options.Wanted,
    out: Annotated[Path, option("PLAN.json", "Where to write the plan.")],
    method: Annotated[
        str,
        option(
            "M", "ri, si, asi, lw, kd; one of them behind evs, emcs, cs, gs, brs or random (gs+asi); or auto."
        ),
    ] = "auto",
    bits: Annotated[int, option("N", "The longest dz: 23 for IPv4, 112 for IPv6.")] = 23,
    max_dz: Annotated[int, option("N", "The dz of a filter to plan for; 0: any number.")] = 32,
    table: Annotated[
        int | None, option("N", "Plan for a whole table of N entries, in place of so many dz a filter.")
    ] = None,
    dimensions: Annotated[
        int | None, option("N", "How many a selection takes; by default as many as are best.")
    ] = None,
    deadline: Annotated[float, option("S", "Seconds that auto may take.")] = 120.0,
    hold_back: Annotated[
        float, option("SHARE", "The share of events to keep for `evaluate`, the latest ones.")
    ] = 0.2,
    seed: Annotated[int, option("N", "For a random selection.")] = 0,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Make an index plan for events and subscriptions.

    The latest events (by time; without times, some by a hash of their ids) are held back: `evaluate` judges on them.
    """
    started = time.monotonic()
    space = read_schema(schema)
    if not 1 <= bits <= MAX_LENGTH:
        raise BadInput(f"--bits is {bits}; right is 1 to {MAX_LENGTH}")
    options.check_max_dz(max_dz)
    options.check_table(table)
    if deadline <= 0:
        raise BadInput(f"--deadline is {deadline}; right is a number of seconds")
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.planning.holdout import Holdout, fingerprint
        from flowsieve.pipeline.planning.plan_file import Planned, write_plan
        from flowsieve.pipeline.planning.spark_planning import check_method, make_plan, workshop_on

        check_method(method)
        subscribed = work.subscriptions(subscriptions, space)
        intake = work.events(events, space)
        good, wanted = intake.events, subscribed.subscriptions
        with work.watched("reading"):
            rule = Holdout.latest(good, hold_back)
            name = fingerprint(good)
        planned_on = rule.planned_on(good)
        with (
            work.watched("planning"),
            workshop_on(
                planned_on,
                wanted,
                bits,
                max_dz if table is None else 0,
                intake.account.good,
                dimensions,
                seed,
                table=table,
            ) as shop,
        ):
            sampled = shop.sampled
            made = make_plan(
                method, shop, deadline, started, tell=lambda _, *far: work.tell("candidates", *far)
            )
        write_plan(out, made.plan, Planned(space, made.method, name, rule))
        read = {"events": intake.account.to_json(), "subscriptions": subscribed.account.to_json()}
        result: dict[str, Any] = {
            "method": made.method,
            "kind": made.plan.kind,
            "bits": made.plan.bits,
            "dimensions": list(getattr(made.plan, "dimensions", space.names)),
            **_planned_for(max_dz, table),
            "planned_on": {"events": sampled, "of": intake.account.good, "held_back": rule.text},
            "portfolio": made.portfolio,
            "plan": str(out),
            "read": read,
            "seconds": time.monotonic() - started,
        }
    view.answer(as_json, result, lambda: plan_view.plan(result))
    return 0


def evaluate(
    plan: Annotated[list[Path], option("PLAN.json", "A plan; several are judged in one pass.")],
    events: options.Events,
    subscriptions: options.Wanted,
    schema: options.SchemaOfPlans = None,
    max_dz: options.MaxDz = 32,
    sample: Annotated[
        Path | None, option("E2", "Events that weigh covers, as `sample` in a scenario does.")
    ] = None,
    table: Annotated[
        int | None, option("N", "Covers for a whole table of N entries, in place of so many dz a filter.")
    ] = None,
    all_events: Annotated[
        bool, typer.Option("--all", help="Judge on all events, also on those that a plan was made from.")
    ] = False,
    max_bad: options.MaxBad = 0.01,
    time_column: options.TimeColumn = None,
    master: options.Master = None,
    as_json: options.Json = False,
) -> int:
    """Count what plans deliver, exactly, per subscription and in total.

    A plan that was made from these very events is judged on those that were held back then; from other events, on all.
    A table is cut by the events of --sample, or else by those that the plan was made from.
    """
    started = time.perf_counter()
    options.check_max_dz(max_dz)
    options.check_table(table)
    declared = None if schema is None else read_schema(schema)
    from flowsieve.pipeline.planning.plan_file import judged_on, read_plans

    contenders = read_plans(plan, declared)
    space = contenders.schema
    with working(view.progress, master, max_bad, time_column) as work:
        from flowsieve.pipeline.evaluation.covers import candidates_on, table_candidates
        from flowsieve.pipeline.evaluation.evaluation import evaluate as count
        from flowsieve.pipeline.runtime.spark_sample import SparkSample

        wanted = work.subscriptions(subscriptions, space).subscriptions
        intake = work.events(events, space)
        good = intake.events
        with work.watched("reading"):
            rules = [None for _ in plan] if all_events else contenders.held_back(good)
        weights = None
        if sample is not None:
            some = work.events(sample, space)
            weights = SparkSample.of(some.events, space, some.account.good)
        with work.watched("covers"):
            if table is None:
                candidates = candidates_on(work.spark, contenders.plans, wanted.filters, max_dz, weights)
            else:
                known = {rule: weights or _planned_on(rule, intake) for rule in rules}
                samples = [known[rule] for rule in rules]
                candidates = table_candidates(contenders.plans, wanted.filters, table, samples)
        scores: dict[int, Any] = {}
        for rule in dict.fromkeys(rules):
            group = [i for i, other in enumerate(rules) if other == rule]
            with work.watched("events"):
                judged = good if rule is None else rule.judged_on(good)
                found = count([candidates[i] for i in group], wanted.boxes, judged)
            scores |= dict(zip(group, found, strict=True))
    plans = []
    for i, path in enumerate(plan):
        about = {"plan": str(path), "events": scores[i].events, "judged_on": judged_on(rules[i])}
        plans.append(about | scores[i].to_json() | {"subscriptions": [*scores[i].rows(wanted.ids)]})
    result = plans[0] | _planned_for(max_dz, table) | {"seconds": time.perf_counter() - started}
    if len(plans) > 1:
        result["plans"] = plans
    view.answer(as_json, result, lambda: plan_view.evaluation(result, plans))
    return 1 if any(score.false_negatives for score in scores.values()) else 0


def _planned_for(max_dz: int, table: int | None) -> dict[str, int]:
    """What covers may cost: so many dz each, or the entries of a table together."""
    return {"max_dz": max_dz} if table is None else {"max_dz": 0, "table": table}


def _planned_on(rule: Holdout | None, intake: IngestedEvents) -> SparkSample:
    """A sample of the events that a plan was made from."""
    from flowsieve.pipeline.runtime.spark_sample import SparkSample

    if rule is None:
        raise BadInput(
            "--table needs events to cut the table by, and those given are all judged; give others: --sample E2"
        )
    return SparkSample.of(rule.planned_on(intake.events), intake.schema, intake.account.good)
