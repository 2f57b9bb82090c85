"""What a dispatcher asks of configurators, and what they answer: values, and the bytes that carry them.

A configurator decides on the tables of the partitions that it owns. Each order is answered by one answer, in turn. A
message is a JSON value, followed by arrays: dz and table rows are many.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsieve.control.partitions.table_rows import Rows
from flowsieve.errors import BadInput
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.network.topology_json import topology_from_json, topology_to_json
from flowsieve.network.tree import SpanningTree, TreeMap

Key = tuple[Side, str]  # of an interest

LARGEST_MESSAGE = 1 << 30
_SIZE = 4  # bytes that tell the length of what follows


@dataclass(frozen=True, slots=True)
class RequestPart:
    """What of a request lies in one partition: an interest comes, or goes."""

    adding: bool
    side: Side
    id: str
    endpoint: str
    partition: Dz
    dz: DzSet

    @property
    def key(self) -> Key:
        return self.side, self.id


@dataclass(frozen=True, slots=True)
class Begin:
    """Forget everything, and decide for this network from now on."""

    topology: Topology
    trees: TreeMap
    tables: Tables = Tables.OVERLAY
    room: Mapping[str, int] | None = None  # entries that there are for it at each switch; None: any number
    events: Rows | None = None  # where events are expected to fall, by a sample


@dataclass(frozen=True, slots=True)
class Own:
    """Partitions are yours, each under its number; these interests are in force there, and there is so much room."""

    numbers: Mapping[Dz, int]
    parts: Sequence[RequestPart]
    room: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Disown:
    """A partition is another's from now on, and so is the room that it takes: say how much that is."""

    partition: Dz


@dataclass(frozen=True, slots=True)
class Take:
    """Serve these as one slice; the numbers are those under which their partitions are yours."""

    numbers: Mapping[Dz, int]
    parts: Sequence[RequestPart]


@dataclass(frozen=True, slots=True)
class Rewire:
    """The trees of the same partitions are these."""

    trees: TreeMap


@dataclass(frozen=True, slots=True)
class Bound:
    """At these switches there is room for so many entries of yours, or for any number."""

    room: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Ping:
    """Say that you are there."""


