"""The command line. Output for machines is one JSON object on standard output; errors go to standard error.

Exit status: 0 done and all well, 1 done and something does not hold, 2 bad input. A command imports what it needs when
it is run, so that `flowsieve --help` and every other command start fast.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from flowsieve.cli import (
    advise,
    client,
    control,
    controller,
    journal,
    lab,
    loop,
    matcher,
    offers,
    pipeline,
    plan,
    reindex,
    replay,
    scenario,
    sets,
    stream,
    view,
)
from flowsieve.errors import BadInput, FlowsieveError

app = typer.Typer(
    name="flowsieve",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for family in (
    scenario,
    controller,
    control,
    journal,
    client,
    matcher,
    lab,
    loop,
    offers,
    reindex,
    pipeline,
    plan,
    sets,
    stream,
    replay,
    advise,
):
    family.add_to(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"flowsieve {version('flowsieve')}")
        raise typer.Exit


@app.callback()
def flowsieve(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Content-based publish/subscribe whose filtering happens inside the network."""


def main() -> None:
    """Run the command line; errors that we raise on purpose become a message and a status."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show stops nothing
    try:
        status = app(standalone_mode=False)
    except BadInput as error:
        view.error(error)
        status = 2
    except FlowsieveError as error:
        view.error(error)
        status = 1
    except typer.Exit as leaving:
        status = leaving.exit_code
    except typer.Abort:
        status = 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except Exception as error:
        # What click makes of a wrong option; anything else is our own fault and shows as such.
        report, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if report is None or code is None:
            raise
        report()
        status = code
    sys.exit(status or 0)
