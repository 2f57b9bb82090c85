"""The command line. Output for machines goes to standard output as one JSON object, errors and progress to standard error.

Exit status: 0 done and all well, 1 done and something does not hold, 2 bad input.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from flowsieve import show
from flowsieve.client.publisher import SHOWN
from flowsieve.control.request import Op, Request
from flowsieve.content.filter import Filter
from flowsieve.errors import BadInput, FlowsieveError, nearest
from flowsieve.flow.explain import explain as explain_event
from flowsieve.flow.verify import verify as verify_tables
from flowsieve.index.dz import Dz
from flowsieve.scenario.files import parse_assignments, read_events, read_filters, read_flows
from flowsieve.scenario.plain import plain_explanation, plain_verdict
from flowsieve.scenario.play import play, settled
from flowsieve.scenario.price import false_positive_share, unwanted_share
from flowsieve.scenario.read import Scenario, read_scenario
from flowsieve.scenario.report import make_folder, write_run

app = typer.Typer(
    name="flowsieve",
    help="Content-based publish/subscribe whose filtering happens inside the network.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario: schema, index, network, steps.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")]
Host = Annotated[str, typer.Option("--host", help="The host.")]


@app.command(epilog="Example: flowsieve run examples/stock.toml --out out/stock")
def run(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option("--out", help="Where to write report.json, deliveries.csv, matches.csv, packets.csv, flows.json.")],
    network: Annotated[str, typer.Option("--network", help="Which network to play on: embedded.")] = "embedded",
    as_json: Json = False,
) -> int:
    """Play a scenario: serve its requests, send its events, and report what arrived."""
    if network != "embedded":
        raise BadInput(f"there is no network {network!r} here; it is 'embedded'")
    with show.progress() as progress:
        played = play(read_scenario(scenario), progress)
    report = write_run(played, out)
    if as_json:
        print_json(report)
    else:
        show.run(report, scenario, out)
    held = not (report["refused"] or report["false_negatives"] or report["duplicates"])
    return 0 if held else 1


@app.command(epilog="Example: flowsieve encode examples/stock.toml --filters filters.csv --out out/dz")
def encode(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option("--out", help="Where to write filters.jsonl and events.csv.")],
    filters: Annotated[Path | None, typer.Option("--filters", help="A CSV file with columns id, filter.")] = None,
    events: Annotated[Path | None, typer.Option("--events", help="A CSV or Parquet file with id and the attributes.")] = None,
    as_json: Json = False,
) -> int:
    """Write the dz of filters and of events, in the input's order."""
    if filters is None and events is None:
        raise BadInput("nothing to encode: give --filters, --events or both")
    setting = read_scenario(scenario, network=False)
    listed = read_filters(filters, setting.schema, setting.check_cover) if filters else None
    covers = [(name, setting.cover(filter)) for name, filter in listed] if listed is not None else None
    batch = read_events(events, setting.schema) if events else None
    make_folder(out)
    written: dict[str, int] = {}
    if covers is not None:
        with (out / "filters.jsonl").open("w") as file:
            for name, dz in covers:
                file.write(json.dumps({"id": name, "dz": sorted(map(str, dz))}) + "\n")
        written["filters"] = len(covers)
    if batch is not None:
        faulty, reason = batch.faults()
        good = (~faulty).nonzero()[0]
        encoded = setting.plan.encode_batch(batch.take(good))
        texts: list[list[str]] = [[] for _ in range(len(batch))]
        for row, hi, lo in zip(good[encoded.rows].tolist(), encoded.hi.tolist(), encoded.lo.tolist(), strict=True):
            texts[row].append(str(Dz((hi << 64 | lo) >> (128 - encoded.length), encoded.length)))
        with (out / "events.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("id", "dz"))
            writer.writerows(zip(batch.ids, map(" ".join, texts), strict=True))
        written |= {"events": len(batch), "rejected": int(faulty.sum())}
        show.rejected([f"{batch.ids[row]}: {reason(row)}" for row in faulty.nonzero()[0][:SHOWN].tolist()])
    if as_json:
        print_json(written | {"bits": setting.plan.bits})
    else:
        show.encoded(written, setting.plan.bits, out)
    return 0


@app.command(epilog="Example: flowsieve verify examples/stock.toml --flows out/stock/flows.json")
def verify(
    scenario: ScenarioFile,
    flows: Annotated[Path | None, typer.Option("--flows", help="A dump of tables to judge instead of those the scenario ends with.")] = None,
    as_json: Json = False,
) -> int:
    """Prove that tables deliver every event to every host that wants it, once, and that nothing loops."""
    setting = read_scenario(scenario)
    with show.progress() as progress:
        controller, network = settled(setting, progress)
    switches = setting.topology.switches
    tables = read_flows(flows, setting) if flows else {switch: list(network.read(switch)) for switch in switches}
    state = controller.state
    verdict = verify_tables(
        setting.topology,
        setting.plan,
        setting.tag,
        tables,
        list(state.advertisements.values()),
        list(state.subscriptions.values()),
    )
    result = plain_verdict(verdict, false_positive_share(setting, state, tables))
    if as_json:
        print_json(result)
    else:
        show.verdict(result, sum(map(len, tables.values())), len(switches))
    return 0 if verdict.holds else 1


@app.command(epilog="Example: flowsieve explain examples/stock.toml --host h1 price=60 side=buy")
def explain(
    scenario: ScenarioFile,
    host: Host,
    event: Annotated[list[str], typer.Argument(metavar="ATTR=VALUE...", help="The event's attributes.")],
    as_json: Json = False,
) -> int:
    """Show, hop by hop, which flow forwards or drops an event and which subscriptions put it there."""
    setting = read_scenario(scenario)
    check_host(setting, host)
    values = parse_assignments(event, setting.schema)
    controller, network = settled(setting)
    state = controller.state
    explanation = explain_event(
        setting.topology,
        setting.plan,
        setting.tag,
        {switch: network.read(switch) for switch in setting.topology.switches},
        list(state.advertisements.values()),
        list(state.subscriptions.values()),
        host,
        values,
        state.behind,
    )
    found = plain_explanation(setting.topology, explanation)
    if as_json:
        print_json(found)
    else:
        show.explanation(found, host, values)
    return 0


@app.command(epilog="Example: flowsieve quote examples/stock.toml --host h3 '50 <= price < 100'")
def quote(
    scenario: ScenarioFile,
    host: Host,
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="The filter of the subscription to price.")],
    as_json: Json = False,
) -> int:
    """Say what a subscription would cost, before it is made."""
    setting = read_scenario(scenario)
    check_host(setting, host)
    parsed = Filter.parse(filter, setting.schema)
    controller, _ = settled(setting)
    state = controller.state
    before = {switch: len(state.table(switch)) for switch in setting.topology.switches}
    name = next(f"quote-{i}" for i in range(len(state.subscriptions) + 1) if f"quote-{i}" not in state.subscriptions)
    outcome = state.step([Request(Op.SUBSCRIBE, name, host, parsed)])
    fits = not outcome.refused
    dz = state.subscriptions[name].dz if fits else setting.cover(parsed)
    result = {
        "entries": {switch: len(state.table(switch)) - before[switch] for switch in outcome.changes},
        "operations": {switch: len(changes) for switch, changes in outcome.changes.items()},
        "dz": len(dz),
        "false_positive_share": unwanted_share(setting, state, host, parsed, dz),
        "fits": fits,
        "reason": str(outcome.refused[0][1]) if outcome.refused else None,
    }
    if as_json:
        print_json(result)
    else:
        show.quote(result, host, filter)
    return 0 if fits else 1


def check_host(scenario: Scenario, host: str) -> None:
    if host not in scenario.topology.hosts:
        raise BadInput(f"there is no host {host!r} in the scenario{nearest(host, scenario.topology.hosts)}")
    if not scenario.topology.reachable(host):
        raise BadInput(f"host {host!r} is in a part of the network that is cut off")


def print_json(result: object) -> None:
    print(json.dumps(result))


def main() -> None:
    """Run the command line; errors that we raise on purpose become a message and a status."""
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
    except Exception as error:
        # What click makes of a wrong option; anything else is our own fault and shows as such.
        report, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if report is None or code is None:
            raise
        report()
        status = code
    sys.exit(status or 0)


if __name__ == "__main__":
    main()
