"""`flowsieve controller`: the command around `flowsieve.service`."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from flowsieve import show
from flowsieve.lab.machine import check_machine
from flowsieve.lab_commands import Name, chosen


def controller(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG.toml", help="Schema and index, as in a scenario; its network, if it has one."
        ),
    ],
    lab: Name = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell what happens, on standard error.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object once it is ready, and nothing else.")
    ] = False,
) -> int:
    """Control the switches of a lab: take requests of its hosts, keep the tables at what they ask for.

    It runs until it is interrupted; the switches then go on with what they have.
    """
    check_machine()
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    from flowsieve.service import read_config, serve  # the OpenFlow codec takes a while to be imported

    setting, found = read_config(config), chosen(lab)

    def ready(address: str, seconds: float) -> None:
        if as_json:
            told = {"lab": found.name, "control": address, "seconds": round(seconds, 3)}
            print(json.dumps(told), flush=True)
            return
        size = f"{len(found.topology.switches)} switches, in {seconds:.2f} s"
        host = next(iter(found.topology.hosts), "HOST")
        rows = {
            "controller": f"of lab {found.name}, {size}",
            "requests": address,
            "try": f"flowsieve lab exec {host} flowsieve sub True",
        }
        show.out.print(show.facts(rows))
        show.out.print("It runs until Ctrl-C.")

    asyncio.run(serve(setting, found, ready))
    return 0
