"""Control state from what a journal holds, and the snapshots that keep a journal short."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import (
    Allowed,
    Asked,
    Bounded,
    CrossingBegun,
    CrossingEnded,
    CrossingEntered,
    Divided,
    Entry,
    Found,
    Homed,
    IndexLeft,
    Keyed,
    Past,
    Placed,
    Promised,
    Rewired,
    Snapshot,
    Undone,
    edges_from_json,
    edges_to_json,
    trees_from_json,
    trees_to_json,
)
from flowsieve.control.memory.snapshot_format import (
    covers_from_json,
    covers_name,
    covers_to_json,
    fit_from_json,
    fit_name,
    fit_to_json,
)
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.control.transition.crossing import Crossing
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.control.transition.states import arrived, begun, entered, given_up, without_interests
from flowsieve.errors import BadFilter, BadInput, BadJournal, Refused
from flowsieve.flow.send_policy import SendPolicy
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.topology import Topology
from flowsieve.network.topology_json import topology_from_json, topology_to_json
from flowsieve.network.tree import TreeMap

log = logging.getLogger(__name__)

_ADDS = {Side.PUBLISHER: Op.ADVERTISE, Side.SUBSCRIBER: Op.SUBSCRIBE}

MakeState = Callable[[TreeMap | None], ControlState]  # a fresh state, on the given trees


def snapshot(state: ControlState, ledger: Ledger) -> Snapshot:
    """All that the state and the ledger hold, as a JSON value."""
    found = {"found": topology_to_json(state.topology)} if state.found else {}
    fit = {"fit": fit_to_json(fit_name(state), state.fit)} if state.bounded else {}
    interests = [(side, each) for side in Side for each in state.interests(side).values()]
    return {
        **found,
        **fit,
        **({"sets": state.sets.to_json()} if state.labelled else {}),
        **(
            {}
            if state.bloom is None
            else {"leaving": [[host, str(each)] for host, each in state.bloom.leaving]}
        ),
        **({} if state.index is None else {"index": state.index.to_json()}),
        **({} if state.crossing is None else {"crossing": state.crossing.name}),
        "retired": [each.to_json() for each in state.retired],
        "before": None if state.before is None else state.before.to_json(),
        "trees": trees_to_json(state.trees),
        "down": edges_to_json(state.down),
        "fenced": edges_to_json(state.fenced),
        "bounds": dict(state.bounds),
        "interests": [[side.name, each.id, each.endpoint, each.told] for side, each in interests],
        "covers": covers_to_json(covers_name(state), [each.dz for _, each in interests]),
        "sessions": ledger.to_json(),
        "promised": ledger.promised,
        "keyed": [ledger.key_stage, ledger.keyed_at],
        "allowed": ledger.policy.to_json(),
        "homes": {host: list(place) for host, place in ledger.homes.items()},
    }


def last_found(past: Past) -> Topology | None:
    """The network as it was found last, if it was."""
    found = [entry.topology for entry in past.entries if isinstance(entry, Found)]
    if not found and past.snapshot is not None and "found" in past.snapshot:
        return topology_from_json(past.snapshot["found"])
    return found[-1] if found else None


def recover(past: Past, make: MakeState) -> tuple[ControlState, Ledger]:
    """The state that the entries lead to, and what came of the requests."""
    try:
        return _recovered(past, make)
    except BadFilter as error:  # what was written had been read
        raise BadJournal(f"the journal has a filter that cannot be read: {error}") from None


def _recovered(past: Past, make: MakeState) -> tuple[ControlState, Ledger]:
    state, ledger = _from_snapshot(past.snapshot, make)
    return advance(state, ledger, past.entries), ledger


def advance(state: ControlState, ledger: Ledger, entries: Iterable[Entry]) -> ControlState:
    """Take up entries that came after all that the state and the ledger have; the state that they lead to."""
    run: list[Asked] = []
    for entry in entries:
        if isinstance(entry, Asked) and not (state.bounded or state.bloom is not None):
            run.append(entry)
            continue
        if run:
            _replay_all(state, ledger, run)
            run.clear()
        state = replay(state, ledger, entry)
    if run:  # else nothing was asked for, and trees are made when the network is found, as they were then
        _replay_all(state, ledger, run)
    return state


def replay(state: ControlState, ledger: Ledger, entry: Entry) -> ControlState:
    """Take up one entry; a request that was refused then is refused now. Another index makes it another state."""
    match entry:
        case Asked(request, origin):
            try:
                if not state.step([request]).refused:
                    ledger.asked(request, origin)
            except BadFilter as error:
                _check_readable(request)
                log.warning(
                    "%s %s of %s is left out: %s",
                    request.op.value,
                    request.id,
                    request.endpoint,
                    error,
                )
            except BadInput:
                pass  # it was bad then, too
        case Undone(request, origin, kind, why):
            if ledger.brought(request, origin) and request.id in state.interests(request.op.side):
                state.step([Request(request.op.reverse, request.id, request.endpoint)])
            ledger.undone(request, origin, kind, why)
        case Rewired(down, fenced):
            state.rewire(down, fenced)
        case Bounded(switch, capacity):
            with suppress(Refused):
                state.bound(switch, capacity)
        case Found(topology):
            state.grow(topology)
        case Placed(places):
            state.begin_with_sets(places)
        case Promised(seconds):
            ledger.promise(seconds)
        case Keyed(stage, at):
            ledger.keyed(stage, at)
        case Allowed(policy):
            ledger.allow(policy)
        case Homed(host, switch, number):
            ledger.homed(host, (switch, number))
        case Divided(partitions):
            state.divide(partitions)
        case CrossingBegun(old, new, carry, trees):
            return begun(state, old, new, carry=carry, trees=trees)
        case CrossingEntered(phase):
            return entered(state, phase)
        case CrossingEnded(there):
            return arrived(state) if there else given_up(state)
        case IndexLeft(version):
            state.retired = tuple(each for each in state.retired if each.version != version)
    return state


def _replay_all(state: ControlState, ledger: Ledger, run: Sequence[Asked]) -> None:
    """Many requests as one slice, where none of them was bad; tables do not depend on the order of requests.

    Nothing is refused, since no table is bounded.
    """
    requests = [entry.request for entry in run]
    try:
        state.check(*requests)
        state.step(_lasting(requests))
    except BadInput:
        for entry in run:
            replay(state, ledger, entry)
        return
    for entry in run:
        ledger.asked(entry.request, entry.origin)


def _check_readable(request: Request) -> None:
    """Raise BadFilter if a request's filter means nothing any more; one that means too much to be covered passes."""
    if request.filter is not None:
        Filter.parse(request.filter.text, request.filter.schema)


