"""Control state from what a journal holds, and the snapshots that keep a journal short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.control.journal import Asked, Bounded, Entry, Past, Rewired, Snapshot, Undone
from flowsieve.control.ledger import Ledger
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.errors import BadInput, JournalError, Refused
from flowsieve.flow.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.network.tree import SpanningTree, TreeMap

_ADDS = {Side.PUBLISHER: Op.ADVERTISE, Side.SUBSCRIBER: Op.SUBSCRIBE}
_ENDS = {Op.ADVERTISE: Op.UNADVERTISE, Op.SUBSCRIBE: Op.UNSUBSCRIBE}

MakeState = Callable[[TreeMap | None], ControlState]  # a fresh state, on the given trees


def snapshot(state: ControlState, ledger: Ledger) -> Snapshot:
    """All that the state and the ledger hold, as a JSON value."""
    return {
        "trees": [[str(dz), tree.root, dict(tree.parent), list(tree.others)] for dz, tree in state.trees],
        "down": sorted(sorted(edge) for edge in state.down),
        "bounds": dict(state.bounds),
        "interests": [
            [side.name, each.id, each.host, each.filter.text]
            for side in Side
            for each in state.interests(side).values()
        ],
        "sessions": ledger.to_json(),
    }


def recover(past: Past, make: MakeState) -> tuple[ControlState, Ledger]:
    """The state that the entries lead to, and what came of the requests."""
    state, ledger = _from_snapshot(past.snapshot, make)
    run: list[Asked] = []
    for entry in past.entries:
        if isinstance(entry, Asked) and not state.bounded:
            run.append(entry)
            continue
        if run:
            _replay_all(state, ledger, run)
            run.clear()
        replay(state, ledger, entry)
    _replay_all(state, ledger, run)
    return state, ledger


def replay(state: ControlState, ledger: Ledger, entry: Entry) -> None:
    """Take up one entry; a request that was refused then is refused now."""
    match entry:
        case Asked(request, origin):
            with suppress(BadInput):  # it was bad then, too
                if not state.step([request]).refused:
                    ledger.asked(request, origin)
        case Undone(request, origin, kind, why):
            if ledger.brought(request, origin) and request.id in state.interests(request.op.side):
                state.step([Request(_ENDS[request.op], request.id, request.host)])
            ledger.undone(request, origin, kind, why)
        case Rewired(down):
            with suppress(Refused):  # as it was then
                state.rewire(down)
        case Bounded(switch, capacity):
            with suppress(Refused):
                state.bound(switch, capacity)


def _replay_all(state: ControlState, ledger: Ledger, run: Sequence[Asked]) -> None:
    """Many requests as one slice, where none of them was bad; tables do not depend on the order of requests."""
    try:
        refused = {id(request) for request, _ in state.step([entry.request for entry in run]).refused}
    except BadInput:
        for entry in run:
            replay(state, ledger, entry)
        return
    for entry in run:
        if id(entry.request) not in refused:
            ledger.asked(entry.request, entry.origin)


def _from_snapshot(data: Mapping[str, Any] | None, make: MakeState) -> tuple[ControlState, Ledger]:
    if data is None:
        return make(None), Ledger()
    try:
        trees = TreeMap(
            tuple(
                (Dz.parse(dz), SpanningTree(root, parent, tuple(others)))
                for dz, root, parent, others in data["trees"]
            )
        )
        state = make(trees)
        requests = {(request.op.side, request.id): request for request in _requests(data["interests"], state)}
        state.rewire(frozenset(frozenset(edge) for edge in data["down"]))
        for switch, capacity in data["bounds"].items():
            state.bound(switch, capacity)
        state.restore(list(requests.values()))
        return state, Ledger.from_json(data["sessions"], requests, state.plan.schema)
    except (KeyError, TypeError, ValueError, AttributeError, BadInput) as error:
        raise JournalError(f"the journal's snapshot cannot be read: {error!r}") from None


def _requests(rows: Iterable[Sequence[str]], state: ControlState) -> Iterable[Request]:
    schema = state.plan.schema
    for side, id, host, text in rows:
        yield Request(_ADDS[Side[side]], id, host, Filter.parse(text, schema))
