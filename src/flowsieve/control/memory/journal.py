"""All that control state follows from, in order: what hosts asked, what was taken back, how the network changed.

Requests are written down before they are worked on. Replayed from the start, or on top of a snapshot, the entries
give the state again: see `recovery`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadInput, BadJournal
from flowsieve.flow.send_policy import SendPolicy
from flowsieve.index.dz import Dz
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.topology_json import topology_from_json, topology_to_json
from flowsieve.network.tree import SpanningTree, TreeMap


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a request: a client's session, and the request's number in it; sent again, it is the same request.

    `at` is the time of day, in seconds, when it came.
    """

    session: str
    number: int
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request is about to be worked on."""

    request: Request
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """A request was refused, or could not be acknowledged and was taken back; `kind` and `why` as its client heard."""

    request: Request
    origin: Origin | None
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Rewired:
    """The trees are to do without the links that are down.

    `fenced` are the links that carry nothing, up or down: what is fenced is written down before something builds on it,
    and that it is to be opened before it is. None, as in journals of old, for those that are down.
    """

    down: frozenset[Edge]
    fenced: frozenset[Edge] | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """A switch was found to have room for so many entries; None: that is over, it may have room for all."""

    switch: str
    capacity: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """The network is this one: what discovery found, and all that was known before."""

    topology: Topology


@dataclass(frozen=True, slots=True)
class Promised:
    """No client is told that what it asked for outlives it by more than so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Keyed:
    """The keys for events are those of a stage, since this time of day."""

    stage: int
    at: float


@dataclass(frozen=True, slots=True)
class Placed:
    """Hosts begin in sets that somebody has chosen, where packets name their receivers; it comes before all else."""

    places: HostPlaces


@dataclass(frozen=True, slots=True)
class Allowed:
    """No publisher addresses others than a policy lets it, or has to learn that it may not."""

    policy: SendPolicy


@dataclass(frozen=True, slots=True)
class Homed:
    """A host is about to move; its token is that of the port where it was, by the switch's own number."""

    host: str
    switch: str
    number: int


@dataclass(frozen=True, slots=True)
class Divided:
    """The space is divided into these partitions; each is on the tree that what it was made of was on."""

    partitions: tuple[Dz, ...]


@dataclass(frozen=True, slots=True)
class CrossingBegun:
    """The network is about to go over to another index, in phases; `trees` are those of its dz, if others than now."""

    old: ServedIndex
    new: ServedIndex
    carry: bool = True
    trees: TreeMap | None = None


@dataclass(frozen=True, slots=True)
class CrossingEntered:
    """The next phase of that begins."""

    phase: CrossingPhase


@dataclass(frozen=True, slots=True)
class CrossingEnded:
    """It is at the new index, or else back at the old one."""

    arrived: bool


@dataclass(frozen=True, slots=True)
class IndexLeft:
    """No publisher uses an index any more that was retired; its tag is free."""

    version: int


Entry = (
    Asked
    | Undone
    | Rewired
    | Bounded
    | Found
    | Promised
    | Keyed
    | Placed
    | Allowed
    | Homed
    | Divided
    | CrossingBegun
    | CrossingEntered
    | CrossingEnded
    | IndexLeft
)
Snapshot = Mapping[str, Any]  # a JSON value; `recovery` writes and reads it


@dataclass(frozen=True, slots=True)
class Past:
    """What a journal holds: the last snapshot, if there is one, and all entries since."""

    snapshot: Snapshot | None = None
    entries: Sequence[Entry] = field(default=())


class Journal(Protocol):
    """Where entries are kept; a replicated log can take this place."""

    @property
    def number(self) -> int:
        """That of the last entry that was written; 0 if there was none."""
        ...

    @property
    def length(self) -> int:
        """How many entries it holds since the last snapshot."""
        ...

    async def load(self, schema: Schema) -> Past:
        """All that was written."""
        ...

    async def append(self, entries: Sequence[Entry]) -> int:
        """Write entries after all before; returns the number of the last when they are safe.

        Numbers grow. Raises JournalError where they cannot be written, and then none of them is kept.
        """
        ...

    async def keep(self, entries: Sequence[Entry]) -> None:
        """Keep entries that cannot be written now, in the place of those kept before, until something is written.

        Raises JournalError where there is no room for them either.
        """
        ...

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        """Keep a snapshot in the place of all entries up to that number."""
        ...


