"""What planning and evaluation show to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowsieve.cli import view


def plan(result: Mapping[str, Any]) -> None:
    on = result["planned_on"]
    about: view.Facts = {
        "plan": f"{result['method']}: {result['kind']}, {result['bits']} bits over "
        f"{', '.join(result['dimensions'])}",
        "planned on": f"{on['events']:,} of {on['of']:,} events; held back: {on['held_back']}",
        "written": result["plan"],
        "seconds": f"{result['seconds']:.1f}",
    }
    view.out.print(view.facts(about))
    if result["portfolio"] is None:
        return
    tried = sorted(result["portfolio"]["tried"].items(), key=lambda item: item[1]["fpr"])
    rows = [(name, f"{row['fpr']:.2%}", f"{row['seconds']:.1f}") for name, row in tried]
    view.table(("tried", "false positives", "seconds"), rows, most=len(rows))
    if result["portfolio"]["passed_over"]:
        view.out.print(
            f"not tried, for lack of time (--deadline S gives more): {'; '.join(result['portfolio']['passed_over'])}"
        )


def evaluation(result: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> None:
    numbers = ("false_negatives", "deliveries", "prefixes", "prefixes_max")
    rows = [
        (row["plan"], row["kind"], f"{row['fpr']:.2%}", *(f"{row[name]:,}" for name in numbers))
        for row in plans
    ]
    head = ("plan", "kind", "false positives", "lost", "deliveries", "prefixes", "at most")
    view.table(head, rows, words=2, most=len(rows))
    budget = (
        f"{result['max_dz']} dz a subscription" if result["max_dz"] else "any number of dz a subscription"
    )
    if "table" in result:
        budget = f"covers for a table of {result['table']:,} entries"
    judged = [
        f"{row['events']:,} events, {row['matches']:,} matches: {row['judged_on']}; {budget}" for row in plans
    ]
    view.out.print()
    view.out.print(
        view.facts({"judged on": "\n".join(dict.fromkeys(judged)), "seconds": f"{result['seconds']:.1f}"})
    )


def sets(result: Mapping[str, Any]) -> None:
    on, judged = result["learned_on"], result["judged_on"]
    packets, entries = result["packets_per_event"], result["entries_max"]
    over, size = result["link_packets_per_event"], result["hosts_per_set"]
    about: view.Facts = {
        "sets": f"{result['sets']} of {result['hosts']:,} hosts, at most {size['most']} in each, which has room for "
        f"{size['room']}; start: {result['start']}",
        "learned on": f"{on['events']:,} events, {on['wanted_by_several']:,} of them wanted by several hosts: "
        f"{on['audiences_used']:,} of {on['audiences']:,} audiences",
        "judged on": f"{judged['events']:,} events, {judged['wanted']:,} of them wanted; held back: "
        f"{result['held_back']}",
        "written": result["written"],
        "seconds": f"{result['seconds']:.1f}",
    }
    view.out.print(view.facts(about))
    rows = [
        (name, f"{packets[name]:.3f}", f"{over[name]:.3f}", f"{entries[name]:,}" if name in entries else "")
        for name in packets
    ]
    view.table(("sets", "packets per event", "over links", "entries at most"), rows)