Order = Begin | Own | Disown | Take | Rewire | Bound | Ping


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What an order comes to: rows of changes (`table_kernel`, with the switch's number in the place of the trie).

    `refused` are the parts that there is no room for, by their place in the order, and why. `needs` are how many
    entries each switch would need for all that is asked of it, where room is bounded, and `waste` the unwanted copies
    per event to expect of tables that have less, `given` the room that goes with a partition that was given up.
    `visits` counts the work that it took.
    """

    rows: Rows
    refused: Mapping[int, str] = field(default_factory=dict)
    needs: Mapping[str, int] = field(default_factory=dict)
    waste: Mapping[str, float] = field(default_factory=dict)
    visits: int = 0
    given: Mapping[str, int] = field(default_factory=dict)


# Bytes.


def order_to_bytes(serial: int, order: Order) -> bytes:
    """An order as a message; `serial` is its number among all that one configurator gets."""
    head, arrays = _order_head(order)
    return _message({"serial": serial, **head}, arrays)


def _order_head(order: Order) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    match order:
        case Begin(topology, trees, tables, room, events):
            head = {"topology": topology_to_json(topology), "trees": trees_to_json(trees)}
            some = [] if events is None else [events]
            return {"order": "begin", **head, "tables": tables.value, "room": room}, some
        case Own(numbers, parts, room):
            rows, arrays = _parts_to_json(parts)
            told = {str(dz): number for dz, number in numbers.items()}
            return {"order": "own", "numbers": told, "parts": rows, "room": dict(room)}, arrays
        case Disown(partition):
            return {"order": "disown", "partition": str(partition)}, []
        case Take(numbers, parts):
            rows, arrays = _parts_to_json(parts)
            told = {str(dz): number for dz, number in numbers.items()}
            return {"order": "take", "numbers": told, "parts": rows}, arrays
        case Rewire(trees):
            return {"order": "rewire", "trees": trees_to_json(trees)}, []
        case Bound(room):
            return {"order": "bound", "room": dict(room)}, []
        case Ping():
            return {"order": "ping"}, []


def order_from_bytes(data: bytes) -> tuple[int, Order]:
    """The order that a message carries, and its serial number."""
    head, arrays = _parsed(data)
    try:
        return int(head["serial"]), _order(head, arrays)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadInput(f"a message is no order to a configurator: {error!r}") from None


def _order(head: dict[str, Any], arrays: list[NDArray[Any]]) -> Order:
    match head["order"]:
        case "begin":
            topology, trees = topology_from_json(head["topology"]), trees_from_json(head["trees"])
            return Begin(topology, trees, Tables(head["tables"]), head["room"], arrays[0] if arrays else None)
        case "own":
            numbers = {Dz.parse(text): number for text, number in head["numbers"].items()}
            return Own(numbers, _parts_from_json(head["parts"], arrays), head["room"])
        case "disown":
            return Disown(Dz.parse(head["partition"]))
        case "take":
            numbers = {Dz.parse(text): number for text, number in head["numbers"].items()}
            return Take(numbers, _parts_from_json(head["parts"], arrays))
        case "rewire":
            return Rewire(trees_from_json(head["trees"]))
        case "bound":
            return Bound(head["room"])
        case "ping":
            return Ping()
        case other:
            raise ValueError(f"there is no order {other!r}")


def answer_to_bytes(serial: int, answer: Answer) -> bytes:
    """The answer to the order of that number, as a message."""
    head = {
        "serial": serial,
        "refused": list(answer.refused.items()),
        "needs": dict(answer.needs),
        "waste": dict(answer.waste),
        "visits": answer.visits,
        "given": dict(answer.given),
    }
    return _message(head, [answer.rows])


def answer_from_bytes(data: bytes) -> tuple[int, Answer]:
    """The answer that a message carries, and the number of the order that it is to."""
    head, arrays = _parsed(data)
    try:
        (rows,) = arrays
        refused = {int(at): str(why) for at, why in head["refused"]}
        answer = Answer(rows, refused, head["needs"], head["waste"], int(head["visits"]), head["given"])
        return int(head["serial"]), answer
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadInput(f"a message is no answer of a configurator: {error!r}") from None


def trees_to_json(trees: TreeMap) -> list[Any]:
    """Each tree once, and which partition has which."""
    known = {tree: number for number, tree in enumerate(trees.trees)}
    shapes = [[tree.root, dict(tree.parent), list(tree.others)] for tree in known]
    return [shapes, [[str(dz), known[tree]] for dz, tree in trees]]


def trees_from_json(data: Sequence[Any]) -> TreeMap:
    shapes, parts = data
    made = [SpanningTree(root, parent, tuple(others)) for root, parent, others in shapes]
    return TreeMap(tuple((Dz.parse(text), made[number]) for text, number in parts))


def _parts_to_json(parts: Sequence[RequestPart]) -> tuple[list[list[Any]], list[NDArray[Any]]]:
    rows = [
        [part.adding, part.side.value, part.id, part.endpoint, str(part.partition), len(part.dz)]
        for part in parts
    ]
    if not parts:
        return rows, []
    sets = [part.dz for part in parts]
    return rows, [np.concatenate([getattr(dz, name) for dz in sets]) for name in ("hi", "lo", "length")]


def _parts_from_json(rows: Sequence[Sequence[Any]], arrays: list[NDArray[Any]]) -> list[RequestPart]:
    if not rows:
        return []
    hi, lo, length = arrays
    sets = DzSet.cut(hi, lo, length, [row[5] for row in rows])
    partitions: dict[str, Dz] = {}
    made = []
    for (adding, side, id, endpoint, partition, _), dz in zip(rows, sets, strict=True):
        if partition not in partitions:
            partitions[partition] = Dz.parse(partition)
        made.append(RequestPart(adding, Side(side), id, endpoint, partitions[partition], dz))
    return made


def _message(head: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """A JSON value and arrays, behind the length of all of it."""
    told = [[array.dtype.str, list(array.shape)] for array in arrays]
    text = json.dumps([head, told], separators=(",", ":")).encode()
    body = b"".join([len(text).to_bytes(_SIZE, "big"), text, *(array.tobytes() for array in arrays)])
    return len(body).to_bytes(_SIZE, "big") + body


def _parsed(body: bytes) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    try:
        at = _SIZE + int.from_bytes(body[:_SIZE], "big")
        head, told = json.loads(body[_SIZE:at])
        arrays = []
        for kind, shape in told:
            count = int(np.prod(shape))
            arrays.append(np.frombuffer(body, np.dtype(kind), count, at).reshape(shape))
            at += arrays[-1].nbytes
        if not isinstance(head, dict) or at != len(body):
            raise ValueError("its length is wrong")
        return head, arrays
    except (ValueError, TypeError, RecursionError, OverflowError, SyntaxError) as error:
        raise BadInput(f"a message between dispatcher and configurator cannot be read: {error}") from None
