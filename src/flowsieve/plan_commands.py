"""The commands that make index plans and judge them, which run on Spark: plan, evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from flowsieve import plan_show
from flowsieve.errors import BadInput
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.pipeline.schema_file import read_schema
from flowsieve.pipeline_commands import Json, Master, MaxBad, SchemaFile, TimeColumn, _print_json, _work

Events = Annotated[Path, typer.Option("--events", metavar="E", help="Events: id and the attributes.")]
Wanted = Annotated[Path, typer.Option("--subscriptions", metavar="F", help="Subscriptions: id, filter.")]


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    data = "--events out/w/events.parquet --subscriptions out/w/subscriptions.parquet"
    app.command(
        epilog=f"Example: flowsieve plan --schema out/w/schema.toml {data} --bits 23 --out out/plan.json"
    )(plan)
    app.command(epilog=f"Example: flowsieve evaluate --plan out/plan.json {data}")(evaluate)


def plan(
    schema: SchemaFile,
    events: Events,
    subscriptions: Wanted,
    out: Annotated[Path, typer.Option("--out", metavar="PLAN.json", help="Where to write the plan.")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="M",
            help="ri, si, asi, lw, kd; one of them behind evs, emcs, cs, gs, brs or random (gs+asi); or auto.",
        ),
    ] = "auto",
    bits: Annotated[
        int, typer.Option("--bits", metavar="N", help="The longest dz: 23 for IPv4, 112 for IPv6.")
    ] = 23,
    max_dz: Annotated[
        int, typer.Option("--max-dz", metavar="N", help="The dz of a filter to plan for; 0: any number.")
    ] = 32,
    dimensions: Annotated[
        int | None,
        typer.Option(
            "--dimensions", metavar="N", help="How many a selection takes; by default as many as are best."
        ),
    ] = None,
    deadline: Annotated[
        float, typer.Option("--deadline", metavar="S", help="Seconds that auto may take.")
    ] = 120.0,
    hold_back: Annotated[
        float,
        typer.Option(
            "--hold-back",
            metavar="SHARE",
            help="The share of events to keep for `evaluate`, the latest ones.",
        ),
    ] = 0.2,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="For a random selection.")] = 0,
    max_bad: MaxBad = 0.01,
    time_column: TimeColumn = None,
    master: Master = None,
    as_json: Json = False,
) -> int:
    """Make an index plan for events and subscriptions.

    The latest events (by time; without times, some by a hash of their ids) are held back: `evaluate` judges on them.
    """
    started = time.monotonic()
    space = read_schema(schema)
    if not 1 <= bits <= MAX_LENGTH:
        raise BadInput(f"--bits is {bits}; right is 1 to {MAX_LENGTH}")
    if max_dz < 0:
        raise BadInput(f"--max-dz is {max_dz}; right is a number of dz, or 0 for any number")
    if deadline <= 0:
        raise BadInput(f"--deadline is {deadline}; right is a number of seconds")
    with _work(master) as (spark, watched):
        from flowsieve.pipeline.ingest import read_events
        from flowsieve.pipeline.plan_file import Planned, write_plan
        from flowsieve.pipeline.planning.making import check_method, make_plan, workshop_on
        from flowsieve.pipeline.planning.sampling import HoldBack, fingerprint
        from flowsieve.pipeline.subscriptions import read_subscriptions

        check_method(method)
        with watched("subscriptions"):
            subscribed = read_subscriptions(spark, subscriptions, space)
            wanted = subscribed.checked(max_bad)
        intake = read_events(spark, events, space, time=time_column)
        with watched("reading"):
            good = intake.checked(max_bad)
            rule = HoldBack.latest(good, hold_back)
            name = fingerprint(good)
        with watched("planning"):
            shop = workshop_on(
                rule.planned_on(good), wanted, bits, max_dz, intake.account.good, dimensions, seed
            )
            made = make_plan(method, shop, deadline, started)
        write_plan(out, made.plan, Planned(space, made.method, name, rule))
        read = {"events": intake.account.to_json(), "subscriptions": subscribed.account.to_json()}
        result: dict[str, Any] = {
            "method": made.method,
            "kind": made.plan.kind,
            "bits": made.plan.bits,
            "dimensions": list(getattr(made.plan, "dimensions", space.names)),
            "max_dz": max_dz,
            "planned_on": {"events": len(shop.events), "of": intake.account.good, "held_back": rule.text},
            "portfolio": made.portfolio,
            "plan": str(out),
            "read": read,
            "seconds": time.monotonic() - started,
        }
    if as_json:
        _print_json(result)
    else:
        plan_show.plan(result)
    return 0


def evaluate(
    plan: Annotated[
        list[Path],
        typer.Option("--plan", metavar="PLAN.json", help="A plan; several are judged in one pass."),
    ],
    events: Events,
    subscriptions: Wanted,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", metavar="S.toml", help="A file with a [schema], for plans that do not say theirs."
        ),
    ] = None,
    max_dz: Annotated[
        int, typer.Option("--max-dz", metavar="N", help="The most dz of a filter; 0: any number.")
    ] = 32,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample", metavar="E2", help="Events that weigh covers, as `sample` in a scenario does."
        ),
    ] = None,
    all_events: Annotated[
        bool, typer.Option("--all", help="Judge on all events, also on those that a plan was made from.")
    ] = False,
    max_bad: MaxBad = 0.01,
    time_column: TimeColumn = None,
    master: Master = None,
    as_json: Json = False,
) -> int:
    """Count what plans deliver, exactly, per subscription and in total.

    A plan that was made from these very events is judged on those that were held back then; from other events, on all.
    """
    started = time.perf_counter()
    if max_dz < 0:
        raise BadInput(f"--max-dz is {max_dz}; right is a number of dz, or 0 for any number")
    declared = None if schema is None else read_schema(schema)
    from flowsieve.pipeline.plan_file import read_plan

    read = [read_plan(path, declared) for path in plan]
    spaces = {made.schema for made, _ in read}
    if len(spaces) > 1:
        raise BadInput("the plans are for different schemas; right is one")
    space = spaces.pop()
    with _work(master) as (spark, watched):
        from flowsieve.pipeline.covers import candidates_on
        from flowsieve.pipeline.evaluation import evaluate as count
        from flowsieve.pipeline.ingest import read_events
        from flowsieve.pipeline.planning.sampling import fingerprint
        from flowsieve.pipeline.planning.sampling import sample as draw
        from flowsieve.pipeline.subscriptions import read_subscriptions

        with watched("subscriptions"):
            subscribed = read_subscriptions(spark, subscriptions, space)
            wanted = subscribed.checked(max_bad)
        intake = read_events(spark, events, space, time=time_column)
        with watched("reading"):
            good = intake.checked(max_bad)
            rules = [
                planned.held_back if planned and planned.held_back.share and not all_events else None
                for _, planned in read
            ]
            if any(rules):
                name = fingerprint(good)
                rules = [
                    rule if planned and planned.events == name else None
                    for rule, (_, planned) in zip(rules, read, strict=True)
                ]
        weights = None
        if sample is not None:
            some = read_events(spark, sample, space, time=time_column)
            weights = draw(some.checked(max_bad), space, some.account.good)
        with watched("covers"):
            candidates = candidates_on(spark, [made for made, _ in read], wanted.filters, max_dz, weights)
        scores: dict[int, Any] = {}
        for rule in dict.fromkeys(rules):
            group = [i for i, other in enumerate(rules) if other == rule]
            with watched("events"):
                judged = good if rule is None else rule.judged_on(good)
                found = count([candidates[i] for i in group], wanted.boxes, judged)
            scores |= dict(zip(group, found, strict=True))
    plans = []
    for i, path in enumerate(plan):
        rule = rules[i]
        judged_on = "all of them" if rule is None else f"held back from planning: {rule.text}"
        about = {"plan": str(path), "events": scores[i].events, "judged_on": judged_on}
        plans.append(about | scores[i].to_json() | {"subscriptions": [*scores[i].rows(wanted.ids)]})
    result = plans[0] | {"max_dz": max_dz, "seconds": time.perf_counter() - started}
    if len(plans) > 1:
        result["plans"] = plans
    if as_json:
        _print_json(result)
    else:
        plan_show.evaluation(result, plans)
    return 1 if any(score.false_negatives for score in scores.values()) else 0
