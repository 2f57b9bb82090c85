"""What `loop` tells people: a line each second, and what it came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from flowsieve.cli import view

if TYPE_CHECKING:
    from flowsieve.loop.loop_verdict import LoopVerdict
    from flowsieve.loop.series import SeriesRow

BAR = 20  # characters for everything


def note(text: str) -> None:
    view.out.print(Text(f"… {text}", "dim"), soft_wrap=True)


def row(row: SeriesRow) -> None:
    """A second: time, events, the unwanted share as a number and a bar, the index, what is under way."""
    share = row.unwanted
    bar = "" if share is None else "█" * round(BAR * share)
    style = "red" if row.story == "drifted" else "green"
    parts = [
        Text(f"{row.at:6.1f} s", "dim"),
        Text(f"{row.events_per_s:8,.0f} events/s"),
        Text(f"{'–' if share is None else f'{share:.1%}':>6} unwanted "),
        Text(f"{bar:{BAR}}", style),
        Text(f"index {row.index}" + (f" {row.phase}" if row.phase else ""), "cyan" if row.phase else ""),
        Text(row.story),
        Text(row.stream, "dim"),
    ]
    view.out.print(Text("  ").join(parts), soft_wrap=True)


def verdict(found: LoopVerdict, report: Path) -> None:
    judged = found.judgement
    way = found.transitions[0] if found.transitions else None
    phases = (
        "" if way is None else ", ".join(f"{each['phase']} {each['seconds']:.2f} s" for each in way["phases"])
    )
    good = f"none of {judged.wanted:,} wanted deliveries lost, none doubled ({judged.published:,} events)"
    bad = f"{judged.lost:,} of {judged.wanted:,} wanted deliveries lost, {judged.doubled:,} doubled"
    rows: dict[str, str | Text] = {
        "unwanted": f"{_share(found.before)} before the drift, {_share(found.drifted)} after it, "
        f"{_share(found.after)} under the new plan",
        "from the drift": f"{_seconds(found.noticed_s)} until it was noticed, {_seconds(found.offered_s)} until "
        f"a plan was offered, {_seconds(found.used_s)} until publishers used it, "
        f"{_seconds(found.in_force_s)} until all was done",
        "transition": f"to index {found.index}: {phases}",
        "events": view.good(judged.holds, good, bad),
        "rate": f"{found.events_per_s:,.0f} events/s held",
        "report": str(report),
    }
    view.out.print()
    view.out.print(view.facts(rows))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"
