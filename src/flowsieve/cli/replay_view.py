"""What a replay and a report show to people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from flowsieve.cli import view

WRONG = {
    "false_negatives": "wanted and not arrived",
    "duplicates": "arrived twice",
    "expired": "ran out of hops",
}


def replay(result: Mapping[str, Any], scenario: Path) -> None:
    wrong = [f"{name}: {result[key]:,}" for key, name in WRONG.items() if result[key]]
    seconds = result["seconds"]
    view.out.print(Text(str(scenario), "bold"))
    about: view.Facts = {
        "events": f"{result['events']:,}, {result['rejected']:,} rejected; {result['packets']:,} packets sent",
        "tables": f"{result['flows']:,} flows, {result['flows_max']:,} in the fullest switch",
        "deliveries": f"{result['deliveries']:,} copies, {result['wanted']:,} wanted; "
        f"{result['false_positives']:,} false positives ({result['fpr']:.1%})",
        "on the links": f"{result['link_packets']:,} packets between switches",
        "verdict": view.good(not wrong, "all that was wanted arrived, once", ", ".join(wrong)),
        "seconds": f"{seconds:.1f}, {result['events'] / seconds:,.0f} events/s with start and reading; "
        f"executors: {result['executors']}",
    }
    view.out.print(view.facts(about))
    links = [(f"{link['from']} → {link['to']}", link["packets"]) for link in result["links"]]
    links.sort(key=lambda link: -link[1])
    view.table(("busiest links", "packets", "share"), [
        (name, f"{packets:,}", f"{packets / max(1, result['link_packets']):.1%}")
        for name, packets in links if packets
    ])  # fmt: skip
    switches = sorted(result["switches"].items(), key=lambda row: -row[1]["received"])
    names = ("received", "unmatched", "link_packets", "deliveries", "false_positives")
    view.table(("busiest switches", "received", "no entry", "sent on", "to hosts", "false positives"), [
        (switch, *(f"{row[name]:,}" for name in names)) for switch, row in switches if row["received"]
    ])  # fmt: skip
    hosts = sorted(
        result["hosts"].items(), key=lambda row: (-row[1]["false_positives"], -row[1]["deliveries"])
    )
    view.table(("hosts", "published", "received", "wanted", "false positives", "of received"), [
        (
            host, f"{row['published']:,}", f"{row['deliveries']:,}", f"{row['wanted']:,}",
            f"{row['false_positives']:,}", f"{row['false_positives'] / max(1, row['deliveries']):.1%}",
        )
        for host, row in hosts if row["deliveries"]
    ])  # fmt: skip
    account = result["read"]
    view.note("set aside", account["first_reasons"], account["rows"] - account["good"])


def report(result: Mapping[str, Any]) -> None:
    ranked = sorted(result["plans"], key=lambda found: found["fpr"])
    rows = [
        (
            found["label"], found["kind"], f"{found['bits']}", f"{found['dimensions'] or ''}", f"{found['fpr']:.2%}",
            f"{found['false_positives']:,}", f"{found['deliveries']:,}", f"{found['prefixes']:,}",
        )
        for found in ranked
    ]  # fmt: skip
    view.table(
        ("plan", "kind", "bits", "dimensions", "rate", "false positives", "deliveries", "entries"),
        rows,
        words=2,
    )
    view.out.print()
    about: view.Facts = {
        "measured": " ".join(result["measured_on"]).removeprefix("Measured "),
        "written": ", ".join(result["files"]),
        "seconds": f"{result['seconds']:.1f}",
    }
    view.out.print(view.facts(about))