class NoJournal:
    """For a controller that may forget."""

    number = length = 0

    async def load(self, schema: Schema) -> Past:
        return Past()

    async def append(self, entries: Sequence[Entry]) -> int:
        return 0

    async def keep(self, entries: Sequence[Entry]) -> None:
        pass

    async def compact(self, snapshot: Snapshot, number: int) -> None:
        pass


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry as a JSON value."""
    match entry:
        case Asked(request, origin):
            return {"kind": "asked", **_request_to_json(request), "origin": _origin_to_json(origin)}
        case Undone(request, origin, kind, why):
            told = {"error": kind, "why": why, "origin": _origin_to_json(origin)}
            return {"kind": "undone", **_request_to_json(request), **told}
        case Rewired(down, fenced):
            known = {} if fenced is None else {"fenced": edges_to_json(fenced)}
            return {"kind": "rewired", "down": edges_to_json(down), **known}
        case Bounded(switch, capacity):
            return {"kind": "bounded", "switch": switch, "capacity": capacity}
        case Promised(seconds):
            return {"kind": "promised", "seconds": seconds}
        case Keyed(stage, at):
            return {"kind": "keyed", "stage": stage, "at": at}
        case Found(topology):
            return {"kind": "found", "network": topology_to_json(topology)}
        case Placed(places):
            return {"kind": "placed", "sets": places.to_json()}
        case Allowed(policy):
            return {"kind": "allowed", "policy": policy.to_json()}
        case Homed(host, switch, number):
            return {"kind": "homed", "host": host, "switch": switch, "number": number}
        case Divided(partitions):
            return {"kind": "divided", "partitions": list(map(str, partitions))}
        case CrossingBegun(old, new, carry, trees):
            along = None if trees is None else trees_to_json(trees)
            ends = {"old": old.to_json(), "new": new.to_json()}
            return {"kind": "crossing", **ends, "carry": carry, "trees": along}
        case CrossingEntered(phase):
            return {"kind": "phase", "phase": phase.value}
        case CrossingEnded(arrived):
            return {"kind": "crossed", "arrived": arrived}
        case IndexLeft(version):
            return {"kind": "left", "version": version}


def entry_from_json(data: Mapping[str, Any], schema: Schema) -> Entry:
    """The entry that `entry_to_json` wrote down."""
    try:
        match data["kind"]:
            case "asked":
                return Asked(_request_from_json(data, schema), _origin_from_json(data["origin"]))
            case "undone":
                request, origin = _request_from_json(data, schema), _origin_from_json(data["origin"])
                return Undone(request, origin, data["error"], data["why"])
            case "rewired":
                return Rewired(
                    edges_from_json(data["down"]),
                    edges_from_json(data["fenced"]) if "fenced" in data else None,
                )
            case "bounded":
                return Bounded(data["switch"], data["capacity"])
            case "promised":
                return Promised(float(data["seconds"]))
            case "keyed":
                return Keyed(int(data["stage"]), float(data["at"]))
            case "found":
                return Found(topology_from_json(data["network"]))
            case "placed":
                return Placed(HostPlaces.from_json(data["sets"]))
            case "allowed":
                return Allowed(SendPolicy.from_json(data["policy"]))
            case "homed":
                return Homed(data["host"], data["switch"], int(data["number"]))
            case "divided":
                return Divided(tuple(map(Dz.parse, data["partitions"])))
            case "crossing":
                old, new = (ServedIndex.from_json(data[which], schema) for which in ("old", "new"))
                trees = None if data["trees"] is None else trees_from_json(data["trees"])
                return CrossingBegun(old, new, bool(data["carry"]), trees)
            case "phase":
                return CrossingEntered(CrossingPhase(data["phase"]))
            case "crossed":
                return CrossingEnded(bool(data["arrived"]))
            case "left":
                return IndexLeft(int(data["version"]))
    except (KeyError, TypeError, ValueError, AttributeError, BadInput) as error:
        raise BadJournal(f"the journal has an entry that cannot be read: {error!r}") from None
    raise BadJournal(f"the journal has an entry of the kind {data['kind']!r}, of another version")


def edges_to_json(edges: Iterable[Edge]) -> list[list[str]]:
    """Links as a JSON value."""
    return sorted(sorted(edge) for edge in edges)


def edges_from_json(data: Iterable[Iterable[str]]) -> frozenset[Edge]:
    """The links that `edges_to_json` wrote down."""
    return frozenset(frozenset(edge) for edge in data)


def trees_to_json(trees: TreeMap) -> list[Any]:
    """Trees as a JSON value."""
    return [[str(dz), tree.root, dict(tree.parent), list(tree.others)] for dz, tree in trees]


def trees_from_json(data: Iterable[Sequence[Any]]) -> TreeMap:
    """The trees that `trees_to_json` wrote down."""
    return TreeMap(
        tuple((Dz.parse(dz), SpanningTree(root, parent, tuple(others))) for dz, root, parent, others in data)
    )


def _request_to_json(request: Request) -> dict[str, Any]:
    return {"op": request.op.value, "id": request.id, "host": request.endpoint, "filter": request.told}


def _request_from_json(data: Mapping[str, Any], schema: Schema) -> Request:
    read = partial(Filter.known, schema=schema)  # it was read before it was written
    return Request.read(Op(data["op"]), data["id"], data["host"], data["filter"], read)


def _origin_to_json(origin: Origin | None) -> list[object] | None:
    return [origin.session, origin.number, origin.at] if origin is not None else None


def _origin_from_json(data: Sequence[Any] | None) -> Origin | None:
    return Origin(*data) if data is not None else None
