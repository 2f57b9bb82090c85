"""The commands around plans that were offered to a controller: offers list, offers approve."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsieve.cli import stream_view, view
from flowsieve.cli.lab import chosen
from flowsieve.cli.options import Control, Json, LabName, Operator, option
from flowsieve.errors import BadInput

if TYPE_CHECKING:
    from flowsieve.pipeline.stream.offering import ControllerLink

offers = typer.Typer(no_args_is_help=True, help="Plans that were offered to the controller.")
MOVING, DONE = "moving", "in force"
LOOK_SECONDS = 0.2


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.add_typer(offers, name="offers")


def link_to(control: str | None, lab: str | None, operator: str | None) -> ControllerLink:
    """The controller at an address, of several the one that leads, or that of a lab."""
    from flowsieve.pipeline.stream.offering import ControllerLink  # it takes a while to be imported

    return ControllerLink(tuple((control or f"unix:{chosen(lab).requests}").split(",")), operator)


@offers.command("list", epilog="Example: flowsieve offers list --control http://127.0.0.1:7420")
def listed(control: Control = None, lab: LabName = None, as_json: Json = False) -> int:
    """Show the plans that were offered, what they would bring, and what became of them."""
    found = link_to(control, lab, None).offers()
    view.answer(as_json, dict(found), lambda: stream_view.offers(found))
    return 0


@offers.command(
    epilog="Example: flowsieve offers approve 1f0e…/42 --operator $(flowsieve token m.toml --operator)"
)
def approve(
    offer: Annotated[str, typer.Argument(metavar="QUERY/BATCH", help="Which, as `offers list` shows it.")],
    wait: Annotated[float, option("S", "Wait so many seconds for its end.", min=0)] = 60.0,
    control: Control = None,
    lab: LabName = None,
    operator: Operator = None,
    as_json: Json = False,
) -> int:
    """Have the network go over to a plan; the exit status is 1 if it is not in force in the end."""
    query, _, number = offer.rpartition("/")
    if not query or not number.isascii() or not number.isdigit():
        raise BadInput(f"{offer!r} is no offer; right is QUERY/BATCH, as `flowsieve offers list` shows it")
    link, end = link_to(control, lab, operator), time.monotonic() + wait
    found: Any = link.approve(query, int(number))
    while found["fate"] == MOVING and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        listed = link.offers()["offers"]
        found = next(
            (each for each in listed if (each["query"], each["batch"]) == (query, int(number))), found
        )
    view.answer(as_json, dict(found), lambda: stream_view.fate(found))
    return 0 if found["fate"] in (DONE, MOVING) else 1
