"""The command for the matcher of a host: matcher."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from flowsieve.cli import view
from flowsieve.cli.options import Control, Host, Token, option
from flowsieve.errors import BadInput, FlowsieveError

AT_WORK = "at work"
IDLE_SECONDS = 10.0  # without any application, after which one that was started for them ends


def add_to(app: typer.Typer) -> None:
    """Put the command among those of an app."""
    app.command(epilog="Example: flowsieve lab exec h1 flowsieve matcher")(matcher)


def matcher(
    control: Control = None,
    host: Host = None,
    token: Token = None,
    idle: Annotated[
        float | None, option("S", "End after so many seconds without any application.", min=0)
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Go on behind the shell, until no application is left.")
    ] = False,
) -> int:
    """Hold the filters of other hosts, and tell this host's publishers for whom their events are.

    Where packets name their receivers, a host needs one matcher for all its applications. The first that advertises
    something starts it; start one yourself to have it ready before, or to see what it says.
    """
    from flowsieve.client.session import CONTROL, HOST, TOKEN

    control, host = control or os.environ.get(CONTROL), host or os.environ.get(HOST)
    if not control or not host:
        raise BadInput(
            f"the controller and this host's name are not known: give them, or set {CONTROL} and {HOST}"
        )
    token = token or os.environ.get(TOKEN, "")
    if background:
        return _behind(control, host, token, IDLE_SECONDS if idle is None else idle)
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    return asyncio.run(_served(control, host, token, idle))


def _behind(control: str, host: str, token: str, idle: float) -> int:
    """Have another process go on; returns when it is at work, or what it said is printed."""
    told, tell = os.pipe()
    if os.fork():
        os.close(tell)
        with os.fdopen(told) as heard:
            why = heard.read()
        if why != AT_WORK:
            view.err.print(why)
        return why != AT_WORK
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        status = asyncio.run(_served(control, host, token, idle, lambda text: _tell(tell, text)))
    finally:
        os._exit(status)


def _tell(pipe: int, text: str) -> None:
    with suppress(OSError):  # it was told already
        os.write(pipe, text.encode())
        os.close(pipe)


async def _served(
    control: str, host: str, token: str, idle: float | None, tell: Callable[[str], None] = view.err.print
) -> int:
    from flowsieve.client.control_session import ControlConnection, transport_to
    from flowsieve.client.matcher_socket import taken
    from flowsieve.matcher.filter_learner import FilterLearner, greeted
    from flowsieve.matcher.matcher import HostMatcher

    connection = ControlConnection(transport_to(control), host, token)
    door = None
    try:
        welcome = await greeted(connection)
        if not welcome.labelled:
            raise BadInput(f"packets of host {host} say what is in them, and it needs no matcher")
        door = taken(welcome.network or control, host)
        if door is None:
            raise BadInput(f"host {host} has a matcher already")
        learner = FilterLearner(connection, welcome)
        learner.store.warm()
        matcher = HostMatcher(learner, welcome.schema, door)
        tell(AT_WORK)
        await matcher.run(idle)
    except FlowsieveError as error:
        tell(str(error))
        return 1
    finally:
        if door is not None:
            door.close()
        await connection.close()
    return 0
