"""What the commands show to people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from flowsieve.scenario.play import Progress as Watcher

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def error(problem: Exception) -> None:
    err.print(Text.assemble(("error: ", "bold red"), str(problem)), soft_wrap=True)


@contextmanager
def progress() -> Iterator[Watcher]:
    """A bar per kind of work, on standard error, where somebody is watching."""
    columns = (TextColumn("{task.description:10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield watch


def facts(rows: Mapping[str, object]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, value if isinstance(value, Text) else str(value))
    return table


def good(holds: bool, yes: str, no: str) -> Text:
    return Text(yes, style="green") if holds else Text(no, style="bold red")


def run(report: Mapping[str, Any], scenario: Path, folder: Path) -> None:
    wrong = {key: report[key] for key in ("false_negatives", "duplicates", "refused") if report[key]}
    verdict = good(not wrong, "all that was wanted arrived, once", ", ".join(f"{n} {key.replace('_', ' ')}" for key, n in wrong.items()))
    out.print(f"[bold]{scenario}[/bold]")
    rows: dict[str, object] = {
        "requests": f"{report['requests']:,}, {report['refused']} refused; {report['flow_ops']:,} flow operations",
        "tables": f"{report['flows']:,} flows, {report['flows_max']:,} in the fullest switch, {report['bits']} bits of dz",
        "events": f"{report['events']:,}, {report['rejected']:,} rejected",
        "deliveries": f"{report['deliveries']:,} copies, {report['wanted']:,} wanted; {report['false_positives']:,} false positives ({report['fpr']:.1%})",
        "on the links": f"{report['link_packets']:,} packets between switches",
        "seconds": ", ".join(f"{phase} {spent:.2f}" for phase, spent in report["seconds"].items()),
        "verdict": verdict,
        "written": f"{folder}/report.json, deliveries.csv, matches.csv, packets.csv, flows.json",
    }
    out.print(facts(rows))
    for what in ("refused", "rejected"):
        for reason in report[f"first_{what}"]:
            out.print(Text(f"  {what}: {reason}", style="yellow"))
    if report["coarsened"]:
        worst = max(report["coarsened"], key=report["coarsened"].get)
        out.print(
            f"  {len(report['coarsened'])} tables were coarsened to fit; {worst} pays most: "
            f"{report['coarsened'][worst]:.3f} unwanted copies per event expected"
        )


def rejected(reasons: Sequence[str]) -> None:
    """The first few events that were not taken, on standard error: they are no reason to fail."""
    for reason in reasons:
        err.print(Text(f"rejected: {reason}", style="yellow"))


def encoded(written: Mapping[str, int], bits: int, folder: Path) -> None:
    what = " and ".join(f"{n:,} {kind}" for kind, n in written.items())
    out.print(f"{what} encoded in up to {bits} bits, into {folder}")


def verdict(result: Mapping[str, Any], flows: int, switches: int) -> None:
    holds = bool(result["holds"])
    out.print(good(holds, f"proved: {flows:,} flows in {switches} switches deliver all that is wanted, once, and nothing loops", "does not hold"))
    out.print(
        facts(
            {
                "false negatives": f"{result['false_negatives']} pairs of publisher and subscriber",
                "duplicates": f"{result['duplicates']} pairs",
                "loops": f"{result['loops']} switches",
                "unwanted": f"{result['false_positive_share']:.2%} of the copies delivered",
            }
        )
    )
    if result["witness"]:
        out.print(Text(f"witness: {result['witness']}", style="yellow"))


def explanation(found: Mapping[str, Any], host: str, values: Mapping[str, object]) -> None:
    event = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    out.print(f"[bold]{host}[/bold] publishes {event}")
    for hop in found["hops"]:
        flow, where = hop["flow"], f"  [bold]{hop['switch']}[/bold], from {hop['came_from']}"
        if flow is None:
            out.print(f"{where}: no flow matches {hop['dst']}, dropped")
            continue
        out.print(f"{where}: {flow['dst']} (priority {flow['priority']}) -> {', '.join(hop['out']) or 'nowhere else'}")
        if hop["subscriptions"]:
            out.print(f"      for {', '.join(hop['subscriptions'])}", style="dim")
    delivered, matches = ", ".join(found["delivered"]), ", ".join(found["matches"])
    out.print(f"delivered to {delivered or 'nobody'}; matches {matches or 'no subscription'}")
    for miss in found["missed"]:
        out.print(Text(f"  {miss['host']} misses it for {miss['subscription']}: {miss['why']}", style="yellow"))


def quote(result: Mapping[str, Any], host: str, filter: str) -> None:
    out.print(f"[bold]{host}[/bold] would subscribe to {filter}")
    entries = result["entries"]
    rows: dict[str, object] = {
        "fits": good(bool(result["fits"]), "yes", f"no: {result['reason']}"),
        "dz": result["dz"],
        "entries": ", ".join(f"{switch} {n:+d}" for switch, n in entries.items()) or "no table changes",
        "in all": f"{sum(entries.values()):+d} entries, {sum(result['operations'].values())} flow operations",
        "unwanted": f"{result['false_positive_share']:.1%} of what it would bring",
    }
    out.print(facts(rows))
