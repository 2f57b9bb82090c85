"""A schema in a file of its own: TOML with a `[schema]`, as in a scenario."""

from __future__ import annotations

import json
from pathlib import Path

from flowsieve.config.mistakes import Mistakes
from flowsieve.config.toml import Section
from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadInput


def read_schema(path: str | Path) -> Schema:
    """The schema in a file; all else that may be in it, a whole scenario for instance, is passed over."""
    mistakes = Mistakes()
    section = Section.read(Path(path), mistakes).section("schema")
    if not section.table:
        mistakes.add('there is no [schema] such as price = { type = "int", min = 0, max = 9 }', str(path))
    attributes = []
    for name, table in section.table.items():
        with section.kept(name):
            attributes.append(Attribute.parse(name, table))
    mistakes.check()
    return Schema(tuple(attributes))


def write_schema(path: str | Path, schema: Schema, comment: str = "") -> None:
    """Write a file that `read_schema` reads."""
    lines = [f"# {line}" for line in comment.splitlines()] + ["[schema]"]
    for attribute in schema:
        fields = ", ".join(f"{key} = {_toml(value)}" for key, value in attribute.to_json().items())
        lines.append(
            f"{attribute.name if attribute.name.isascii() else _toml(attribute.name)} = {{ {fields} }}"
        )
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("\n".join(lines) + "\n")
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", place=str(path)) from None


def _toml(value: object) -> str:
    """A value in TOML, which writes numbers, texts and lists as JSON does, but for two characters."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
