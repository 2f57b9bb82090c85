"""The command that has a network go over to another index: reindex."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import view
from flowsieve.cli.lab import chosen
from flowsieve.cli.options import Control, Json, LabName, Operator, option
from flowsieve.errors import BadInput, Refused

if TYPE_CHECKING:
    from flowsieve.client.operator_link import OperatorLink

PATH = "/v1/index"
LOOK_SECONDS = 0.1
BEGIN_SECONDS = 60.0  # for the tables of a plan to be made
PHASES = {
    "carry": "everything is carried under the old tag, and fine entries go",
    "install": "the tables of the new index, under its own tag",
    "switch": "publishers go over",
    "fence": "what is still sent under the old tag is handed up; the rest arrives",
    "clear": "nothing is carried under the old tag any more",
}


def add_to(app: typer.Typer) -> None:
    """Put the command among those of an app."""
    app.command(epilog="Example: flowsieve reindex plan.json --dry-run")(reindex)


def reindex(
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="PLAN.json", help="The plan to go over to, as `flowsieve plan` writes it."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would take, and whether there is room for it.")
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="Give up what is under way, or go back to the plan before this one."),
    ] = False,
    trees: Annotated[
        bool,
        typer.Option("--trees", help="Choose the trees anew as well, for the network as it is now."),
    ] = False,
    method: Annotated[
        str,
        option("M", "light-weight: carry everything meanwhile; versioning: both tables side by side."),
    ] = "light-weight",
    wait: Annotated[float, option("S", "Wait so many seconds for its end.", min=0)] = 120.0,
    control: Control = None,
    lab: LabName = None,
    operator: Operator = None,
    as_json: Json = False,
) -> int:
    """Have a running network go over to another index, phase by phase, with no event lost or doubled.

    The exit status is 1 if it was given up: then the network is at the index that it was at before.
    """
    if rollback == (plan is not None or trees):
        raise BadInput("there is nothing to go over to; right is PLAN.json, --trees, or --rollback alone")
    asked: dict[str, Any] = {"rollback": True} if rollback else {"method": method}
    if plan is not None:
        from flowsieve.config.files import read_json

        asked["plan"], _ = read_json(plan, "an index plan")
    if trees:
        asked["trees"] = "anew"
    link = _link(control, lab, operator)
    if dry_run:
        told = link.request("POST", PATH, {**asked, "dry_run": True}, BEGIN_SECONDS)
        view.answer(as_json, dict(told), lambda: view.out.print(view.facts(_room(told))))
        return 0
    before = len(link.request("GET", PATH)["transitions"])
    link.request("POST", PATH, asked, BEGIN_SECONDS)
    record = _followed(link, before, time.monotonic() + wait, silent=as_json)
    view.answer(as_json, dict(record), lambda: view.out.print(view.facts(_end(record))))
    return 0 if record["ended"] in ("arrived", None) else 1


def _followed(link: OperatorLink, before: int, end: float, *, silent: bool) -> Mapping[str, Any]:
    """The record of what was begun, each phase told as it comes."""
    shown = 0
    while True:
        told = link.request("GET", PATH)
        record: Mapping[str, Any] = told["transitions"][0] if told["transitions"] else {}
        phases = record.get("phases", [])
        over = record.get("ended") is not None and told["crossing"] is None
        for each in phases[shown : len(phases) if over else max(0, len(phases) - 1)]:
            shown += 1
            if not silent:
                took = (
                    f"{each['seconds']:.2f} s, {each['operations']:,} operations, {each['entries']:,} entries"
                )
                view.out.print(f"{each['phase']:8} {took:48} {PHASES[each['phase']]}")
        if over or time.monotonic() > end:
            return record
        if not record and told["crossing"] is None:
            raise Refused("nothing is under way")
        time.sleep(LOOK_SECONDS)


def _link(control: str | None, lab: str | None, operator: str | None) -> OperatorLink:
    from flowsieve.client.operator_link import OperatorLink  # it takes a while to be imported

    found = chosen(lab) if control is None else None
    if operator is None and found is not None:
        operator = found.operator_token
    return OperatorLink(tuple((control or f"unix:{found.requests if found else ''}").split(",")), operator)


def _room(told: Mapping[str, Any]) -> dict[str, str]:
    entries, most = told["entries"], told["entries_max"]
    return {
        "index": f"from {told['from']} to {told['to']}, under {told['tag']}",
        "method": told["method"],
        "entries": f"{entries['now']:,} now, {entries['most']:,} at most on the way, {entries['after']:,} after",
        "fullest": f"{most['now']:,} now, {most['most']:,} at most on the way, {most['after']:,} after",
        "room": "yes, in every table",
    }


def _end(record: Mapping[str, Any]) -> dict[str, str]:
    how = {"arrived": f"index {record['to']} is in force", None: "it is still under way"}
    return {
        "end": how.get(record["ended"], f"index {record['from']} stays: {record['ended']}"),
        "took": f"{record['seconds']:.2f} s, {record['operations']:,} operations ({record['method']})",
    }
