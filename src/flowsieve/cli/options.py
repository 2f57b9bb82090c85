"""The options that several commands have, each declared once, and the checks that go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowsieve.errors import BadInput

SCHEMA = "A file with a [schema]."
EVENTS = "Events: id and the attributes."
SUBSCRIPTIONS = "Subscriptions: id, filter."
FOLDER = "The folder to write into."

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario: schema, index, network, steps.")
]
FlowsFile = Annotated[
    Path | None,
    typer.Option(
        "--flows", metavar="flows.json", help="Judge these tables, not those the scenario ends with."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")
]
Control = Annotated[
    str | None,
    typer.Option(
        "--control",
        metavar="ADDRESS",
        envvar="FLOWSIEVE_CONTROL",
        help="Where the controller takes requests: http://HOST:PORT or unix:PATH; for pub and sub also inband.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="H", envvar="FLOWSIEVE_HOST", help="The name of this host."),
]
Token = Annotated[
    str | None,
    typer.Option("--token", metavar="T", envvar="FLOWSIEVE_TOKEN", help="The token of this host."),
]
LabName = Annotated[
    str | None,
    typer.Option(
        "--lab", metavar="NAME", envvar="FLOWSIEVE_LAB", help="Which lab; not needed if there is only one."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="M",
        help="Where Spark runs: local[*], spark://HOST:PORT, sc://HOST:PORT; by default SPARK_REMOTE or local[*].",
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help=FOLDER)]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
SchemaFile = Annotated[Path, typer.Option("--schema", metavar="S.toml", help=SCHEMA)]
SchemaOfPlans = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="S.toml", help="A file with a [schema], for plans that do not say theirs."
    ),
]
Events = Annotated[Path, typer.Option("--events", metavar="E", help=EVENTS)]
MaybeEvents = Annotated[Path | None, typer.Option("--events", metavar="E", help=EVENTS)]
Wanted = Annotated[Path, typer.Option("--subscriptions", metavar="F", help=SUBSCRIPTIONS)]
MaybeWanted = Annotated[Path | None, typer.Option("--subscriptions", metavar="F", help=SUBSCRIPTIONS)]
MaxBad = Annotated[
    float, typer.Option("--max-bad", metavar="SHARE", help="The share of rows that may be broken.")
]
TimeColumn = Annotated[
    str | None, typer.Option("--time", metavar="COLUMN", help="The column of times; by default `time`.")
]
MaxDz = Annotated[int, typer.Option("--max-dz", metavar="N", help="The most dz of a filter; 0: any number.")]


def check_max_dz(max_dz: int) -> None:
    if max_dz < 0:
        raise BadInput(f"--max-dz is {max_dz}; right is a number of dz, or 0 for any number")