def _lasting(requests: Sequence[Request]) -> list[Request]:
    """The requests without those that came and were ended again by one of them: most, where clients come and go."""
    came: dict[tuple[Side, str], int] = {}
    left: list[Request | None] = list(requests)
    for at, request in enumerate(requests):
        key = (request.op.side, request.id)
        if request.op.adding:
            came[key] = at
        elif key in came:
            left[at] = left[came.pop(key)] = None
    return [request for request in left if request is not None]


def _from_snapshot(data: Mapping[str, Any] | None, make: MakeState) -> tuple[ControlState, Ledger]:
    if data is None:
        return make(None), Ledger()
    try:
        trees = trees_from_json(data["trees"])
        if "index" in data:
            state = _at_index(data, trees, make(None))
        elif "found" in data:
            state = make(None)
            state.grow(topology_from_json(data["found"]), trees)
        else:
            state = make(trees)
        if state.labelled:
            state.recall_sets(HostPlaces.from_json(data["sets"]))
        covers = covers_from_json(data.get("covers"), covers_name(state))
        read = partial(Filter.parse if covers is None else Filter.known, schema=state.plan.schema)
        requests = {(each.op.side, each.id): each for each in _requests(data["interests"], read)}
        state.down = edges_from_json(data["down"])  # the trees are as they follow from it
        state.fenced = edges_from_json(data.get("fenced", data["down"]))
        for switch, capacity in data["bounds"].items():
            with suppress(Refused):  # there was no room then, either
                state.bound(switch, capacity)
        state.restore(list(requests.values()), covers, fit_from_json(data.get("fit"), fit_name(state), state))
        if state.bloom is not None:
            state.bloom.leave((host, read(text)) for host, text in data.get("leaving", ()))
        ledger = Ledger.from_json(data["sessions"], requests, read)
        ledger.promise(float(data.get("promised", 0.0)))
        if "keyed" in data:
            stage, at = data["keyed"]
            ledger.keyed(int(stage), float(at))
        ledger.allow(SendPolicy.from_json(data.get("allowed")))
        for host, (switch, number) in data.get("homes", {}).items():
            ledger.homed(host, (switch, number))
        return state, ledger
    except (KeyError, TypeError, ValueError, AttributeError, BadInput) as error:
        raise BadJournal(f"the journal's snapshot cannot be read: {error!r}") from None


def _at_index(data: Mapping[str, Any], trees: TreeMap, first: ControlState) -> ControlState:
    """A state without interests under the index that a snapshot has, where that is not the one it began with."""
    schema = first.plan.schema
    index = ServedIndex.from_json(data["index"], schema)
    crossing = Crossing.from_json(data["crossing"], schema) if "crossing" in data else None
    if "found" in data:
        first.grow(topology_from_json(data["found"]))
    state = without_interests(first, trees, index, crossing)
    state.retired = tuple(ServedIndex.from_json(each, schema) for each in data["retired"])
    if data["before"] is not None:
        state.before = ServedIndex.from_json(data["before"], schema)
    return state


def _requests(rows: Iterable[Sequence[Any]], read: Callable[[str], Filter]) -> Iterable[Request]:
    adds = {side.name: op for side, op in _ADDS.items()}
    for side, id, endpoint, told in rows:
        yield Request.read(adds[side], id, endpoint, told, read)
