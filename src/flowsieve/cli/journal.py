"""The commands around what a controller remembers: journal copy."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from flowsieve.cli import view
from flowsieve.cli.lab import chosen
from flowsieve.cli.options import Json, LabName
from flowsieve.errors import BadInput

journal = typer.Typer(no_args_is_help=True, help="What a controller remembers: in a folder, or in etcd.")


def add_to(app: typer.Typer) -> None:
    """Put the commands among those of an app."""
    app.add_typer(journal, name="journal")


@journal.command(epilog="Example: flowsieve journal copy alone.toml shared.toml")
def copy(
    source: Annotated[Path, typer.Argument(metavar="FROM.toml", help="The configuration that was in use.")],
    target: Annotated[
        Path, typer.Argument(metavar="TO.toml", help="The same network, to be remembered elsewhere.")
    ],
    lab: LabName = None,
    as_json: Json = False,
) -> int:
    """Copy what a controller remembers to where another configuration keeps it: from its folder to etcd, or back.

    All that was asked for goes with it, the hosts' tokens, and the claim to the switches. No controller may be at work
    in either place, and in the second nothing may be remembered yet.
    """
    from flowsieve.lab.lab_site import site_of
    from flowsieve.serving.config import read_config
    from flowsieve.serving.journal_copy import copy_journal
    from flowsieve.serving.memory import memory_of

    old, new = read_config(source), read_config(target)
    found = chosen(lab) if old.access is None or new.access is None else None
    before, after = site_of(old, found), site_of(new, found)
    base = old.base(before.topology)
    if new.base(after.topology) != base:
        raise BadInput(
            f"{target} has another schema, index or network than {source}; right is the same in both"
        )

    async def work() -> dict[str, object]:
        done = await copy_journal(memory_of(old, before), memory_of(new, after), base, old.index.plan.schema)
        return asdict(done)

    told = asyncio.run(work())
    what = "a snapshot and " if told["snapshot"] else ""
    view.answer(as_json, told, lambda: view.out.print(f"copied {what}{told['entries']} entries"))
    return 0
