"""Files as bytes, text, rows of CSV and JSON; what is wrong with one becomes an error with file and line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from flowsieve.config.mistakes import Mistakes
from flowsieve.content.schema import listed, nearest_of, shown
from flowsieve.errors import BadScenario


class Row(NamedTuple):
    """A row of a CSV file, and the line on which it begins."""

    line: int
    fields: list[str]


def place(path: Path, line: int) -> str:
    return f"{path} line {line}"


def existing(path: Path) -> Path:
    """The path itself, if there is a file to read."""
    name = str(path) if path.name.isprintable() and len(path.name) < 256 else shown(path.name)
    try:
        if path.is_dir():
            raise BadScenario("is a directory; right is a file", place=name)
        if path.is_file() or path.is_fifo():
            return path
        if path.exists():
            raise BadScenario("is no regular file; right is one", place=name)
    except OSError as error:  # a name that no file can have, a folder that may not be looked into
        raise BadScenario(f"is no file that can be read: {error.strerror}", place=name) from None
    raise BadScenario(f"there is no such file{_nearest_file(path)}", place=name)


def is_file(path: Path) -> bool:
    try:
        existing(path)
    except BadScenario:
        return False
    return True


def read_bytes(path: Path) -> bytes:
    try:
        return existing(path).read_bytes()
    except OSError as error:
        raise BadScenario(f"cannot be read: {error.strerror or error}", place=str(path)) from None


def read_text(path: Path) -> str:
    return decode(read_bytes(path), path)


def decode(data: bytes, path: Path) -> str:
    """The text in a file: UTF-8, with or without a byte order mark."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte, line = data[error.start], data.count(b"\n", 0, error.start) + 1
        raise BadScenario(
            f"byte {byte:#04x} is not UTF-8; right is a text file saved as UTF-8", place=place(path, line)
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise BadScenario("has a NUL byte; right is a text file in UTF-8", place=place(path, line))
    return text


def read_json(path: Path, what: str) -> tuple[object, str]:
    """The value in a JSON file, and its text; `what` says what ought to be in it."""
    text = read_text(path)
    try:
        return json.loads(text), text
    except json.JSONDecodeError as error:
        raise BadScenario(
            f"is not JSON: {error.msg} (column {error.colno}); right is {what}",
            place=place(path, error.lineno),
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in lists
        raise BadScenario(
            f"is JSON nested too deeply, or with too long a number: {error}; right is {what}", place=str(path)
        ) from None


def csv_rows(text: str, path: Path) -> Iterator[Row]:
    """The rows of a CSV file that are not blank, the header among them."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield Row(line, fields)
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadScenario(_csv_fault(error), place=place(path, line)) from None


def csv_header(rows: Iterator[Row], path: Path, columns: Sequence[str]) -> list[str]:
    """The names in the header, among which are all that are needed."""
    header = next(rows, None)
    if header is None:
        raise BadScenario(f"is empty; right is a header with {', '.join(columns)}", place=str(path))
    check_columns(header.fields, columns, place(path, header.line))
    return header.fields


def check_columns(present: Sequence[str], needed: Sequence[str], where: str) -> None:
    for name in needed:
        if name not in present:
            hint = nearest_of(name, present) or f"; needed are {listed(needed)}"
            raise BadScenario(f"there is no column {name!r} among {listed(present)}{hint}", place=where)
        if present.count(name) > 1:
            raise BadScenario(f"column {name!r} stands twice; right is once", place=where)


def csv_table(path: Path, columns: Sequence[str], mistakes: Mistakes) -> Iterator[Row]:
    """The named columns of a CSV file, row by row; rows of another width are kept as mistakes."""
    with mistakes.kept():
        rows = csv_rows(read_text(path), path)
        header = csv_header(rows, path, columns)
        at = [header.index(name) for name in columns]
        for line, fields in rows:
            if len(fields) != len(header):
                mistakes.add(wrong_width(fields, header), place(path, line))
                if mistakes.full:
                    return
                continue
            yield Row(line, [fields[i] for i in at])


def wrong_width(fields: Sequence[str], header: Sequence[str]) -> str:
    names = listed(header)
    if len(fields) > len(header):
        first = shown(fields[len(header)])
        right = f"right are {len(header)} ({names}), with quotes around one that has a comma"
        return f"has {len(fields)} fields, from {first} on too many; {right}"
    right = f"right are {names}, even if empty"
    return f"has {len(fields)} of {len(header)} fields, the last of them {shown(fields[-1])}; {right}"


def _csv_fault(error: csv.Error) -> str:
    """What Python's reader of CSV complains of, in words that help."""
    text = str(error)
    if "field limit" in text:
        limit = f"{csv.field_size_limit():,} characters"
        return f"has a field of more than {limit}; right are fewer (is a closing quote missing?)"
    if "unexpected end" in text:
        return "has a quote that is never closed; right is a second one, and a doubled one for a quote inside"
    if "expected after" in text:
        return "goes on after a closing quote; right is a comma there, and a doubled one for a quote inside"
    return f"is not CSV: {text}"


def _nearest_file(path: Path) -> str:
    """A hint at what may have been meant: the nearest name in the folder, or what else is there."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())[:1000]
    except (OSError, ValueError):
        return f"; there is no folder {shown(str(path.parent))} either"
    return nearest_of(path.name, names) or f"; the folder has {listed(names) or 'no files'}"


def make_folder(folder: Path) -> None:
    """Make a folder to write into, unless it is there."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make a file or folder that cannot be written an error in the input: a person chose the place."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise BadScenario(
            f"cannot be written: {why}; right is a folder that can be", place=str(path)
        ) from None
