"""The commands about a scenario: run, encode, verify, explain, quote."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowsieve.cli import scenario_view, view
from flowsieve.cli.options import FlowsFile, Json, ScenarioFile, option
from flowsieve.config.files import make_folder
from flowsieve.errors import BadInput, LabError, nearest
from flowsieve.lab.machine import check_machine

if TYPE_CHECKING:
    from flowsieve.scenario.play import PlayedNetwork, Stage
    from flowsieve.scenario.read import Scenario

EXAMPLE = "examples/stock/scenario.toml"
NETWORKS = ("embedded", "ovs")


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    for command, example in (
        (run, f"{EXAMPLE} --out out/stock"),
        (encode, f"{EXAMPLE} --events examples/stock/events.csv --out out/dz"),
        (verify, f"{EXAMPLE} --flows out/stock/flows.json"),
        (explain, f"{EXAMPLE} --host paris symbol=OATS side=sell price=240 lots=9"),
        (quote, f"{EXAMPLE} --host rome 'price < 100'"),
    ):
        app.command(epilog=f"Example: flowsieve {command.__name__} {example}")(command)


def run(
    scenario: ScenarioFile,
    out: Annotated[Path, option("DIR", "The folder to write the results into.")],
    network: Annotated[
        str,
        option(
            "KIND", "Which network to play on: embedded, or ovs, a lab of real switches; that needs root."
        ),
    ] = "embedded",
    as_json: Json = False,
) -> int:
    """Play a scenario and report what arrived.

    Its requests are served and its events sent, step by step. Into DIR go report.json, deliveries.csv,
    matches.csv, packets.csv and flows.json.
    """
    from flowsieve.scenario.play import play
    from flowsieve.scenario.read import read_scenario
    from flowsieve.scenario.report import write_run

    _check_network(network)
    setting = read_scenario(scenario)
    make_folder(out)
    with _network(network, setting) as played_on:
        with view.progress() as progress:
            played = play(setting, progress, played_on)
        report = write_run(played, out)
    view.answer(as_json, report, lambda: scenario_view.run(report, scenario, out))
    return 1 if report["refused"] or report["false_negatives"] or report["duplicates"] else 0


def encode(
    scenario: ScenarioFile,
    out: Annotated[Path, option("DIR", "The folder to write the dz into.")],
    filters: Annotated[Path | None, option("F.csv", "Filters: columns id, filter.")] = None,
    events: Annotated[Path | None, option("E.csv", "Events: id and the attributes; .parquet too.")] = None,
    as_json: Json = False,
) -> int:
    """Write the dz of filters and of events, in the input's order.

    Into DIR go filters.jsonl and events.csv.
    """
    from flowsieve.scenario.event_files import read_events
    from flowsieve.scenario.index_section import IndexSection
    from flowsieve.scenario.read import read_scenario
    from flowsieve.scenario.report import write_covers, write_encoded
    from flowsieve.scenario.request_files import read_filters

    if filters is None and events is None:
        raise BadInput("nothing to encode: give --filters, --events or both")
    setting = read_scenario(scenario, network=False)
    if not isinstance(setting, IndexSection):
        raise BadInput(
            f"a scenario with header {setting.header!r} has no dz but {setting.meaning}; "
            "right is header 'ipv6' or 'ipv4'"
        )
    listed = read_filters(filters, setting.schema, setting.check_cover) if filters else []
    covers = [(name, setting.cover(wanted)) for name, wanted in listed]
    batch = read_events(events, setting.schema) if events else None
    make_folder(out)
    written: dict[str, int] = {}
    if filters:
        write_covers(out / "filters.jsonl", covers)
        written["filters"] = len(covers)
    if batch is not None:
        screened = write_encoded(out / "events.csv", batch, setting.plan)
        written |= {"events": len(batch), "rejected": screened.rejected}
        view.note("rejected", screened.reasons, screened.rejected)
    bits = setting.plan.bits
    view.answer(as_json, written | {"bits": bits}, lambda: scenario_view.encoded(written, bits, out))
    return 0


def verify(
    scenario: ScenarioFile,
    flows: FlowsFile = None,
    as_json: Json = False,
) -> int:
    """Prove that tables deliver all that is wanted, once.

    The proof is over all events that may be published, not over a sample; and no packet from any port loops.
    """
    from flowsieve.scenario.flow_files import read_flows
    from flowsieve.scenario.plain import plain_verdict
    from flowsieve.scenario.price import false_positive_share
    from flowsieve.scenario.read import read_scenario

    setting = read_scenario(scenario)
    dump = read_flows(flows, setting) if flows else None
    stage = settled(setting)
    tables = dump or stage.tables()
    verdict = stage.plane.verify(tables)
    result = plain_verdict(verdict, false_positive_share(setting, stage.plane, tables))
    view.answer(as_json, result, lambda: scenario_view.verdict(result, tables))
    return 0 if verdict.holds else 1


def explain(
    scenario: ScenarioFile,
    host: Annotated[str, option("H", "The host that publishes the event.")],
    event: Annotated[list[str], typer.Argument(metavar="ATTR=VALUE...", help="The event's attributes.")],
    as_json: Json = False,
) -> int:
    """Show the way of an event, hop by hop, and why.

    It says which flow forwards or drops it, and which subscriptions put that flow there.
    """
    from flowsieve.scenario.event_files import parse_assignments
    from flowsieve.scenario.plain import plain_explanation
    from flowsieve.scenario.read import read_scenario

    setting = read_scenario(scenario)
    _check_host(setting, host)
    values = parse_assignments(event, setting.schema)
    found = plain_explanation(setting.topology, settled(setting).plane.explain(host, values))
    view.answer(as_json, found, lambda: scenario_view.explanation(found, host, values))
    return 0


def quote(
    scenario: ScenarioFile,
    host: Annotated[str, option("H", "The host that would subscribe.")],
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="The filter of the subscription to price.")],
    as_json: Json = False,
) -> int:
    """Say what a subscription would cost, before it is made."""
    from flowsieve.content.filter import Filter
    from flowsieve.scenario.plain import plain_quote
    from flowsieve.scenario.read import read_scenario

    setting = read_scenario(scenario)
    _check_host(setting, host)
    wanted = Filter.parse(filter, setting.schema)
    result = plain_quote(settled(setting).plane.quote(host, wanted))
    view.answer(as_json, result, lambda: scenario_view.quote(result, host, filter))
    return 0 if result["fits"] else 1


def _check_network(kind: str) -> None:
    if kind not in NETWORKS:
        raise BadInput(f"there is no network {kind!r} here; right is {' or '.join(map(repr, NETWORKS))}")
    if kind == "ovs":
        try:
            check_machine()
        except LabError as error:
            raise BadInput(f"there is no network 'ovs' here: {error}") from None


def _network(kind: str, scenario: Scenario) -> AbstractContextManager[PlayedNetwork]:
    """The network to play a scenario on, for the time of a `with` block."""
    if kind == "ovs":
        from flowsieve.lab.real_network import real_network

        return real_network(scenario.topology, scenario.capacity)
    from flowsieve.southbound.embedded.network import EmbeddedNetwork

    return nullcontext(EmbeddedNetwork(scenario.topology, scenario.capacity))


def settled(scenario: Scenario) -> Stage:
    """The network that a scenario ends with; on standard error, what it could not serve."""
    from flowsieve.client.batch_packets import SHOWN
    from flowsieve.scenario import play

    with view.progress() as progress:
        stage = play.settled(scenario, progress)
    view.note("refused", stage.refused[:SHOWN], len(stage.refused))
    return stage


def _check_host(scenario: Scenario, host: str) -> None:
    if host not in scenario.topology.hosts:
        raise BadInput(f"there is no host {host!r} in the scenario{nearest(host, scenario.topology.hosts)}")
    if not scenario.topology.reachable(host):
        raise BadInput(f"host {host!r} is in a part of the network that is cut off")
