"""The state of a network in each phase of its way to another index: the same interests, other tables.

They are made anew, so that it can be done in a thread while requests are served; `rebuild.catch_up` adds what came
meanwhile. None of them changes the state that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.control.transition.crossing import Crossing, CrossingPhase, side_by_side, trees_of
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadInput, TableFull
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import WHOLE
from flowsieve.index.sides import NEW, OLD
from flowsieve.network.tree import TreeMap

_ADDS = {Side.PUBLISHER: Op.ADVERTISE, Side.SUBSCRIBER: Op.SUBSCRIBE}


def begun(
    state: ControlState,
    old: ServedIndex,
    new: ServedIndex,
    *,
    carry: bool = True,
    trees: TreeMap | None = None,
) -> ControlState:
    """On the way to a new index, in the first phase; `trees` are those that its dz go along, if others than now."""
    check_able(state)
    crossing = Crossing(old, new, CrossingPhase.CARRY if carry else CrossingPhase.INSTALL, carry)
    return _made(state, side_by_side(state.trees, trees or state.trees), crossing.served, crossing)


def entered(state: ControlState, phase: CrossingPhase) -> ControlState:
    """A phase further on the way; the same object where no table changes with it."""
    assert state.crossing is not None
    crossing = state.crossing.at(phase)
    if phase in (CrossingPhase.SWITCH, CrossingPhase.FENCE):
        state.crossing, state.index, state.plan = crossing, crossing.served, crossing.served.plan
        return state
    return _made(state, state.trees, crossing.served, crossing)


def arrived(state: ControlState) -> ControlState:
    """At the new index; the old one is retired."""
    assert state.crossing is not None
    made = _made(state, trees_of(NEW, state.trees), state.crossing.new, None)
    made.retired, made.before = (*state.retired, state.crossing.old), state.crossing.old
    return made


def given_up(state: ControlState) -> ControlState:
    """Back at the old index."""
    assert state.crossing is not None and state.crossing.phase.revocable
    return _made(state, trees_of(OLD, state.trees), state.crossing.old, None)


def decided_here(state: ControlState) -> ControlState:
    """The same where configurators decided on tables so far: they are the tables of one process."""
    if state.elsewhere is None:
        return state
    settings = replace(state.settings, elsewhere=False)
    alone = ControlState(state.topology, state.plan, state.trees, settings, state.owner, index=state.index)
    _carry_over(state, alone)
    alone.take_bounds(state.bounds)
    alone.restore(_all_requests(state))
    return alone


def check_able(state: ControlState) -> None:
    """Raise BadInput where a network cannot go over to another index."""
    if state.crossing is not None:
        raise BadInput(
            "the network is on its way to another index already; wait for it, or give that up first"
        )
    if state.labelled:
        raise BadInput("packets name their receivers here: there is no index to go over to another one from")
    if state.owner.part is not WHOLE and state.owner.part != WHOLE:
        raise BadInput(
            "another owner has a part of the space: only who has all of it can go over to another index"
        )


def check_room(before: ControlState, after: ControlState) -> None:
    """Raise TableFull where a table is bounded and not even the coarsest one fits into it."""
    for switch in after.topology.switches:
        bound = before.capacity(switch)
        if bound is not None and (after.capacity(switch) is None or after.size(switch) > bound):
            raise TableFull(switch=switch, needed=max(after.size(switch), bound + 1), capacity=bound)


def frozen(state: ControlState) -> ControlState:
    """A copy to make others of in a thread, while the state goes on; it can be asked for nothing."""
    copied = copy(state)
    copied.advertisements, copied.subscriptions = dict(state.advertisements), dict(state.subscriptions)
    copied.bounds = dict(state.bounds)
    return copied


def without_interests(
    state: ControlState, trees: TreeMap, index: ServedIndex, crossing: Crossing | None
) -> ControlState:
    """A state of the same network under another index, of which nothing was asked for yet."""
    settings = replace(state.settings, sample=state.settings.sample_under(index.plan))
    made = ControlState(
        state.topology, index.plan, trees, settings, state.owner, index=index, crossing=crossing
    )
    _carry_over(state, made)
    return made


def _made(state: ControlState, trees: TreeMap, index: ServedIndex, crossing: Crossing | None) -> ControlState:
    made = without_interests(state, trees, index, crossing)
    made.take_bounds(state.bounds)
    made.restore(_all_requests(state))
    return made


def _carry_over(state: ControlState, made: ControlState) -> None:
    """What is true of the network whatever its index."""
    made.found, made.down, made.fenced = state.found, state.down, state.fenced
    made.retired, made.before = state.retired, state.before


def _all_requests(state: ControlState) -> list[Request]:
    publishers, subscribers = state.advertisements, state.subscriptions
    return [*_requests(Side.PUBLISHER, publishers), *_requests(Side.SUBSCRIBER, subscribers)]


def _requests(side: Side, interests: Mapping[str, Interest]) -> list[Request]:
    """What asks for the same; dz of another space mean nothing here, so that without a filter it is all there is."""
    return [
        Request(_ADDS[side], each.id, each.endpoint, each.filter, None if each.filter else WHOLE)
        for each in list(interests.values())
    ]
