"""Frames into files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("parquet", "csv")


def check_format(format: str) -> None:
    if format not in FORMATS:
        raise BadInput(f"there is no format {format!r} to write; right is {' or '.join(FORMATS)}")


def check_free(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """Reject a folder in which something of these names is there already, unless it may be overwritten."""
    there = [name for name in names if (folder / name).exists()]
    if there and not overwrite:
        raise BadInput(f"has {', '.join(there)} already; --overwrite replaces them", place=str(folder))


def write_frame(frame: DataFrame, path: Path) -> None:
    """Write a frame as a folder of files whose format the path's ending tells, in place of what was there."""
    writer = frame.write.mode("overwrite")
    where = str(path.absolute())
    if path.suffix == ".parquet":
        writer.parquet(where)
    else:
        writer.option("header", True).option("escape", '"').csv(where)
