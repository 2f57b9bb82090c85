"""What the commands show to people and print for machines; it is printed as it is, nothing in it is markup."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from flowsieve.scenario.play import Progress as Watcher

MOST = 8  # names of a list that are shown
WRONG = {
    "false_negatives": "wanted and not arrived",
    "duplicates": "arrived twice",
    "refused": "requests refused",
}
REMEDY = "To have this served, raise table_capacity in [network] or take fewer trees."

out = Console(highlight=False, markup=False, emoji=False)
err = Console(highlight=False, markup=False, emoji=False, stderr=True)


def print_json(result: object) -> None:
    """The one object on standard output that machines read."""
    print(json.dumps(result), flush=True)


def error(problem: Exception) -> None:
    err.print(Text.assemble(("error: ", "bold red"), str(problem)), soft_wrap=True)


@contextmanager
def progress() -> Iterator[Watcher]:
    """A bar per kind of work, on standard error, where somebody is watching."""
    columns = (TextColumn("{task.description:13}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.file.isatty()) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield watch


def note(what: str, reasons: Sequence[str], of: int) -> None:
    """Requests or events that were not taken, on standard error: the first of so many, with the reason."""
    _list_reasons(err, f"{what}:", reasons, of)


def run(report: Mapping[str, Any], scenario: Path, folder: Path) -> None:
    wrong = [f"{name}: {report[key]:,}" for key, name in WRONG.items() if report[key]]
    verdict = good(not wrong, "all that was wanted arrived, once", ", ".join(wrong))
    out.print(Text(str(scenario), "bold"))
    out.print(
        facts(
            {
                "requests": f"{report['requests']:,}, {report['refused']:,} refused; "
                f"{report['flow_ops']:,} flow operations",
                "tables": f"{report['flows']:,} flows, {report['flows_max']:,} in the fullest switch; "
                f"dz of up to {report['bits']} bits",
                "events": f"{report['events']:,}, {report['rejected']:,} rejected",
                "deliveries": f"{report['deliveries']:,} copies, {report['wanted']:,} wanted; "
                f"{report['false_positives']:,} false positives ({report['fpr']:.1%})",
                "on the links": f"{report['link_packets']:,} packets between switches",
                "seconds": ", ".join(f"{phase} {spent:.2f}" for phase, spent in report["seconds"].items()),
                "verdict": verdict,
                "written": f"{folder}/report.json, deliveries.csv, matches.csv, packets.csv, flows.json",
            }
        )
    )
    _list_reasons(out, "refused:", report["first_refused"], report["refused"])
    if report["refused"]:
        _indent(out, REMEDY)
    _list_reasons(out, "rejected:", report["first_rejected"], report["rejected"])
    if report["coarsened"]:
        worst = max(report["coarsened"], key=report["coarsened"].get)
        _indent(
            out,
            f"{len(report['coarsened']):,} tables were coarsened to fit; that costs most at {worst}: "
            f"about {report['coarsened'][worst]:.2g} unwanted copies per event",
        )


def encoded(written: Mapping[str, int], bits: int, folder: Path) -> None:
    what = " and ".join(f"{written[kind]:,} {kind}" for kind in ("filters", "events") if kind in written)
    rejected = f", {written['rejected']:,} rejected" if written.get("rejected") else ""
    out.print(f"{what} encoded in up to {bits} bits{rejected}; into {folder}")


def verdict(result: Mapping[str, Any], flows: int, switches: int) -> None:
    where = f"{flows:,} flows in {switches:,} switches"
    proved = f"proved: {where} deliver all that is wanted, once, and nothing loops"
    out.print(good(result["holds"], proved, f"does not hold: {where}"))
    share = result["false_positive_share"]
    out.print(
        facts(
            {
                "false negatives": f"{result['false_negatives']:,} pairs of publisher and subscriber",
                "duplicates": f"{result['duplicates']:,} pairs",
                "loops": f"{result['loops']:,} switches",
                "strays": f"{result['strays']:,} entries with a port that is not there, or twice",
                "unwanted": "cannot be told: packets multiply on a loop"
                if share is None
                else f"{share:.2%} of the copies delivered",
            }
        )
    )
    witness = result["witness"]
    if witness is not None:
        event = "an address that no event has" if witness["event"] is None else _event(witness["event"])
        sender = f"{witness['publisher']} publishes " if witness["publisher"] else ""
        out.print(Text(f"{witness['kind']}: {sender}{event}", "yellow"))
        _indent(out, witness["where"], "yellow")


def explanation(found: Mapping[str, Any], host: str, values: Mapping[str, object]) -> None:
    out.print(Text.assemble((host, "bold"), f" publishes {_event(values)}"))
    for hop in found["hops"]:
        _indent(out, Text.assemble((hop["switch"], "bold"), f", from {hop['came_from']}: {_fate(hop)}"))
        if hop["subscriptions"]:
            _indent(out, f"for {_few(hop['subscriptions'])}", "dim", by=6)
    if not found["published"]:
        _indent(out, f"it is not sent: no advertisement of {host} holds it", "yellow")
    delivered = _few(found["delivered"]) or "nobody"
    out.print(f"delivered to {delivered}; matches {_few(found['matches']) or 'no subscription'}")
    missed = [f"{miss['subscription']} of {miss['host']}: {miss['why']}" for miss in found["missed"]]
    _list_reasons(out, "missed by", missed[:MOST], len(missed))


def quote(result: Mapping[str, Any], host: str, filter: str) -> None:
    out.print(Text.assemble((host, "bold"), f" would subscribe to {filter}"))
    entries = sorted(result["entries"].items(), key=lambda entry: -abs(entry[1]))
    out.print(
        facts(
            {
                "fits": good(result["fits"], "yes", f"no: {result['reason']}"),
                "dz": f"{result['dz']:,}",
                "entries": _few([f"{switch} {n:+,d}" for switch, n in entries]) or "no table changes",
                "in all": f"{sum(result['entries'].values()):+,d} entries, "
                f"{sum(result['operations'].values()):,} flow operations",
                "unwanted": f"{result['false_positive_share']:.1%} of what it would bring",
            }
        )
    )
    if not result["fits"]:
        _indent(out, REMEDY)


def facts(rows: Mapping[str, str | Text]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, most: int = MOST) -> None:
    """Print the first rows, and how many there are beyond them; the first columns are words, the others numbers.

    Where there is not room for all, the first column gives way: a number that is broken is hard to read.
    """
    if not rows:
        return
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(head):
        if i < words:
            shown.add_column(name, overflow="fold", no_wrap=i > 0)
        else:
            shown.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows[:most]:
        shown.add_row(*row)
    out.print()
    out.print(shown)
    if len(rows) > most:
        out.print(Text(f"… and {len(rows) - most:,} more (--json lists all)", "dim"))


def good(holds: bool, yes: str, no: str) -> Text:
    return Text(yes, style="green") if holds else Text(no, style="bold red")


def _event(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def _fate(hop: Mapping[str, Any]) -> str:
    flow = hop["flow"]
    if flow is None:
        return f"no flow matches {hop['dst']}, dropped"
    onward = _few(hop["out"]) or ("nowhere else" if flow["out"] else "dropped")
    return f"{flow['dst']} (priority {flow['priority']}) -> {onward}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _list_reasons(console: Console, what: str, reasons: Sequence[str], of: int) -> None:
    for reason in reasons:
        _indent(console, f"{what} {reason}", "yellow")
    if 0 < len(reasons) < of:
        _indent(console, f"… and {of - len(reasons):,} more", "yellow")


def _indent(console: Console, text: str | Text, style: str = "", by: int = 2) -> None:
    """Print lines that stay indented where they are wrapped."""
    console.print(Padding(text if isinstance(text, Text) else Text(text, style), (0, 0, 0, by), expand=False))
