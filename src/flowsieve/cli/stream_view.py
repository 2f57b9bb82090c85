"""What `stream` and `offers` tell people: a line for each micro-batch, a table of offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.text import Text

from flowsieve.cli import view

MOVED = 0.1  # drifts that are worth naming


def begin(folder: str, out: Path, addresses: Sequence[str]) -> None:
    offered = (
        f"plans are offered to {', '.join(addresses)}" if addresses else "plans stay there (no --control)"
    )
    view.out.print(
        f"watching {folder}; statistics go to {out}, {offered}. It runs until Ctrl-C.", soft_wrap=True
    )


def batch(row: Mapping[str, Any]) -> None:
    """A line: when, under which plan, how many events, how many of the deliveries nobody wants, what drifts."""
    parts = [
        Text(str(row["time"])[11:19], "dim"),
        Text(f"plan {row['plan']}"),
        Text(f"{row['events']:>7,} events {row['events_per_s']:>8,.0f}/s"),
        Text(f"fpr {_rate(row['fpr_measured'])} measured {_rate(row['fpr_computed'])} computed"),
    ]
    moved = {
        name: figures["drift"] for name, figures in row["dimensions"].items() if figures["drift"] >= MOVED
    }
    if moved:
        worst = sorted(moved.items(), key=lambda item: -item[1])[:3]
        parts.append(Text("drift " + " ".join(f"{name} {value:.2f}" for name, value in worst), "yellow"))
    aside = sum(row["aside"].values())
    if aside:
        parts.append(Text(f"{aside:,} set aside", "yellow"))
    if row["planning"]:
        parts.append(Text(f"planning: {row['planning']}", "cyan"))
    if row["planned"]:
        parts.append(Text(f"batch {row['planned']['batch']}: {row['planned']['fate']}", "cyan"))
    view.out.print(Text("  ").join(parts), soft_wrap=True)


def note(text: str) -> None:
    """Something beside the batches."""
    view.err.print(Text(text, "yellow"), soft_wrap=True)


def end(totals: Mapping[str, Any]) -> None:
    aside = ", ".join(f"{count:,} {kind}" for kind, count in totals["aside"].items() if count)
    rows = {
        "events": f"{totals['events']:,}, and {totals['deliveries']:,} sampled deliveries",
        "files": f"{totals['files']:,}, of which {totals['unreadable']:,} could not be read",
        "set aside": aside or "nothing",
    }
    view.out.print(view.facts(rows))


def _rate(rate: float | None) -> str:
    return "  –  " if rate is None else f"{rate:.3f}"


def offers(found: Mapping[str, Any]) -> None:
    """All offers, the latest first."""
    rows = found["offers"]
    if not rows:
        view.out.print("no plan was offered")
    view.table(
        ("offer", "fate", "when", "fpr now", "fpr then", "events"),
        [
            (
                f"{each['query']}/{each['batch']}",
                each["fate"],
                datetime.fromtimestamp(each["at"], UTC).strftime("%Y-%m-%d %H:%M:%S"),
                *(_rate((each["score"].get(key) or {}).get("fpr")) for key in ("old", "new")),
                f"{each['score'].get('events', 0):,}",
            )
            for each in rows
        ],
        words=3,
        most=len(rows),
    )
    for each in rows[:1]:
        view.indent(view.out, f"{each['query']}/{each['batch']}: {each['why']}")
    view.out.print(
        "offers may be approved at once (--auto)"
        if found["auto"]
        else "a person approves: flowsieve offers approve"
    )


def fate(offer: Mapping[str, Any]) -> None:
    reason = f": {offer['reason']}" if offer.get("reason") else ""
    view.out.print(f"{offer['query']}/{offer['batch']} is {offer['fate']}{reason}", soft_wrap=True)
