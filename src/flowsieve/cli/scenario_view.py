"""What the scenario commands show to people."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from pathlib import Path
from typing import Any

from rich.text import Text

from flowsieve.cli import view

WRONG = {
    "false_negatives": "wanted and not arrived",
    "duplicates": "arrived twice",
    "refused": "requests refused",
}
REMEDY = "To have this served, raise table_capacity in [network] or take fewer trees."


def run(report: Mapping[str, Any], scenario: Path, folder: Path) -> None:
    wrong = [f"{name}: {report[key]:,}" for key, name in WRONG.items() if report[key]]
    verdict = view.good(not wrong, "all that was wanted arrived, once", ", ".join(wrong))
    view.out.print(Text(str(scenario), "bold"))
    about: view.Facts = {
        "requests": f"{report['requests']:,}, {report['refused']:,} refused; "
        f"{report['flow_ops']:,} flow operations",
        "tables": f"{report['flows']:,} flows, {report['flows_max']:,} in the fullest switch; "
        f"{_labels(report)} of up to {report['bits']} bits",
        "events": f"{report['events']:,}, {report['rejected']:,} rejected",
        "deliveries": f"{report['deliveries']:,} copies, {report['wanted']:,} wanted; "
        f"{report['false_positives']:,} false positives ({report['fpr']:.1%})",
        **_predicted(report),
        "on the links": f"{report['link_packets']:,} packets between switches",
        "seconds": ", ".join(f"{phase} {spent:.2f}" for phase, spent in report["seconds"].items()),
        "verdict": verdict,
        "written": f"{folder}/report.json, deliveries.csv, matches.csv, packets.csv, flows.json",
    }
    view.out.print(view.facts(about))
    view.list_reasons(view.out, "refused:", report["first_refused"], report["refused"])
    if report["refused"]:
        view.indent(view.out, REMEDY)
    view.list_reasons(view.out, "rejected:", report["first_rejected"], report["rejected"])
    if report["coarsened"]:
        worst = max(report["coarsened"], key=report["coarsened"].get)
        view.indent(
            view.out,
            f"{len(report['coarsened']):,} tables were coarsened to fit; that costs most at {worst}: "
            f"about {report['coarsened'][worst]:.2g} unwanted copies per event",
        )


def encoded(written: Mapping[str, int], bits: int, folder: Path) -> None:
    what = " and ".join(f"{written[kind]:,} {kind}" for kind in ("filters", "events") if kind in written)
    rejected = f", {written['rejected']:,} rejected" if written.get("rejected") else ""
    view.out.print(f"{what} encoded in up to {bits} bits{rejected}; into {folder}")


def verdict(result: Mapping[str, Any], tables: Mapping[str, Sized]) -> None:
    where = f"{sum(map(len, tables.values())):,} flows in {len(tables):,} switches"
    proved = f"proved: {where} deliver all that is wanted, once, and nothing loops"
    view.out.print(view.good(result["holds"], proved, f"does not hold: {where}"))
    share = result["false_positive_share"]
    about: view.Facts = {
        "false negatives": f"{result['false_negatives']:,} pairs of publisher and subscriber",
        "duplicates": f"{result['duplicates']:,} pairs",
        "loops": f"{result['loops']:,} switches",
        "strays": f"{result['strays']:,} where something leaves that should not, or by a port that is not there",
        "unwanted": "cannot be told: packets multiply on a loop"
        if share is None
        else f"{share:.2%} of the copies delivered",
    }
    view.out.print(view.facts(about))
    witness = result["witness"]
    if witness is not None:
        event = "an address that no event has" if witness["event"] is None else _event(witness["event"])
        sender = f"{witness['publisher']} publishes " if witness["publisher"] else ""
        view.out.print(Text(f"{witness['kind']}: {sender}{event}", "yellow"))
        view.indent(view.out, witness["where"], "yellow")


def explanation(found: Mapping[str, Any], host: str, values: Mapping[str, object]) -> None:
    view.out.print(Text.assemble((host, "bold"), f" publishes {_event(values)}"))
    for hop in found["hops"]:
        view.indent(
            view.out, Text.assemble((hop["switch"], "bold"), f", from {hop['came_from']}: {_fate(hop)}")
        )
        if hop["subscriptions"]:
            view.indent(view.out, f"for {view.few(hop['subscriptions'])}", "dim", by=6)
    if not found["published"]:
        view.indent(view.out, f"it is not sent: no advertisement of {host} holds it", "yellow")
    delivered = view.few(found["delivered"]) or "nobody"
    view.out.print(f"delivered to {delivered}; matches {view.few(found['matches']) or 'no subscription'}")
    missed = [f"{miss['subscription']} of {miss['host']}: {miss['why']}" for miss in found["missed"]]
    view.list_reasons(view.out, "missed by", missed[: view.MOST], len(missed))


def quote(result: Mapping[str, Any], host: str, filter: str) -> None:
    view.out.print(Text.assemble((host, "bold"), f" would subscribe to {filter}"))
    entries = sorted(result["entries"].items(), key=lambda entry: -abs(entry[1]))
    about: view.Facts = {
        "fits": view.good(result["fits"], "yes", f"no: {result['reason']}"),
        "dz": f"{result['dz']:,}",
        "entries": view.few([f"{switch} {n:+,d}" for switch, n in entries]) or "no table changes",
        "in all": f"{sum(result['entries'].values()):+,d} entries, "
        f"{sum(result['operations'].values()):,} flow operations",
        "unwanted": f"{result['false_positive_share']:.1%} of what it would bring",
        "filter told to": view.few(result["told"]) or "nobody",
    }
    view.out.print(view.facts(about))
    if not result["fits"]:
        view.indent(view.out, REMEDY)


def _labels(report: Mapping[str, Any]) -> str:
    if "bits_per_filter" in report:
        return f"{report['filters']:,} filters, {report['bits_per_filter']} bits each, in labels"
    sets = report.get("sets")
    if (hosts := report.get("label_hosts")) is not None:
        return f"dz, with labels from {hosts} host{'s' if hosts != 1 else ''} beside them,"
    if sets is None:
        return "dz"
    trees = ", each with a tree of its own" if report["set_trees"] > 1 else ""
    return f"labels, of hosts in {sets} set{'s' if sets > 1 else ''}{trees},"


def _predicted(report: Mapping[str, Any]) -> view.Facts:
    """What was to be expected of labels that may deceive."""
    if "predicted_false_positives" not in report:
        return {}
    return {
        "predicted": f"{report['predicted_false_positives']:,.1f} false positives, with "
        f"{report['filters_per_packet']:.1f} filters a packet and {report['packets_per_event']:.2f} packets an event"
    }


def _event(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in values.items())


def _fate(hop: Mapping[str, Any]) -> str:
    flow = hop["flow"]
    if flow is None:
        return f"no flow matches {hop['dst']}, dropped"
    onward = view.few(hop["out"]) or ("nowhere else" if flow["out"] else "dropped")
    table = f"table {flow['table']}, " if flow.get("table") else ""
    return f"{flow['dst']} ({table}priority {flow['priority']}) -> {onward}"
