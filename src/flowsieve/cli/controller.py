"""The commands around a controller: controller, status, token."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import view
from flowsieve.cli.daemon_log import log_to_standard_error
from flowsieve.cli.lab import chosen
from flowsieve.cli.options import Control, Json, LabName, option
from flowsieve.errors import BadInput
from flowsieve.lab.machine import check_machine

if TYPE_CHECKING:
    from flowsieve.lab.lab import Lab
    from flowsieve.serving.config import Config
    from flowsieve.serving.daemon import Daemon

ConfigFile = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG.toml",
        help="Schema and index, as in a scenario; its network and switches, if it has any; and [controller].",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    for command, example in (
        (controller, "controller examples/stock/scenario.toml"),
        (status, "status --json"),
        (token, "token market.toml h1, or for a host that is yet to be found: --at s1:3"),
    ):
        app.command(epilog=f"Example: flowsieve {example}")(command)


def controller(
    config: ConfigFile,
    lab: LabName = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only read the configuration, and say whether it is right.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be changed in the switches.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take the switches even if another controller holds them; that one stands by then.",
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log more than operators would ask about.")
    ] = False,
    log_format: Annotated[
        str, option("F", "How it logs, on standard error: text, or json, an object a line.")
    ] = "text",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object once it is ready, and nothing else.")
    ] = False,
) -> int:
    """Control the switches of a lab, or others: take requests of hosts, keep the tables at what they ask for.

    It runs until it is interrupted; the switches then go on with what they have, and a controller that is started
    again takes them up as they are. SIGHUP has it read its configuration again.
    """
    gc.disable()  # what is imported and remembered is large, and stays; `serve` goes on with collecting
    log_to_standard_error(verbose, log_format)
    from flowsieve.serving.config import read_config

    setting = read_config(config)
    if check:
        from flowsieve.serving.state_folder import check_folder

        if setting.folder is not None:
            check_folder(setting.folder)
        if setting.telemetry.on and setting.telemetry.folder is not None:
            check_folder(setting.telemetry.folder, "telemetry")
        view.out.print(f"{config} is right")
        return 0
    from flowsieve.lab.lab_site import site_of  # it takes a while to be imported

    found = _lab_of(setting, lab)
    site = site_of(setting, found)
    if dry_run:
        from flowsieve.serving.preview import KINDS, is_found, would_change

        changes = asyncio.run(would_change(setting, site))
        lines = [
            f"{switch}: " + ", ".join(f"{count} {KINDS[kind]}" for kind, count in kinds.items())
            for switch, kinds in changes.items()
        ]
        told = "\n".join(lines) or "nothing would be changed"
        if not asyncio.run(is_found(setting, site)):
            view.err.print("the network is yet to be found; what follows from that is not counted")
        view.answer(as_json, {"changes": changes}, lambda: view.out.print(told))
        return 0

    from flowsieve.serving.daemon import serve  # it takes a while to be imported

    def ready(daemon: Daemon, seconds: float) -> None:
        addresses, topology = daemon.site.calls, daemon.dispatcher.state.topology
        waiting = daemon.fabric.standing_by
        if as_json:
            known = len(daemon.dispatcher.state.subscriptions)
            told = {"control": addresses[0], "http": addresses, "subscriptions": known}
            named = {"lab": found.name} if found is not None else {}
            held = {"standing_by": waiting} if waiting is not None else {}
            view.print_json(named | told | held | {"seconds": round(seconds, 3)})
            return
        host, there = next(iter(topology.hosts), "HOST"), len(topology.switches)
        if found is not None:
            hint = f"flowsieve lab exec {host} flowsieve sub True"
        else:
            hint = f"flowsieve token {config} {host}, and on that host: flowsieve sub True"
        rows = {
            "controller": f"of {daemon.site.name}, {there} switches, in {seconds:.2f} s",
            "requests": ", ".join(addresses) + (", in band" if setting.service.inband else ""),
            "stands by" if waiting is not None else "try": waiting or hint,
        }
        view.out.print(view.facts(rows))
        view.out.print("It runs until Ctrl-C.")

    asyncio.run(serve(setting, site, ready, take_over=take_over))
    return 0


def status(control: Control = None, lab: LabName = None, as_json: Json = False) -> int:
    """Ask a controller how it stands; the exit status is 1 if something is not as it should be."""
    found = asyncio.run(asked_of(control, lab, "/v1/status"))
    view.answer(as_json, found, lambda: view.out.print(view.facts(_status_rows(found))))
    return 0 if found["ready"] else 1


async def asked_of(control: str | None, lab: str | None, path: str) -> dict[str, Any]:
    """What a controller answers to a question: the one at an address, or that of a lab."""
    from flowsieve.client.http_transport import HttpTransport

    transport = HttpTransport(control or f"unix:{chosen(lab).requests}")
    try:
        return dict(await transport.get(path))
    finally:
        await transport.close()


def _status_rows(found: Mapping[str, Any]) -> dict[str, str]:
    troubles = [f"{name}: {why}" for name, why in found["troubles"].items()]
    floods = [f"{each['switch']} port {each['port']}: {each['frames']}/s" for each in found.get("floods", ())]
    return {
        "ready": "yes" if found["ready"] else "no; " + "; ".join(troubles or ["trees are being mended"]),
        **({"control": _control_row(found["control"])} if "control" in found else {}),
        "switches": f"{found['connected']} of {found['switches']} connected",
        "links": f"{found['links']}, " + ("; ".join(_links(found)) or "all up"),
        **({"floods": f"LLDP frames from {view.few(floods)}"} if floods else {}),
        "interests": f"{found['subscriptions']:,} subscriptions, {found['advertisements']:,} advertisements",
        "flows": f"{found['flows']:,}, {found['flows_max']:,} in the fullest table",
        "operations": f"{found['operations']:,} acknowledged since it started",
        "guard": _guard_row(found["guard"]),
        **({"failover": _failover_row(found["failover"])} if "failover" in found else {}),
        **({"telemetry": _telemetry_row(found["telemetry"])} if "telemetry" in found else {}),
    }


def _control_row(control: Mapping[str, Any]) -> str:
    others = [each["node"] for each in control["nodes"] if each["node"] != control["node"]]
    leads = "leads" if control["leads"] else f"may not lead: {control['doubt']}"
    if (sharing := control.get("sharing")) is not None:
        leads += f", {len(sharing['configurators'])} configurators decide"
    return f"node {control['node']} {leads}; " + (
        f"{view.few(others)} stand by" if others else "nobody stands by"
    )


def _links(found: Mapping[str, Any]) -> Iterator[str]:
    """The links that are not as they should be, by what is wrong with them; one may be so in several ways."""
    kinds = {"down": "down", "suppressed": "left out since they come and go", "fenced": "fenced"}
    for kind, words in kinds.items():
        if edges := [" - ".join(edge) for edge in found.get(kind, ())]:
            yield f"{words}: {view.few(edges)}"


def _failover_row(failover: Mapping[str, Any]) -> str:
    if not failover["on"]:
        return "off: links that die are mended by the controller alone"
    without = [" - ".join(edge) for edge in failover["unprotected"]]
    around = [" - ".join(path) for path in failover["bridged"]]
    return "; ".join(
        [
            f"links with a detour: {failover['protected']:,}",
            *([f"none for {view.few(without)}"] if without else []),
            *([f"in use: {view.few(around)}"] if around else []),
            f"{failover['groups']:,} groups and {failover['entries']:,} entries",
        ]
    )


def _telemetry_row(telemetry: Mapping[str, Any]) -> str:
    if telemetry["mode"] == "off":
        return "off: clients report no events"
    rows = ", ".join(f"{count:,} {kind}" for kind, count in telemetry["rows"].items()) or "nothing yet"
    bad = sum(telemetry["set_aside"].values())
    dropped = {"set aside": bad, "turned away": telemetry["turned_away"], "lost": telemetry["lost"]}
    return "; ".join(
        [
            f"{telemetry['share']:.3g} of events are reported; landed {rows}, {telemetry['bytes']:,} bytes",
            *(f"{count:,} {what}" for what, count in dropped.items() if count),
            *([telemetry["trouble"]] if telemetry["trouble"] else []),
        ]
    )


def _guard_row(guard: Mapping[str, Any]) -> str:
    if not guard["on"]:
        return "off: hosts may send what they like"
    worst = sorted(guard["hosts"].items(), key=lambda each: -each[1]["outside"] - each[1]["over_rate"])[:3]
    few = [f"{host} {some['outside']:,} and {some['over_rate']:,}" for host, some in worst]
    refused = f"refused {guard['outside']:,} events not advertised, {guard['over_rate']:,} over the rate"
    without = f"; none at {', '.join(guard['unguarded'])}" if guard["unguarded"] else ""
    return f"{guard['entries']:,} entries{without}; {refused}" + (f" ({', '.join(few)})" if few else "")


def token(
    config: ConfigFile,
    host: Annotated[str | None, typer.Argument(metavar="HOST", help="The host that is to show it.")] = None,
    at: Annotated[
        str | None, option("SWITCH:PORT", "Where a host will be that is yet to be found, such as s1:3.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="The token of an operator, for FLOWSIEVE_OPERATOR.")
    ] = False,
    lab: LabName = None,
) -> int:
    """Print the token of a host, which its applications show as FLOWSIEVE_TOKEN, or that of an operator.

    It is bound to the port where the host is. For one that is yet to be found, say at which port it will be.
    """
    from flowsieve.lab.lab_site import site_of
    from flowsieve.serving.calls.host_place import host_place
    from flowsieve.serving.calls.tokens import Tokens
    from flowsieve.serving.config import read_config
    from flowsieve.serving.memory import memory_of
    from flowsieve.serving.preview import known_topology

    if (host is None) != operator:
        raise BadInput("a token is that of a HOST, or that of an --operator; right is one of them")
    setting = read_config(config)
    found = chosen(lab) if setting.access is None else None
    site = site_of(setting, found)

    async def secret() -> bytes:
        memory = memory_of(setting, site)
        try:
            return await memory.secret()
        finally:
            await memory.leave()

    tokens = Tokens(asyncio.run(secret()), site.topology)
    if host is None:
        print(tokens.operator, flush=True)
        return 0
    names = site.names if setting.finds_hosts else None
    place = host_place(host, at, asyncio.run(known_topology(setting, site)), names)
    print(tokens.at(host, *place), flush=True)
    return 0


def _lab_of(setting: Config, lab: str | None) -> Lab | None:
    """The lab that a configuration is for; None if it has switches of its own."""
    if setting.access is None:
        check_machine()
        return chosen(lab)
    if lab is not None:
        raise BadInput(f"{setting.path} has [switches] of its own, so there is no use in --lab {lab}")
    return None
