"""What the lab commands show to people."""

from __future__ import annotations

from collections.abc import Sequence

from flowsieve.cli import view
from flowsieve.lab.lab import Lab

NO_LAB = "there is no lab; `flowsieve lab up ring:4` makes one"


def up(lab: Lab, seconds: float) -> None:
    topology = lab.topology
    switch, host = topology.switches[0], next(iter(topology.hosts), None)
    rows = {
        "lab": f"{lab.name}: {topology}, up in {seconds:.2f} s",
        "directory": str(lab.directory),
        f"switch {switch}": f"ovs-ofctl -O OpenFlow14 dump-flows unix:{lab.management(switch)}",
    }
    if host is not None:
        own = lab.addresses(host)
        rows[f"host {host}"] = (
            f"{own.ipv6}, {own.ipv4}: flowsieve lab exec --lab {lab.name} {host} ip address"
        )
    view.out.print(view.facts(rows))
    view.out.print(f"It stays until `flowsieve lab down {lab.name}`.")


def listed(labs: Sequence[Lab]) -> None:
    if not labs:
        view.out.print(NO_LAB)
    for lab in labs:
        state = view.good(lab.is_up, "up", "dead; `flowsieve lab down` clears it away")
        owner = "" if lab.owner is None else f", of process {lab.owner}"
        view.out.print(view.facts({lab.name: f"{lab.topology}{owner}", "": state}))
