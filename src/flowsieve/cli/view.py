"""How all commands print: consoles, JSON, errors, progress, tables. Text is printed as it is, never read as markup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from flowsieve.scenario.play import Progress as Watcher

Facts = Mapping[str, str | Text]  # names, and what there is to say of each
MOST = 8  # names of a list that are shown

out = Console(highlight=False, markup=False, emoji=False)
err = Console(highlight=False, markup=False, emoji=False, stderr=True)


def print_json(result: object) -> None:
    """The one object on standard output that machines read."""
    print(json.dumps(result), flush=True)


def answer(as_json: bool, result: object, tell: Callable[[], None]) -> None:
    """What a command found: an object for machines, or else what it tells people."""
    if as_json:
        print_json(result)
    else:
        tell()


def error(problem: Exception) -> None:
    err.print(Text.assemble(("error: ", "bold red"), str(problem)), soft_wrap=True)


@contextmanager
def progress() -> Iterator[Watcher]:
    """A bar per kind of work, on standard error if that is a terminal."""
    columns = (TextColumn("{task.description:13}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.file.isatty()) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield watch


def note(what: str, reasons: Sequence[str], of: int) -> None:
    """Requests or events that were not taken, on standard error: the first of so many, with the reason."""
    list_reasons(err, f"{what}:", reasons, of)


def facts(rows: Facts) -> Table:
    """Names and what there is to say of each, side by side."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, most: int = MOST) -> None:
    """Print the first rows, and how many there are beyond them; the first columns are words, the others numbers.

    Where there is not room for all, the first column gives way: a number that is broken is hard to read.
    """
    if not rows:
        return
    shown = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, name in enumerate(head):
        if i < words:
            shown.add_column(name, overflow="fold", no_wrap=i > 0)
        else:
            shown.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows[:most]:
        shown.add_row(*row)
    out.print()
    out.print(shown)
    if len(rows) > most:
        out.print(Text(f"… and {len(rows) - most:,} more (--json lists all)", "dim"))


def good(holds: bool, yes: str, no: str) -> Text:
    return Text(yes, style="green") if holds else Text(no, style="bold red")


def few(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def list_reasons(console: Console, what: str, reasons: Sequence[str], of: int) -> None:
    """The first of so many reasons, a line each."""
    for reason in reasons:
        indent(console, f"{what} {reason}", "yellow")
    if 0 < len(reasons) < of:
        indent(console, f"… and {of - len(reasons):,} more", "yellow")


def indent(console: Console, text: str | Text, style: str = "", by: int = 2) -> None:
    """Print lines that stay indented where they are wrapped."""
    console.print(Padding(text if isinstance(text, Text) else Text(text, style), (0, 0, 0, by), expand=False))
