"""`flowsieve controller` and `flowsieve token`: the commands around `flowsieve.serving`."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve import show
from flowsieve.errors import BadInput
from flowsieve.lab.machine import check_machine
from flowsieve.lab_commands import Name, chosen

if TYPE_CHECKING:
    from flowsieve.serving.daemon import Daemon

FORMATS = ("text", "json")
ConfigFile = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG.toml",
        help="Schema and index, as in a scenario; its network, if it has one; and [controller].",
    ),
]


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, where it comes from, what it says."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        told = {
            "time": at,
            "level": record.levelname.lower(),
            "from": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)


def controller(
    config: ConfigFile,
    lab: Name = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the configuration, and say whether it is right.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be changed in the switches.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell what happens, on standard error.")] = False,
    log_format: Annotated[
        str, typer.Option("--log-format", metavar="F", help="How: text, or json, an object a line.")
    ] = "text",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object once it is ready, and nothing else.")
    ] = False,
) -> int:
    """Control the switches of a lab: take requests of its hosts, keep the tables at what they ask for.

    It runs until it is interrupted; the switches then go on with what they have, and a controller that is started
    again takes them up as they are. SIGHUP has it read its configuration again.
    """
    _log(verbose, log_format)
    from flowsieve.serving.config import read_config

    setting = read_config(config)
    if check:
        show.out.print(f"{config} is right")
        return 0
    check_machine()
    from flowsieve.serving.daemon import serve, would_change  # it takes a while to be imported

    found = chosen(lab)
    if dry_run:
        changes = asyncio.run(would_change(setting, found))
        if as_json:
            print(json.dumps({"changes": changes}), flush=True)
        elif not changes:
            show.out.print("nothing would be changed")
        for switch, kinds in {} if as_json else changes.items():
            show.out.print(f"{switch}: " + ", ".join(f"{count} to {kind}" for kind, count in kinds.items()))
        return 0

    def ready(daemon: Daemon, seconds: float) -> None:
        addresses = [f"unix:{found.requests}", *setting.service.http]
        size, known = len(found.topology.switches), len(daemon.dispatcher.state.subscriptions)
        if as_json:
            told = {"lab": found.name, "control": addresses[0], "http": addresses, "subscriptions": known}
            print(json.dumps(told | {"seconds": round(seconds, 3)}), flush=True)
            return
        host = next(iter(found.topology.hosts), "HOST")
        rows = {
            "controller": f"of lab {found.name}, {size} switches, in {seconds:.2f} s",
            "requests": ", ".join(addresses) + (", in band" if setting.service.inband else ""),
            "try": f"flowsieve lab exec {host} flowsieve sub True",
        }
        show.out.print(show.facts(rows))
        show.out.print("It runs until Ctrl-C.")

    asyncio.run(serve(setting, found, ready))
    return 0


def status(
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="ADDRESS",
            envvar="FLOWSIEVE_CONTROL",
            help="Where it takes requests, http://HOST:PORT or unix:PATH; by default the lab's own.",
        ),
    ] = None,
    lab: Name = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")
    ] = False,
) -> int:
    """Ask a controller how it stands; the exit status is 1 if something is not as it should be."""
    from flowsieve.client.http import HttpTransport

    async def ask() -> dict[str, Any]:
        transport = HttpTransport(control or f"unix:{chosen(lab).requests}")
        try:
            return dict(await transport.get("/v1/status"))
        finally:
            await transport.close()

    found = asyncio.run(ask())
    if as_json:
        print(json.dumps(found), flush=True)
    else:
        show.out.print(show.facts(_status_rows(found)))
    return 0 if found["ready"] else 1


def _status_rows(found: Mapping[str, Any]) -> dict[str, str]:
    troubles = [f"{name}: {why}" for name, why in found["troubles"].items()]
    down = [" - ".join(edge) for edge in found["down"]]
    return {
        "ready": "yes" if found["ready"] else "no; " + "; ".join(troubles or ["trees are being mended"]),
        "switches": f"{found['connected']} of {found['switches']} connected",
        "links": f"{found['links']}" + (f", down: {', '.join(down)}" if down else ", all up"),
        "interests": f"{found['subscriptions']:,} subscriptions, {found['advertisements']:,} advertisements",
        "flows": f"{found['flows']:,}, {found['flows_max']:,} in the fullest table",
        "operations": f"{found['operations']:,} acknowledged since it started",
    }


def token(
    config: ConfigFile,
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that is to show it.")],
    lab: Name = None,
) -> int:
    """Print the token of a host, which its applications show as FLOWSIEVE_TOKEN."""
    from flowsieve.serving.config import read_config
    from flowsieve.serving.daemon import folder_of
    from flowsieve.serving.tokens import Tokens, kept_secret

    setting, found = read_config(config), chosen(lab)
    if host not in found.topology.hosts:
        raise BadInput(f"there is no host {host!r} in lab {found.name}")
    print(Tokens(kept_secret(folder_of(setting, found) / "secret"), found.topology).of(host), flush=True)
    return 0


def _log(verbose: bool, how: str) -> None:
    if how not in FORMATS:
        raise BadInput(f"there is no log format {how!r}; right is {' or '.join(FORMATS)}")
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if how == "json" else text)
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    for other in ("uvicorn", "httpx", "httpcore"):  # they tell of every connection
        logging.getLogger(other).setLevel(logging.WARNING)
