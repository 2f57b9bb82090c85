"""A live network as it is proved and explained: what its switches hold, and all that packets depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import permutations

from flowsieve.control.core import Core
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.transition.crossing import Crossing, CrossingPhase, trees_of
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.detours import Protection, bridged
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Gate
from flowsieve.flow.joint_view import JointView
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.mixed_view import MixedView
from flowsieve.flow.others import Others
from flowsieve.flow.proof.proving import AnyView
from flowsieve.flow.view import NetworkView
from flowsieve.index.sides import NEW, OLD
from flowsieve.network.mend import Edge, tree_edges


@dataclass(frozen=True, slots=True)
class Installed:
    """What was found in switches: their tables, what others have made of them, detours, and links that are closed."""

    tables: Mapping[str, tuple[Flow, ...]]
    others: Mapping[str, Others]
    around: Mapping[str, Protection]
    closed: Collection[Edge]


def view_of(core: Core, fleet: Fleet, found: Installed, before: BloomView | None) -> AnyView:
    """The network with what was found; `before` is what publishers went by when that was looked at, where they do."""
    state = core.state
    if state.bloom is not None and before is not None:
        offers, wants = state.advertisements.values(), state.subscriptions.values()
        view = state.bloom.view(found.tables, offers, wants)
        return view.around(fleet.deliveries, _carrying(core, found), before)
    if state.crossing is not None:
        return _joint_view(core, fleet, found, state.crossing)
    if not state.labelled:
        return _dz_view(core, fleet, found)
    labels = _label_view(core, fleet, found)
    if state.label_group is None:
        return labels
    return MixedView.of(_dz_view(core, fleet, found), labels, state.label_group.hosts)


def _dz_view(core: Core, fleet: Fleet, found: Installed) -> NetworkView:
    view = core.state.view(core.encoding, found.tables)
    return replace(view, others=found.others, deliveries=fleet.deliveries, protections=found.around)


def _joint_view(core: Core, fleet: Fleet, found: Installed, crossing: Crossing) -> JointView:
    """What publishers may use now: the old index until its tables go, the new one since its own are there."""
    both, state = _dz_view(core, fleet, found), core.state
    sides = {
        side: replace(both, plan=index.plan, encoding=index.encoding, trees=trees_of(side, state.trees))
        for side, index in ((OLD, crossing.old), (NEW, crossing.new))
        if not (side == NEW and crossing.phase.revocable)
        and not (side == OLD and crossing.phase is CrossingPhase.CLEAR)
    }
    served = OLD if crossing.phase.revocable else NEW
    return JointView.of(sides, served, both.advertisements, both.subscriptions)


def _label_view(core: Core, fleet: Fleet, found: Installed) -> LabelView:
    others = _carrying(core, found)
    view = replace(core.state.label_view(found.tables), others=others, deliveries=fleet.deliveries)
    return view if view.policy.open else _with_gates(core, fleet, view)


def _with_gates(core: Core, fleet: Fleet, view: LabelView) -> LabelView:
    """A view with the ports that hold publishers to the policy; those that are silenced send nothing at all."""
    gates, policy = dict[str, Gate](), view.policy
    for switch, guard in fleet.guards.items():
        for gate in guard.gates if switch in fleet.reachable else ():
            host = view.topology.neighbour(switch, gate.port)
            if host not in core.silenced:
                gates[host] = gate
    return replace(view, gates=gates, policy=policy if core.formerly is None else policy | core.formerly)


def _carrying(core: Core, found: Installed) -> dict[str, Others]:
    """What others have made of switches, but for ports to dead links that detours lead around: packets leave by them as
    if these were up."""
    state, ports = core.state, dict[str, set[int]]()
    dead = (tree_edges(state.trees) & state.down) - frozenset(found.closed)
    for edge in bridged(state.topology, found.around, dead, state.down | frozenset(found.closed)):
        for near, far in permutations(edge):
            ports.setdefault(near, set()).add(state.topology.port(near, far))
    return {
        switch: Others(
            each.entries,
            {port: how for port, how in each.ports.items() if port not in ports.get(switch, ())},
        )
        for switch, each in found.others.items()
    }
