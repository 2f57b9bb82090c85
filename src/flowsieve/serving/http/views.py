"""What people and their tools may look at while a controller runs, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from typing import Any

from flowsieve.content.filter import Filter
from flowsieve.content.schema import is_unicode
from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.errors import BadInput, nearest
from flowsieve.flow.diff import growth
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Refusals
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.proving import AnyView, explained
from flowsieve.network.mend import tree_edges
from flowsieve.network.topology import Topology
from flowsieve.scenario.plain import plain_explanation

MOST_TOLD = 20  # entries of others at one switch
QUOTED = {"sub": Op.SUBSCRIBE, "adv": Op.ADVERTISE}


def health(dispatcher: Dispatcher) -> dict[str, Any]:
    """Whether every switch holds what it should and nobody else is in the way of events, and if not, why."""
    troubles = {**dispatcher.hindrances, **dispatcher.troubles}
    if dispatcher.scribe.trouble is not None:
        troubles["journal"] = dispatcher.scribe.trouble
    if dispatcher.undecided is not None:
        troubles["control"] = dispatcher.undecided
    return {"ready": not troubles and dispatcher.mended, "mended": dispatcher.mended, "troubles": troubles}


def status(dispatcher: Dispatcher, floods: Mapping[SwitchPort, float]) -> dict[str, Any]:
    """The controller and its network in a few figures; `floods` are the ports that flood, with frames a second."""
    state = dispatcher.state
    sizes = [state.size(switch) for switch in state.topology.switches]
    return {
        **health(dispatcher),
        "switches": len(sizes),
        "connected": len(dispatcher.reachable),
        "hosts": len(state.topology.hosts),
        "links": len(state.topology.links),
        "down": sorted(sorted(edge) for edge in state.down),
        "suppressed": sorted(sorted(edge) for edge in dispatcher.suppressed),
        "fenced": sorted(sorted(edge) for edge in dispatcher.fences.closed),
        "failover": failover(dispatcher),
        **({} if state.labelled else {"index": index(dispatcher)}),
        **({} if dispatcher.publishers is None else {"publishers": publishers(dispatcher)}),
        "floods": [
            {"switch": place.switch, "port": place.port, "frames": round(rate)}
            for place, rate in sorted(floods.items())
        ],
        "subscriptions": len(state.subscriptions),
        "advertisements": len(state.advertisements),
        "flows": sum(sizes),
        "flows_max": max(sizes, default=0),
        "operations": dispatcher.operations,
        "others": {
            switch: [each.text for each in entries[:MOST_TOLD]]
            for switch in state.topology.switches
            if (entries := [each for each in dispatcher.foreign(switch) if not each.missing])
        },
    }


def index(dispatcher: Dispatcher) -> dict[str, Any]:
    """The index in force, the phase of the way to another one, and the hosts whose publishers have not gone over."""
    crossing, now = dispatcher.transition.crossing, dispatcher.index
    return {
        "version": now.version,
        "tag": str(now.tag.group),
        "phase": None if crossing is None else crossing.phase.value,
        "behind": sorted(dispatcher.transition.hosts_behind),
    }


def publishers(dispatcher: Dispatcher) -> dict[str, Any]:
    """The version of what publishers have to know, those that do not hold it, with the reason, and whom each may not
    address of those who want what it advertises.

    Where not all hosts label what they publish, it says who does; where hosts are in other sets than the operator has
    chosen, that they are; where labels are Bloom filters, how many changes of what is wanted are yet to be followed.
    """
    known, state = dispatcher.publishers, dispatcher.state
    assert known is not None, "publishers match events"
    hosts = filter(state.labels_events_of, state.topology.hosts)
    return {
        "version": known.version,
        "behind": known.behind,
        "forbidden": state.filters.all_forbidden(),
        **({"labelled": sorted(hosts)} if state.mixed else {}),
        **({} if known.other_sets is None else {"other_sets": known.other_sets}),
        **({} if state.bloom is None else {"under_way": dispatcher.steps_under_way}),
    }


def failover(dispatcher: Dispatcher) -> dict[str, Any]:
    """Which edges of trees have a way around them in the switches, what that takes, and which dead ones it bridges."""
    state, ways, held = dispatcher.state, dispatcher.detours, dispatcher.protections.values()
    edges = tree_edges(state.trees)
    return {
        "on": dispatcher.fails_over,
        "settled": dispatcher.protected,
        "protected": len(edges & ways.keys()),
        "unprotected": sorted(sorted(edge) for edge in edges - ways.keys()),
        "bridged": sorted(list(ways[edge]) for edge in state.down & edges & ways.keys()),
        "groups": sum(each.groups for each in held),
        "entries": sum(each.entries for each in held),
        "without": sorted(dispatcher.without_detours),
    }


def guard(dispatcher: Dispatcher, refused: Mapping[str, Refusals]) -> dict[str, Any]:
    """Whether hosts are held to what they have advertised, what that takes, and what was refused of whom."""
    guards = dispatcher.guards.values()
    return {
        "on": not all(each.open for each in guards),
        "entries": sum(each.entries for each in guards),
        "unguarded": sorted(dispatcher.unguarded),
        "outside": sum(each.outside for each in refused.values()),
        "over_rate": sum(each.over_rate for each in refused.values()),
        "hosts": {host: asdict(each) for host, each in sorted(refused.items()) if each != Refusals()},
    }


def topology(dispatcher: Dispatcher) -> dict[str, Any]:
    """Switches, links, hosts, port numbers, trees, and which links are down or fenced."""
    state = dispatcher.state
    sets = _sets_of_trees(state)
    return {
        "switches": list(state.topology.switches),
        "links": [[link.a, link.b] for link in state.topology.links],
        "hosts": dict(state.topology.hosts),
        "ports": {
            switch: {near: state.topology.number(switch, near) for near in state.topology.neighbours(switch)}
            for switch in state.topology.switches
        },
        "down": sorted(sorted(edge) for edge in state.down),
        "fenced": sorted(sorted(edge) for edge in dispatcher.fences.closed),
        "trees": [
            {
                "dz": str(dz),
                **({"sets": [*sets[at]]} if at < len(sets) else {}),
                "root": tree.root,
                "edges": [list(edge) for edge in tree.edges],
            }
            for at, (dz, tree) in enumerate(state.trees)
        ],
    }


def _sets_of_trees(state: ControlState) -> list[range]:
    """Which sets of receivers each of the first trees has, where packets name them."""
    if not state.labelled or state.bloom is not None:
        return []
    trees = state.set_trees
    return [trees.sets_of(at, len(state.sets.sets)) for at in range(len(trees))]


def interests(of: Mapping[str, Interest]) -> list[dict[str, Any]]:
    """Subscriptions or advertisements."""
    return [
        {"id": _writable(each.id), "host": each.endpoint, "filter": each.told, "dz": len(each.dz)}
        for each in of.values()
    ]


def explanation(view: AnyView, host: str, values: Mapping[str, object]) -> dict[str, Any]:
    """The path of an event through what the switches really hold."""
    check_host(view.topology, host)
    found: dict[str, Any] = _writable(plain_explanation(view.topology, explained(view, host, values)))
    return found


def quote(
    dispatcher: Dispatcher, host: str, text: str, op: str = "sub", supposing: ControlState | None = None
) -> dict[str, Any]:
    """What a subscription or an advertisement would cost in entries, the guard's too, without making it.

    What bridges dead links at the switches concerned is there already, and all share it. It is tried in the state of
    now, unless another is given for that.
    """
    state = supposing or dispatcher.state
    check_host(state.topology, host)
    wanted = Filter.parse(text, state.plan.schema)
    if op not in QUOTED:
        raise BadInput(f"there is no price for {op!r}; right is {' or '.join(QUOTED)}")
    there = state.interests(QUOTED[op].side)
    id = next(name for n in count() if (name := f"quote-{n}") not in there)
    request, home = Request(QUOTED[op], id, host, wanted), state.topology.attached[host]
    guarded, tables = dispatcher.guard_of(home, state).entries, state.tables
    with state.supposed(request) as outcome:
        more = dispatcher.guard_of(home, state).entries - guarded
        forbidden = forbidden_to(state, request)
        prices = {
            switch: _label_price(tables[switch], state.label_entries(switch))
            if state.labelled and not state.mixed
            else (growth(changes), len(changes))
            for switch, changes in outcome.changes.items()
        }
    return {
        "entries": {switch: grown for switch, (grown, _) in prices.items()},
        "guard": {home: more} if more else {},
        "failover": {
            switch: {"groups": held.groups, "entries": held.entries}
            for switch in outcome.changes
            if (held := dispatcher.protections.get(switch)) is not None and held.groups
        },
        "operations": {switch: operations for switch, (_, operations) in prices.items()},
        "told": sorted(outcome.told),
        "forbidden": forbidden,
        "fits": not outcome.refused,
        "reason": str(outcome.refused[0][1]) if outcome.refused else None,
    }


def forbidden_to(state: ControlState, request: Request) -> list[str]:
    """The hosts that want what is asked for, or have it, and that a policy keeps from talking to the host that asks."""
    there = state.interests(request.op.side).get(request.id)
    if not state.labelled or there is None:
        return []
    if request.op is Op.SUBSCRIBE:
        return state.filters.forbidden(there)
    return state.filters.all_forbidden().get(request.endpoint, [])


def _label_price(before: object, now: tuple[Flow, ...]) -> tuple[int, int]:
    """By how many entries a table of labels has grown, and how many operations that takes."""
    assert isinstance(before, tuple)
    return len(now) - len(before), len(set(before) ^ set(now))


def check_host(network: Topology, host: str) -> None:
    if host not in network.hosts:
        raise BadInput(f"there is no host {host!r}{nearest(host, network.hosts)}")


def _writable(value: Any) -> Any:
    """A JSON value whose texts UTF-8 can write: halves of surrogate pairs, as in ids of old journals, are escaped."""
    if isinstance(value, str):
        return value if is_unicode(value) else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {name: _writable(each) for name, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list) else value
