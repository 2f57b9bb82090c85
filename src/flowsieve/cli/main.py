"""The command line. Output for machines is one JSON object on standard output; errors go to standard error.

Exit status: 0 done and all well, 1 done and something does not hold, 2 bad input. A command imports what it needs when
it is run: nobody waits for what another command needs.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowsieve.cli import client as client_commands
from flowsieve.cli import controller as controller_command
from flowsieve.cli import lab as lab_commands
from flowsieve.cli import pipeline as pipeline_commands
from flowsieve.cli import plan as plan_commands
from flowsieve.cli import replay as replay_commands
from flowsieve.cli import view as show
from flowsieve.cli.options import FlowsFile, Json, ScenarioFile
from flowsieve.errors import BadInput, FlowsieveError, LabError, nearest
from flowsieve.lab.machine import check_machine

if TYPE_CHECKING:
    from flowsieve.scenario.play import PlayedNetwork, Stage
    from flowsieve.scenario.read import Scenario

EXAMPLE = "examples/stock/scenario.toml"
NETWORKS = ("embedded", "ovs")

app = typer.Typer(
    name="flowsieve",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(lab_commands.app)
pipeline_commands.add_to(app)
plan_commands.add_to(app)
replay_commands.add_to(app)
app.command(epilog="Example: flowsieve controller examples/stock/scenario.toml")(
    controller_command.controller
)
app.command(epilog="Example: flowsieve status --json")(controller_command.status)
app.command(epilog="Example: flowsieve token market.toml h1")(controller_command.token)
app.command(epilog="Example: flowsieve lab exec h1 flowsieve pub price=10 side=buy")(client_commands.pub)
app.command(epilog="Example: flowsieve lab exec h2 flowsieve sub 'price < 50'")(client_commands.sub)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"flowsieve {version('flowsieve')}")
        raise typer.Exit


@app.callback()
def flowsieve(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Content-based publish/subscribe whose filtering happens inside the network."""


@app.command(epilog=f"Example: flowsieve run {EXAMPLE} --out out/stock")
def run(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write the results into.")],
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="KIND",
            help="Which network to play on: embedded, or ovs, a lab of real switches; that needs root.",
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
    from flowsieve.scenario.report import make_folder, write_run

    _check_network(network)
    setting = read_scenario(scenario)
    make_folder(out)
    with _network(network, setting) as played_on:
        with show.progress() as progress:
            played = play(setting, progress, played_on)
        report = write_run(played, out)
    if as_json:
        show.print_json(report)
    else:
        show.run(report, scenario, out)
    return 1 if report["refused"] or report["false_negatives"] or report["duplicates"] else 0


@app.command(epilog=f"Example: flowsieve encode {EXAMPLE} --events examples/stock/events.csv --out out/dz")
def encode(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write the dz into.")],
    filters: Annotated[
        Path | None, typer.Option("--filters", metavar="F.csv", help="Filters: columns id, filter.")
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="E.csv", help="Events: id and the attributes; .parquet too."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Write the dz of filters and of events, in the input's order.

    Into DIR go filters.jsonl and events.csv.
    """
    from flowsieve.scenario.event_files import read_events
    from flowsieve.scenario.read import read_scenario
    from flowsieve.scenario.report import make_folder, write_covers, write_encoded
    from flowsieve.scenario.request_files import read_filters

    if filters is None and events is None:
        raise BadInput("nothing to encode: give --filters, --events or both")
    setting = read_scenario(scenario, network=False)
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
        show.note("rejected", screened.reasons, screened.rejected)
    if as_json:
        show.print_json(written | {"bits": setting.plan.bits})
    else:
        show.encoded(written, setting.plan.bits, out)
    return 0


@app.command(epilog=f"Example: flowsieve verify {EXAMPLE} --flows out/stock/flows.json")
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
    stage = _settled(setting)
    tables = dump or stage.tables()
    verdict = stage.controller.verify(tables)
    result = plain_verdict(verdict, false_positive_share(setting, stage.state, tables))
    if as_json:
        show.print_json(result)
    else:
        show.verdict(result, sum(map(len, tables.values())), len(tables))
    return 0 if verdict.holds else 1


@app.command(
    epilog=f"Example: flowsieve explain {EXAMPLE} --host paris symbol=OATS side=sell price=240 lots=9"
)
def explain(
    scenario: ScenarioFile,
    host: Annotated[str, typer.Option("--host", metavar="H", help="The host that publishes the event.")],
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
    stage = _settled(setting)
    explanation = stage.controller.explain(host, values)
    found = plain_explanation(setting.topology, explanation)
    if as_json:
        show.print_json(found)
    else:
        show.explanation(found, host, values)
    return 0


@app.command(epilog=f"Example: flowsieve quote {EXAMPLE} --host rome 'price < 100'")
def quote(
    scenario: ScenarioFile,
    host: Annotated[str, typer.Option("--host", metavar="H", help="The host that would subscribe.")],
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="The filter of the subscription to price.")],
    as_json: Json = False,
) -> int:
    """Say what a subscription would cost, before it is made."""
    from flowsieve.content.filter import Filter
    from flowsieve.scenario.plain import plain_quote
    from flowsieve.scenario.price import quote as quote_subscription
    from flowsieve.scenario.read import read_scenario

    setting = read_scenario(scenario)
    _check_host(setting, host)
    wanted = Filter.parse(filter, setting.schema)
    result = plain_quote(quote_subscription(setting, _settled(setting).state, host, wanted))
    if as_json:
        show.print_json(result)
    else:
        show.quote(result, host, filter)
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


def _settled(scenario: Scenario) -> Stage:
    """The network that a scenario ends with; on standard error, what it could not serve."""
    from flowsieve.client.batch_packets import SHOWN
    from flowsieve.scenario.play import settled

    with show.progress() as progress:
        stage = settled(scenario, progress)
    show.note("refused", stage.refused[:SHOWN], len(stage.refused))
    return stage


def _check_host(scenario: Scenario, host: str) -> None:
    if host not in scenario.topology.hosts:
        raise BadInput(f"there is no host {host!r} in the scenario{nearest(host, scenario.topology.hosts)}")
    if not scenario.topology.reachable(host):
        raise BadInput(f"host {host!r} is in a part of the network that is cut off")


def main() -> None:
    """Run the command line; errors that we raise on purpose become a message and a status."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show stops nothing
    try:
        status = app(standalone_mode=False)
    except BadInput as error:
        show.error(error)
        status = 2
    except FlowsieveError as error:
        show.error(error)
        status = 1
    except typer.Exit as leaving:
        status = leaving.exit_code
    except typer.Abort:
        status = 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except Exception as error:
        # What click makes of a wrong option; anything else is our own fault and shows as such.
        report, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if report is None or code is None:
            raise
        report()
        status = code
    sys.exit(status or 0)
