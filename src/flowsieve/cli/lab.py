"""The commands under `flowsieve lab`: a real network on this machine, up, down, and commands on its hosts."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from flowsieve.cli import lab_view, view
from flowsieve.cli.options import WHICH_LAB, Json, LabName, option
from flowsieve.config.files import is_file
from flowsieve.config.mistakes import Mistakes
from flowsieve.config.toml import Section
from flowsieve.errors import BadInput
from flowsieve.lab.lab import Lab, down, find, labs, up
from flowsieve.lab.machine import check_machine
from flowsieve.network.generators import generate
from flowsieve.network.graphml import read_graphml
from flowsieve.network.topology import Topology

app = typer.Typer(
    name="lab",
    help="A real network on this machine: Open vSwitch bridges, hosts in namespaces. Needs root.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def add_to(commands: typer.Typer) -> None:
    """Put the commands among those of an app, under `lab`."""
    commands.add_typer(app)


@app.command(name="up", epilog="Example: flowsieve lab up ring:4")
def up_command(
    topology: Annotated[
        str,
        typer.Argument(
            metavar="TOPOLOGY",
            help="fat-tree:4, ring:20, tree:3,2, …; a GraphML file; or a scenario, SCENARIO.toml.",
        ),
    ],
    name: Annotated[
        str | None, option("NAME", "What to call it; by default lab1, lab2, …", envvar="FLOWSIEVE_LAB")
    ] = None,
    as_json: Json = False,
) -> int:
    """Bring up a network; it stays until it is taken down."""
    wanted = read_topology(topology)
    start = time.perf_counter()
    lab = up(wanted, name)
    seconds = time.perf_counter() - start
    result = lab.to_json() | {"seconds": round(seconds, 3)}
    view.answer(as_json, result, lambda: lab_view.up(lab, seconds))
    return 0


@app.command(name="down", epilog="Example: flowsieve lab down lab1")
def down_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", envvar="FLOWSIEVE_LAB", help=WHICH_LAB, show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All labs that no running program owns.")] = False,
    as_json: Json = False,
) -> int:
    """Take a lab down, and end what runs on its hosts."""
    if every and name is not None:
        raise BadInput(f"both a name, {name!r}, and --all; right is one of them")
    check_machine()
    some = [lab for lab in labs() if _is_free(lab)] if every else [chosen(name)]
    for lab in some:
        down(lab)
    names = [lab.name for lab in some]
    told = f"{', '.join(names) or 'nothing'} taken down"
    view.answer(as_json, {"down": names}, lambda: view.out.print(told))
    return 0


@app.command(name="list", epilog="Example: flowsieve lab list --json")
def list_command(as_json: Json = False) -> int:
    """Show the labs of this machine."""
    check_machine()
    found = labs()
    result = {"labs": [lab.to_json() | {"up": lab.is_up} for lab in found]}
    view.answer(as_json, result, lambda: lab_view.listed(found))
    return 0


@app.command(
    name="exec",
    epilog="Example: flowsieve lab exec h0 ip -6 address",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
def exec_command(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host to run it on.")],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The command.")],
    lab: LabName = None,
) -> int:
    """Run a command on a host; its exit status becomes ours.

    The command finds the lab's controller, its host's name and token in FLOWSIEVE_CONTROL, FLOWSIEVE_HOST and
    FLOWSIEVE_TOKEN. Set FLOWSIEVE_CONTROL=inband to go through the network instead.
    """
    check_machine()
    found = chosen(lab)
    told = {"FLOWSIEVE_CONTROL": f"unix:{found.requests}", "FLOWSIEVE_HOST": host}
    token = found.directory / "tokens" / host
    if token.exists():
        told["FLOWSIEVE_TOKEN"] = token.read_text()
    with found.exec(host, command, env={**os.environ, **told}) as process:
        while True:
            try:
                return _status(process.wait())
            except KeyboardInterrupt:
                continue  # the command was interrupted too, and decides what that means


@app.command(name="link", epilog="Example: flowsieve lab link s0 s1 down")
def link_command(
    a: Annotated[str, typer.Argument(metavar="A", help="A switch.")],
    b: Annotated[str, typer.Argument(metavar="B", help="A neighbour of it, switch or host.")],
    state: Annotated[str, typer.Argument(metavar="up|down", help="Plug the cable in, or pull it.")],
    lab: LabName = None,
) -> int:
    """Pull the cable between two neighbours, or plug it in again."""
    check_machine()
    if state not in ("up", "down"):
        raise BadInput(f"a link is up or down, not {state!r}")
    chosen(lab).set_link(a, b, state == "up")
    view.out.print(f"the link {a} - {b} is {state}")
    return 0


def read_topology(text: str) -> Topology:
    """The network of a scenario, of a GraphML file (with a host h0, h1, … at each switch), or of a generator."""
    path = Path(text)
    if path.suffix == ".toml":
        from flowsieve.scenario.network_section import read_network  # it takes a while to be imported

        mistakes = Mistakes()
        network = read_network(Section.read(path, mistakes))
        mistakes.check()
        assert network is not None
        return network.topology
    if path.suffix in (".graphml", ".xml") or is_file(path):
        switches, links = read_graphml(path)
        return Topology.make(
            links, {f"h{number}": switch for number, switch in enumerate(switches)}, switches
        )
    return generate(text)


def chosen(name: str | None) -> Lab:
    """The lab of that name; without a name the only one that could be meant."""
    if name is not None:
        return find(name)
    free = [lab for lab in labs() if _is_free(lab)]
    if not free:
        raise BadInput(lab_view.NO_LAB)
    if len(free) > 1:
        raise BadInput(
            f"there are the labs {', '.join(lab.name for lab in free)}; name the one that is meant"
        )
    return free[0]


def _is_free(lab: Lab) -> bool:
    """Whether a lab is not in the hands of a running program."""
    return lab.owner is None or not lab.is_up


def _status(code: int) -> int:
    """As a shell says it: 128 and the number of the signal that ended the command."""
    return code if code >= 0 else 128 - code
