"""The options that several commands have, each declared once, and the checks that go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flowsieve.errors import BadInput


def option(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option with a value; unless names are given, it is called like the parameter."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


SCHEMA = option("S.toml", "A file with a [schema].")
EVENTS = option("E", "Events: id and the attributes.")
SUBSCRIPTIONS = option("F", "Subscriptions: id, filter.")

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario: schema, index, network, steps.")
]
FlowsFile = Annotated[
    Path | None, option("flows.json", "Judge these tables, not those the scenario ends with.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")
]
CONTROL = "Where the controller takes requests: http://HOST:PORT or unix:PATH; for pub and sub also inband."
Control = Annotated[str | None, option("ADDRESS", CONTROL, envvar="FLOWSIEVE_CONTROL")]
Host = Annotated[str | None, option("H", "The name of this host.", envvar="FLOWSIEVE_HOST")]
Token = Annotated[str | None, option("T", "The token of this host.", envvar="FLOWSIEVE_TOKEN")]
OPERATOR = "The token of an operator, which `flowsieve token CONFIG.toml --operator` prints."
Operator = Annotated[str | None, option("T", OPERATOR, envvar="FLOWSIEVE_OPERATOR")]
WHICH_LAB = "Which lab; not needed if there is only one."
LabName = Annotated[str | None, option("NAME", WHICH_LAB, envvar="FLOWSIEVE_LAB")]
MASTER = "Where Spark runs: local[*], spark://HOST:PORT, sc://HOST:PORT; by default SPARK_REMOTE or local[*]."
Master = Annotated[str | None, option("M", MASTER)]
Out = Annotated[Path, option("DIR", "The folder to write into.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
SchemaFile = Annotated[Path, SCHEMA]
SchemaOfPlans = Annotated[
    Path | None, option("S.toml", "A file with a [schema], for plans that do not say theirs.")
]
Events = Annotated[Path, EVENTS]
MaybeEvents = Annotated[Path | None, EVENTS]
Wanted = Annotated[Path, SUBSCRIPTIONS]
MaybeWanted = Annotated[Path | None, SUBSCRIPTIONS]
MaxBad = Annotated[float, option("SHARE", "The share of rows that may be broken.")]
TimeColumn = Annotated[str | None, option("COLUMN", "The column of times; by default `time`.", "--time")]
MaxDz = Annotated[int, option("N", "The most dz of a filter; 0: any number.")]


def check_table(table: int | None) -> None:
    if table is not None and table < 1:
        raise BadInput(f"--table is {table}; right is a number of entries from 1 on")


def check_max_dz(max_dz: int) -> None:
    if max_dz < 0:
        raise BadInput(f"--max-dz is {max_dz}; right is a number of dz, or 0 for any number")
