"""Why a host did or did not get an event that its publisher has labelled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from flowsieve.content.event import check_event
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_view import Label, TreeView
from flowsieve.flow.others import SentCopy
from flowsieve.flow.proof.explain import Explanation, Hop, Miss
from flowsieve.flow.proof.label_passage import unsent
from flowsieve.flow.proof.passage import Passage
from flowsieve.flow.table_chain import met
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.header.address import address_text
from flowsieve.network.tree import endpoints_behind


def explain_labels(view: TreeView, host: str, values: Mapping[str, object]) -> Explanation:
    """Follow an event that a host publishes: a hop for each entry that sends it on, or for the one that does not."""
    values = check_event(view.schema, values)
    view.topology.endpoint(host)
    wanted = view.wanted(host, values)
    if not any(each.endpoint == host and each.holds(values, ()) for each in view.advertisements):
        why = f"no advertisement of {host} holds the event, so it is not published"
        return Explanation(False, (), (), (), tuple(Miss(each.endpoint, each.id, why) for each in wanted))
    labels = view.sent(host, values)
    hops = tuple(hop for label in labels for hop in _hops(view, host, label, wanted))
    reached = {to for hop in hops for to in hop.out}
    delivered = tuple(name for name in view.topology.attached if name in reached)
    return Explanation(
        published=True,
        hops=hops,
        delivered=delivered,
        matches=tuple(each.id for each in wanted if each.endpoint in delivered),
        missed=tuple(
            Miss(each.endpoint, each.id, _reason(view, labels, host, each.endpoint))
            for each in wanted
            if each.endpoint not in delivered
        ),
    )


def _hops(view: TreeView, host: str, label: Label, wanted: list[Interest]) -> Iterator[Hop]:
    """The way of a packet, nearest first; no link is followed twice."""
    topology, text = view.topology, address_text(view.family, label.destination)
    passage = Passage.of_labels(view)
    arrivals = deque([(topology.endpoint(host).switch, host, 1)])
    seen = set()
    while arrivals:
        switch, came_from, hops = arrivals.popleft()
        if (switch, came_from) in seen or hops > HOP_LIMIT:
            continue
        seen.add((switch, came_from))
        flows = met(view.tables.get(switch, ()), view.family, label.destination, label.source)
        copies = [(flow, *_sent(passage, switch, came_from, flow)) for flow in flows]
        sending = [(flow, out, notes) for flow, out, notes in copies if out or notes]
        for flow, out, notes in sending:
            served = tuple(
                each.id
                for to in out
                for each in wanted
                if view.names(label, each.endpoint) and _behind(view, switch, to, each.endpoint)
            )
            yield Hop(switch, came_from, text, flow, out, served, notes)
            arrivals.extend((to, switch, hops + 1) for to in out if to not in topology.attached)
        if not sending:
            yield Hop(switch, came_from, text, flows[-1] if flows else None, (), ())


def _behind(view: TreeView, switch: str, near: str, host: str) -> bool:
    """Whether a host is behind a neighbour of a switch, on the tree along which packets for it go."""
    port = view.topology.port(switch, near)
    return host in endpoints_behind(view.topology, view.tree_to(host), switch, port)


def _sent(
    passage: Passage, switch: str, came_from: str, flow: Flow
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where an entry sends what comes from a neighbour, and why copies do not arrive that it sends as well."""
    near = passage.topology.neighbours(switch)
    out, notes = [], []
    for action in sorted(flow.actions, key=lambda action: action.port):
        if 1 <= action.port <= len(near) and near[action.port - 1] != came_from:
            why = passage.lost(switch, SentCopy.of(action))
            if why is None:
                out.append(near[action.port - 1])
            else:
                notes.append(why)
    return tuple(out), tuple(notes)


def _reason(view: TreeView, labels: list[Label], publisher: str, host: str) -> str:
    """Why a host that wants an event does not get it: the first switch on its way that does not send it on."""
    if not view.may_send(publisher, host):
        return f"the operator's policy does not let {publisher} address {host}"
    for switch, port in view.way(publisher, host):
        if why := unsent(view, switch, port, labels):
            return f"{why}, behind which {host} is"
    return f"nothing leads from {publisher} to {host}"
