"""What planning and evaluation show to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from flowsieve import show


def plan(result: Mapping[str, Any]) -> None:
    on = result["planned_on"]
    show.out.print(
        show.facts(
            {
                "plan": f"{result['method']}: {result['kind']}, {result['bits']} bits over "
                f"{', '.join(result['dimensions'])}",
                "planned on": f"{on['events']:,} of {on['of']:,} events; held back: {on['held_back']}",
                "written": result["plan"],
                "seconds": f"{result['seconds']:.1f}",
            }
        )
    )
    if result["portfolio"] is None:
        return
    tried = result["portfolio"]["tried"]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("tried", "false positives", "seconds"):
        table.add_column(name, justify="left" if name == "tried" else "right")
    for name, row in sorted(tried.items(), key=lambda item: item[1]["fpr"]):
        table.add_row(name, f"{row['fpr']:.2%}", f"{row['seconds']:.1f}")
    show.out.print(table)
    if result["portfolio"]["passed_over"]:
        show.out.print(f"not tried, for lack of time: {', '.join(result['portfolio']['passed_over'])}")


def evaluation(result: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    columns = ("plan", "kind", "false positives", "lost", "deliveries", "matches", "prefixes", "at most")
    for name in columns:
        table.add_column(name, justify="left" if name in ("plan", "kind") else "right")
    for row in plans:
        table.add_row(
            row["plan"],
            row["kind"],
            f"{row['fpr']:.2%}",
            f"{row['false_negatives']:,}",
            f"{row['deliveries']:,}",
            f"{row['matches']:,}",
            f"{row['prefixes']:,}",
            f"{row['prefixes_max']:,}",
        )
    show.out.print(table)
    budget = (
        f"{result['max_dz']} dz a subscription" if result["max_dz"] else "any number of dz a subscription"
    )
    for text in dict.fromkeys(f"{row['events']:,} events: {row['judged_on']}" for row in plans):
        show.out.print(f"{text}; {budget}; {result['seconds']:.1f} s")
