"""A TOML file whose every key knows its line, so that what is wrong with a value can be said of its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from flowsieve.config.files import existing, place, read_text
from flowsieve.config.mistakes import Mistakes
from flowsieve.content.schema import nearest_of, shown
from flowsieve.errors import BadScenario

TomlKey = str | int  # an int counts the entries of a list
TomlPath = tuple[TomlKey, ...]

TOKEN = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\])*" | '[^']*' | \#[^\n]*
    | [\[{] | [\]}] | \n | [^"'\#\[\]{}\n]+""",
    re.VERBOSE | re.DOTALL,
)


class Section:
    """A table of a TOML file, asked key by key; a value that is not as it should be is kept as a mistake.

    What is wrong or missing comes back as None: reading goes on to find the next mistake.
    """

    def __init__(self, table: Mapping[str, Any], keys: TomlPath, lines: Lines, mistakes: Mistakes) -> None:
        self.table = table
        self.mistakes = mistakes
        self._keys = keys
        self._lines = lines

    @classmethod
    def read(cls, path: Path, mistakes: Mistakes) -> Section:
        """The whole of a file; one that is no TOML raises."""
        text = read_text(path)
        try:
            return cls(tomllib.loads(text), (), Lines(path, text), mistakes)
        except tomllib.TOMLDecodeError as error:
            raise _syntax_error(path, text, str(error)) from None
        except (ValueError, RecursionError) as error:
            # A number of thousands of digits, lists in lists in lists.
            raise BadScenario(
                f"is TOML nested too deeply, or with too long a number: {error}", place=str(path)
            ) from None

    def __contains__(self, key: str) -> bool:
        return key in self.table

    @property
    def path(self) -> Path:
        """The file that the table stands in."""
        return self._lines.path

    def place(self, *keys: TomlKey) -> str:
        """Where a key stands, or else the table that it would stand in."""
        return self._lines.place(self._keys + keys)

    def wrong(self, key: TomlKey, message: str) -> None:
        self.mistakes.add(message, self.place(key))

    def kept(self, *keys: TomlKey) -> AbstractContextManager[None]:
        """Keep a mistake that is raised inside and concerns a key."""
        return self.mistakes.kept(partial(self.place, *keys))

    def only(self, known: Iterable[str]) -> None:
        """Whatever else is in the table is a mistake."""
        names = list(known)
        for key in self.table:
            if key not in names:
                what = (
                    f"[{'.'.join(map(str, self._keys))}] has no key"
                    if self._keys
                    else "a scenario has no part"
                )
                hint = nearest_of(key, names) or f"; right are {', '.join(names)}"
                self.wrong(key, f"{what} {shown(key)}{hint}")
            if self.mistakes.full:
                break

    def section(self, key: str) -> Section:
        """A table inside; an empty one if there is none."""
        table = self.table.get(key, {})
        if not isinstance(table, dict):
            self.wrong(
                key, f"{key} is {shown(table)}; right is a table, [{'.'.join(map(str, (*self._keys, key)))}]"
            )
            table = {}
        return Section(table, (*self._keys, key), self._lines, self.mistakes)

    def sections(self, key: str) -> Iterator[Section]:
        """The tables of a list: [[step]], [[step]], …"""
        tables = self.table.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.wrong(key, f"{key} is {shown(tables)}; right are tables, each under a line [[{key}]]")
            return
        for number, table in enumerate(tables):
            yield Section(table, (*self._keys, key, number), self._lines, self.mistakes)

    def text(self, key: str, example: str) -> str | None:
        value = self.table.get(key)
        if value is None or (isinstance(value, str) and value):
            return value
        self.wrong(key, f"{key} is {shown(value)}; right is a text, such as {example!r}")
        return None

    def file(self, key: str, example: str) -> Path | None:
        """The path of a file that is there; it is written as seen from the folder of the TOML file."""
        name = self.text(key, example)
        if name is not None:
            with self.kept(key):
                return existing(self.path.parent / name)
        return None

    def choice(self, key: str, options: Iterable[str]) -> str | None:
        value, names = self.table.get(key), list(options)
        if value is None or (isinstance(value, str) and value in names):
            return value
        hint = nearest_of(value, names) if isinstance(value, str) else ""
        self.wrong(key, f"{key} is {shown(value)}; right is {' or '.join(map(repr, names))}{hint}")
        return None

    def whole(self, key: str, most: int, why: str = "") -> int | None:
        """A whole number from 0 to `most`."""
        value = self.table.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most):
            return value
        self.wrong(key, f"{key} is {shown(value)}; right is a whole number from 0 to {most}{why}")
        return None


class _Statement(NamedTuple):
    """A statement of TOML, the line on which it begins, and those on which the items of its list do."""

    text: str
    line: int
    inner: tuple[int, ...]


class Lines:
    """On which line of a TOML file each key stands; worked out when first asked for."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._text = text.replace("\r\n", "\n")

    def place(self, keys: TomlPath) -> str:
        while keys and keys not in self._lines:
            keys = keys[:-1]
        return place(self.path, self._lines[keys]) if keys else str(self.path)

    @cached_property
    def _lines(self) -> dict[TomlPath, int]:
        lines: dict[TomlPath, int] = {}
        counts: dict[TomlPath, int] = {}  # how many tables of a list there were so far
        above: TomlPath = ()
        for text, line, inner in self._statements():
            fragment = tomllib.loads(text)
            if text.startswith("["):
                above = ()
                inside: Any = fragment
                while isinstance(inside, dict) and inside:
                    (key, inside), *_ = inside.items()
                    above = (*above, key)
                    lines.setdefault(above, line)
                    if above in counts and isinstance(inside, dict):
                        above = (*above, counts[above] - 1)
                if isinstance(inside, list):
                    counts[above] = counts.get(above, 0) + 1
                    above = (*above, counts[above] - 1)
                    lines[above] = line
            else:
                _note(lines, above, fragment, line, inner)
        return lines

    def _statements(self) -> Iterator[_Statement]:
        parts: list[str] = []
        inner: list[int] = []
        line = start = 1
        depth = 0
        for token in TOKEN.findall(self._text + "\n"):
            if token == "\n" and depth == 0:
                text = "".join(parts).strip()
                if text:
                    yield _Statement(text, start, tuple(inner))
                parts, inner, start = [], [], line + 1
            elif not token.startswith("#"):
                parts.append(token)
            if token in "[{":
                depth += 1
                if depth == 2:
                    inner.append(line)
            elif token in "]}":
                depth -= 1
            line += token.count("\n")


def _note(
    lines: dict[TomlPath, int], above: TomlPath, value: object, line: int, inner: tuple[int, ...]
) -> None:
    """Write down the line of every key in a value, which begins on the line."""
    if isinstance(value, dict):
        for key, part in value.items():
            lines.setdefault((*above, key), line)
            _note(lines, (*above, key), part, line, inner)
    elif isinstance(value, list) and len(value) == len(inner):
        for number, part_line in enumerate(inner):
            lines[(*above, number)] = part_line


def _syntax_error(path: Path, text: str, complaint: str) -> BadScenario:
    """Python's complaint about a text that is no TOML, with the line that it names."""
    what, _, where = complaint.rpartition(" (at ")
    found = re.match(r"line (\d+), column (\d+)\)", where)
    line = int(found[1]) if found else text.count("\n") + 1
    shown_line = shown(text.split("\n")[line - 1].strip())
    column = f" at column {found[2]}" if found else ""
    return BadScenario(
        f"is not TOML{column}: {what or complaint}, in {shown_line}; right is key = value or [table]",
        place=place(path, line),
    )
