"""What the commands of the pipeline show to people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flowsieve.cli import view
from flowsieve.content.schema import Schema


def intake(
    result: Mapping[str, Any], schema: Schema, written: Path | None, out: Path | None, seconds: float
) -> None:
    rows = {what: _account(result[what]) for what in ("events", "subscriptions") if what in result}
    rows["schema"] = ", ".join(f"{attribute.name} ({attribute.kind})" for attribute in schema)
    if result.get("passed_over"):
        rows["not in it"] = "; ".join(f"{column}: {why}" for column, why in result["passed_over"].items())
    places = [str(place) for place in (written, out) if place is not None]
    if places:
        rows["written"] = ", ".join(places)
    rows["seconds"] = f"{seconds:.1f}"
    view.out.print(view.facts(rows))
    _reasons(result)


def statistics(result: Mapping[str, Any]) -> None:
    traffic, events = result["traffic"], result["events"]
    share = result["unwanted"] / events if events else 0.0
    about: view.Facts = {
        "events": f"{_account(result['read']['events'])}; "
        f"{result['unwanted']:,} wanted by nobody ({share:.1%})",
        "subscriptions": f"{_account(result['read']['subscriptions'])}; {result['boxes']:,} boxes",
        "matches": f"{result['matches']:,}, {result['matches'] / max(1, events):.2f} per event; "
        f"{result['overlap']:.1%} of the pairs of boxes overlap",
        "traffic": f"a subscription gets {traffic['mean']:,.1f} events on average, {traffic['median']:,.0f} "
        f"in the middle, {traffic['most']:,} at most; {traffic['none']:,} get none",
        "seconds": f"{result['seconds']:.1f}; executors: {result['executors']}",
    }
    view.out.print(view.facts(about))
    head = ("dimension", "variance", "matched per event", "selectivity", "overlap", "principal")
    rows = [
        (
            name,
            f"{row['variance']:.4g}",
            f"{row['matched_per_event']:,.1f}",
            f"{row['selectivity']:.1%}",
            f"{row['overlap']:.1%}",
            f"{row['principal']:.3f}",
        )
        for name, row in result["dimensions"].items()
    ]
    view.table(head, rows, most=len(rows))
    _reasons(result["read"])


def _account(account: Mapping[str, Any]) -> str:
    aside = [f"{account[kind]:,} {kind}" for kind in ("broken", "missing", "outside") if account[kind]]
    names = {"missing": "without some value", "outside": "outside the schema"}
    said = ", ".join(aside)
    for kind, name in names.items():
        said = said.replace(kind, name)
    return f"{account['good']:,} of {account['rows']:,}" + (f"; set aside: {said}" if said else "")


def _reasons(accounts: Mapping[str, Any]) -> None:
    for what in ("events", "subscriptions"):
        account = accounts.get(what)
        if account is not None:
            view.note("set aside", account["first_reasons"], account["rows"] - account["good"])
