"""The commands around control that is shared: configurator, control status."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flowsieve.cli import view
from flowsieve.cli.controller import asked_of
from flowsieve.cli.daemon_log import log_to_standard_error
from flowsieve.cli.options import Control, Json, LabName, option
from flowsieve.errors import BadInput

control = typer.Typer(no_args_is_help=True, help="How the work of control is shared.")


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.add_typer(control, name="control")
    app.command(epilog="Example: flowsieve configurator market.toml --name rack2")(configurator)


def configurator(
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG.toml", help="The controllers' configuration, with its [control]."),
    ],
    name: Annotated[str | None, option("NAME", "What tells it from others; the machine's name.")] = None,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more.")] = False,
) -> int:
    """Decide on tables for the controller that leads, beside the configurators that it has.

    Controllers start their own; more may run on other machines, as long as they reach etcd and the controllers. It
    runs until it is interrupted, and others take over what it was at.
    """
    log_to_standard_error(verbose, "text")
    from flowsieve.serving.config import read_config
    from flowsieve.serving.configuring import decide

    setting = read_config(config)
    if not setting.control.shared_out:
        raise BadInput(f"{config} has no use for a configurator; right is [control] with configurators = 2")
    decide(setting.control, name or socket.gethostname(), with_parent)
    return 0


@control.command(epilog="Example: flowsieve control status --json")
def status(at: Control = None, lab: LabName = None, as_json: Json = False) -> int:
    """Show who leads, which configurator owns which partition, and what waits for whom.

    The exit status is 1 if nobody decides at the moment.
    """
    found = asyncio.run(asked_of(at, lab, "/v1/status")).get("control")
    if found is None:
        raise BadInput("this controller shares its work with nobody; right is [control] in its configuration")
    view.answer(as_json, found, lambda: _show(found))
    return 1 if found.get("sharing", {}).get("trouble") else 0


def _show(found: Mapping[str, Any]) -> None:
    view.out.print(view.facts(dict(_rows(found))))
    sharing = found.get("sharing")
    if sharing is None:
        return
    owners = Table("configurator", "partitions", "waiting", "decided", "visits", box=None)
    for name, each in sharing["configurators"].items():
        owners.add_row(name, *(f"{each[key]:,}" for key in ("partitions", "waiting", "decided", "visits")))
    partitions = Table("partition", "owner", "number", "interests", "waiting", "of late", box=None)
    for each in sharing["partitions"]:
        state = each["owner"] or "nobody"
        partitions.add_row(
            each["dz"] or "all",
            state if each["ready"] else f"{state} (taking it up)",
            str(each["number"]),
            f"{each['interests']:,}",
            f"{each['waiting']:,}",
            f"{each['recently']:g}",
        )
    view.out.print(owners)
    view.out.print(partitions)


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "node" in found:
        leads = "leads" if found["leads"] else f"may not lead: {found['doubt']}"
        yield "node", f"{found['node']} {leads}"
        others = [each["node"] for each in found["nodes"] if each["node"] != found["node"]]
        yield "others", view.few(others) if others else "nobody stands by"
    sharing = found.get("sharing")
    if sharing is None:
        yield "configurators", "none: the controller decides on all tables itself"
        return
    yield "deciding", sharing["trouble"] or "yes"
    yield "migrations", f"{sharing['migrations']:,}; takeovers {sharing['takeovers']:,}"
