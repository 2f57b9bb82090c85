"""What a snapshot keeps beside the interests, so that it need not be worked out again: covers, and how tables were cut.

Covers follow from the filters, and are kept to save time: `covers_name` says what they depend on, and where that has
changed they are not taken. How tables were cut depends on all that came before (`flow.capacity`), so it is kept to be
the same again; under other capacities or ports it means nothing, which `fit_name` tells. Arrays stand as base64.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.control.state import ControlState
from flowsieve.flow.capacity.fitted import Coarse, Fit
from flowsieve.flow.capacity.weights import Weights, events_of
from flowsieve.flow.diff import Change, Ports
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import EMPTY, DzSet
from flowsieve.index.plan import plan_to_json

COVERS = 1  # counted up where parser or index come to give a filter other boxes or another cover
CUTS = 1  # the same for the cut of tables

_LOW = (1 << 64) - 1


def covers_name(state: ControlState) -> str:
    """A name for all that the cover of a filter depends on."""
    settings = state.settings
    on_the_way = [] if state.crossing is None else [state.crossing.name]
    return _name(COVERS, plan_to_json(state.plan), settings.cover_rule.name, _sample_name(state), *on_the_way)


def fit_name(state: ControlState) -> str:
    """A name for all that a cut of tables depends on, beside interests and what came before."""
    topology = state.topology
    ports = {switch: list(topology.neighbours(switch)) for switch in topology.switches}
    room = {switch: state.capacity(switch) for switch in topology.switches}
    return _name(CUTS, covers_name(state), state.settings.tables.value, ports, room)


def covers_to_json(name: str, covers: Sequence[DzSet]) -> dict[str, Any]:
    """Covers, one after the other, under the name of what they depend on."""
    hi, lo, length = (
        np.concatenate([getattr(dz, part) for dz in (EMPTY, *covers)]) for part in ("hi", "lo", "length")
    )
    return {"name": name, "sizes": _packed([len(dz) for dz in covers], "<u4"), **_cells(hi, lo, length)}


def covers_from_json(data: Mapping[str, Any] | None, name: str) -> list[DzSet] | None:
    """The covers that `covers_to_json` wrote down; None if they depended on something else."""
    if data is None or data["name"] != name:
        return None
    return DzSet.cut(*_cells_from(data), _unpacked(data["sizes"], "<u4").tolist())


def fit_to_json(name: str, fit: Fit) -> dict[str, Any]:
    """How tables were made to fit, under the name of what that depends on."""
    weights = fit.weights
    return {
        "name": name,
        "interests": weights.interests,
        "mass": _packed(weights.mass, "<f8"),
        "weighed": _cells(*weights.cells.T),
        "coarse": {switch: _coarse_to_json(coarse) for switch, coarse in fit.coarse.items()},
        "withheld": {
            switch: [[str(dz), old, new] for dz, old, new in changes]
            for switch, changes in fit.withheld.items()
        },
        "loose": sorted(fit.loose),
    }


def fit_from_json(data: Mapping[str, Any] | None, name: str, state: ControlState) -> Fit | None:
    """The fit that `fit_to_json` wrote down; None if it was for something else."""
    if data is None or data["name"] != name:
        return None
    cells = np.column_stack([column.astype(np.uint64) for column in _cells_from(data["weighed"])])
    weights = Weights(
        np.ascontiguousarray(cells),
        _unpacked(data["mass"], "<f8"),
        state.sampled if state.sampled is not None else events_of(None),
        data["interests"],
    )
    return Fit(
        weights,
        {switch: _coarse_from_json(coarse) for switch, coarse in data["coarse"].items()},
        {switch: [_change(*row) for row in rows] for switch, rows in data["withheld"].items()},
        frozenset(data["loose"]),
    )


def _coarse_to_json(coarse: Coarse) -> dict[str, Any]:
    """A table's entries, each with the number of its ports among those that occur."""
    known: dict[Ports, int] = {}
    labels = [known.setdefault(ports, len(known)) for ports in coarse.table.values()]
    aligned = [dz.aligned for dz in coarse.table]
    lengths = [dz.length for dz in coarse.table]
    cells = _cells([each >> 64 for each in aligned], [each & _LOW for each in aligned], lengths)
    told = {"ports": list(known), "labels": _packed(labels, "<u4")}
    return {"price": coarse.price, "waste": coarse.waste, **told, **cells}


def _coarse_from_json(data: Mapping[str, Any]) -> Coarse:
    ports = [tuple(each) for each in data["ports"]]
    rows = zip(*(column.tolist() for column in _cells_from(data)), strict=True)
    dz = [Dz((hi << 64 | lo) >> (128 - length), length) for hi, lo, length in rows]
    labels = _unpacked(data["labels"], "<u4").tolist()
    table = {each: ports[label] for each, label in zip(dz, labels, strict=True)}
    return Coarse(table, data["price"], data["waste"])


def _change(dz: str, old: Sequence[int] | None, new: Sequence[int] | None) -> Change:
    return Change(Dz.parse(dz), None if old is None else tuple(old), None if new is None else tuple(new))


def _cells(hi: Iterable[Any], lo: Iterable[Any], length: Iterable[Any]) -> dict[str, str]:
    return {"hi": _packed(hi, "<u8"), "lo": _packed(lo, "<u8"), "length": _packed(length, "u1")}


def _cells_from(data: Mapping[str, Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    hi, lo = (_unpacked(data[key], "<u8") for key in ("hi", "lo"))
    return hi, lo, _unpacked(data["length"], "u1").astype(np.int64)


def _packed(values: Iterable[Any], kind: str) -> str:
    return b64encode(np.asarray(values).astype(kind).tobytes()).decode()


def _unpacked(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(b64decode(text), kind).copy()  # kernels are compiled for arrays that can be written


def _sample_name(state: ControlState) -> str | None:
    sample = state.settings.sample
    if sample is None:
        return None
    arrays = (sample.hi, sample.lo, sample.places)
    return blake2b(b"".join(array.tobytes() for array in arrays), digest_size=16).hexdigest()


def _name(*parts: object) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
