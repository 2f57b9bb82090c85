"""What advice shows to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from flowsieve.cli import view

LINES = (
    ("unwanted copies per wanted one", "unwanted_per_wanted", "{:.3g}"),
    ("packets a publisher sends per event", "packets_per_event", "{:.3g}"),
    ("packets over links per event", "link_packets_per_event", "{:.3g}"),
    ("copies carried per wanted one", "carried_per_wanted", "{:.3g}"),
    ("entries of the fullest switch", "entries_max", "{:,}"),
    ("flow operations per subscription", "operations_per_request", "{:.3g}"),
    ("of these in the busiest switch", "operations_busiest_switch", "{:.3g}"),
    ("requests refused", "refused", "{:,}"),
    ("filters held by a publisher", "filters_held", "{:,}"),
    ("publisher's µs per event, here", "publisher_us_per_event", "{:.3g}"),
)


def advice(result: Mapping[str, Any]) -> None:
    load, headers = result["workload"], result["headers"]
    wishes, events = load["subscriptions"], load["events"]
    some = (
        "" if wishes["used"] == wishes["given"] else f" of {wishes['given']:,}, so entries are a lower bound,"
    )
    view.out.print(
        f"{wishes['used']:,} subscriptions{some} of {load['hosts']:,} hosts at {load['switches']:,} switches; "
        f"{load['publishers']:,} publishers, {events['sent']:,} events, after {events['sampled']:,} that place dz"
    )
    rows = [
        (said, *("-" if row["obstacle"] else form.format(row[key]) for row in headers.values()))
        for said, key, form in LINES
    ]
    view.table(("", *headers), rows, most=len(rows))
    view.out.print()
    view.out.print(view.facts({f"with {name}": row["told"] for name, row in headers.items()}))
    view.out.print()
    taken = result["recommended"]
    view.out.print(
        Text(f"take {taken}" if taken else "none of them can be had", "bold green" if taken else "bold red")
    )
    for reason in result["reasons"]:
        view.indent(view.out, reason)
    for name, row in headers.items():
        if name == taken and row["ovs_packets_ratio"]:
            view.indent(
                view.out,
                f"packets per second on Open vSwitch against one plain output flow: {row['ovs_packets_ratio']}",
            )
