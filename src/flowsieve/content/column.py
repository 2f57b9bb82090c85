"""One attribute of many events: from a table's column, of text or of native values, to points on its line.

A number out of range is kept, a missing cell and an unknown word become NaN: `EventBatch.faults` rejects such
events. What cannot be read at all, such as `abc` for a number, is bad input and raises.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api import types
from pyarrow import compute

from flowsieve.content.schema import LARGEST_INT, Attribute, shown
from flowsieve.errors import BadCell, BadValue

Floats = NDArray[np.float64]
Objects = NDArray[np.object_]

BOOL_WORDS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
NO_INT = LARGEST_INT + 2.0  # the first float beyond all ints of any attribute


def numbers(attribute: Attribute, series: Any) -> Floats:
    """The numbers of an int or float attribute; NaN where the cell is empty."""
    dtype = series.dtype
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        out: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if types.is_integer_dtype(dtype) and np.any(np.abs(out) == LARGEST_INT):
            out = _exact_ends(series.to_numpy(dtype=object), out)
        return out
    if not (
        types.is_object_dtype(dtype) or types.is_string_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype)
    ):
        raise BadValue(f"column {attribute.name} holds {dtype}; {attribute.name} is {attribute.range_text}")
    cells: Objects = series.to_numpy(dtype=object)
    out = _parsed(attribute, cells)
    return _exact_ends(cells, out) if attribute.kind == "int" else out


def places(attribute: Attribute, series: Any) -> tuple[Floats, Objects | None]:
    """The places of an enum's or bool's words, NaN where there is none; and the cells, if one is unknown."""
    try:
        codes, words = pd.factorize(series)
    except TypeError:
        raise BadValue(
            f"column {attribute.name} holds lists or the like; it is {attribute.range_text}"
        ) from None
    if attribute.kind == "bool":
        known = [BOOL_WORDS.get(str(word).lower(), math.nan) for word in words]
    else:
        known = [attribute.places.get(str(word), math.nan) for word in words]
    table = np.array([*known, math.nan], dtype=np.float64)  # the last one: -1, an empty cell
    return table[codes], series.to_numpy(dtype=object) if np.isnan(table[:-1]).any() else None


def strings(series: Any) -> Objects:
    """The strings of a column, None where the cell is empty."""
    cells: Objects = series.to_numpy(dtype=object).copy()
    missing = np.asarray(pd.isna(cells))
    if types.infer_dtype(cells[~missing]) not in ("string", "empty"):
        cells[~missing] = [str(cell) for cell in cells[~missing]]
    cells[missing] = None
    return cells


def _parsed(attribute: Attribute, cells: Objects) -> Floats:
    """The cells as numbers, each rounded once and correctly; all at once if they are all text."""
    try:
        texts = compute.utf8_trim_whitespace(pa.array(cells, type=pa.string(), from_pandas=True))
        filled = compute.if_else(compute.equal(texts, ""), None, texts)
        out: Floats = filled.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        return out
    except (TypeError, ValueError):  # not all text, or not all numbers
        missing = pd.isna(cells)
        numbers = [
            math.nan if missing[row] else _number(attribute, row, cell) for row, cell in enumerate(cells)
        ]
        return np.array(numbers, dtype=np.float64)


def _number(attribute: Attribute, row: int, cell: Any) -> float:
    """One cell as a number."""
    if isinstance(cell, str) and not cell.strip():
        return math.nan
    try:
        if isinstance(cell, str) and "_" in cell:  # Python reads 1_000; tables do not
            raise ValueError
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError):
        message = (
            f"{attribute.name} = {shown(cell)} is not a number; {attribute.name} is {attribute.range_text}"
        )
        raise BadCell(message, row=row, column=attribute.name) from None


def _exact_ends(cells: Objects, out: Floats) -> Floats:
    """The same numbers, with integers that were rounded to ±2^53 from beyond it moved out of every range."""
    for row in np.flatnonzero(np.abs(out) == LARGEST_INT):
        cell = cells[row].decode() if isinstance(cells[row], bytes) else str(cells[row])
        if abs(Decimal(cell.strip())) > LARGEST_INT:
            out[row] = math.copysign(NO_INT, out[row])
    return out
