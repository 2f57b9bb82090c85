"""Why a host did or did not get an event: the path of its packets, entry by entry, and who asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flowsieve.content.event import check_event
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.passage import Passage
from flowsieve.flow.proof.trace import Step, trace
from flowsieve.flow.view import NetworkView
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.tree import endpoints_behind


@dataclass(frozen=True, slots=True)
class Hop:
    """A packet at a switch: where it came from, the entry that it met, where it was sent, and for whom.

    `subscriptions` are those behind the ports that it was sent out of whose dz hold the event. A port that no
    such one is behind is served because entries were made coarser: then it is those whose dz the entry's own
    overlaps. `notes` say what others have to do with it: their entries, and how they have set ports.
    """

    switch: str
    came_from: str
    dst: str
    flow: Flow | None
    out: tuple[str, ...]
    subscriptions: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A subscription that matches the event, on a host that does not get it."""

    host: str
    subscription: str
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What becomes of one event: `matches` are the subscriptions that it matches on hosts that get it.

    It is not `published` where no advertisement of its host holds it.
    """

    published: bool
    hops: tuple[Hop, ...]
    delivered: tuple[str, ...]
    matches: tuple[str, ...]
    missed: tuple[Miss, ...]


def explain(view: NetworkView, host: str, values: Mapping[str, object]) -> Explanation:
    """Follow an event that a host publishes."""
    topology, plan, subscriptions = view.topology, view.plan, view.subscriptions
    values = check_event(plan.schema, values)
    topology.endpoint(host)
    case = _Case(view, host)
    cells = plan.encode(values)
    wanted = [each for each in subscriptions if each.endpoint != host and each.holds(values, cells)]
    if not any(each.endpoint == host and each.holds(values, cells) for each in view.advertisements):
        why = f"no advertisement of {host} holds the event, so it is not published"
        return Explanation(False, (), (), (), tuple(Miss(each.endpoint, each.id, why) for each in wanted))
    walks = [(dz, case.steps(dz)) for dz in cells]
    reached = {to for _, steps in walks for step in steps for to in step.out}
    delivered = tuple(name for name in topology.attached if name in reached)
    return Explanation(
        published=True,
        hops=tuple(case.hop(dz, step) for dz, steps in walks for step in steps),
        delivered=delivered,
        matches=tuple(each.id for each in wanted if each.endpoint in delivered),
        missed=tuple(
            Miss(each.endpoint, each.id, case.reason(each, walks))
            for each in wanted
            if each.endpoint not in delivered
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    view: NetworkView
    publisher: str

    def steps(self, dz: Dz) -> tuple[Step, ...]:
        view, to = self.view, self.view.encoding.address_of(dz)
        family, passage = view.encoding.family, Passage.of(view)
        return trace(view.topology, view.tables, self.publisher, family, to, passage=passage)

    def hop(self, dz: Dz, step: Step) -> Hop:
        ids: dict[str, None] = {}
        if (flow := step.flow) is not None:
            for to in step.out:
                for each in self._cause(dz, flow, self._served(dz, step.switch, to)):
                    ids[each.id] = None
        text = self.view.encoding.text(dz)
        return Hop(step.switch, step.came_from, text, flow, step.out, tuple(ids), step.notes)

    def _behind(self, dz: Dz, switch: str, port: int) -> frozenset[str]:
        assert self.view.trees is not None, "trees tell whom a switch serves through a port"
        return endpoints_behind(self.view.topology, self.view.trees.tree_of(dz), switch, port)

    def _served(self, dz: Dz, switch: str, neighbour: str) -> list[Interest]:
        """The subscriptions behind a port, on the tree of a dz."""
        hosts = self._behind(dz, switch, self.view.topology.port(switch, neighbour))
        return [each for each in self.view.subscriptions if each.endpoint in hosts]

    def _cause(self, dz: Dz, flow: Flow, served: list[Interest]) -> list[Interest]:
        """Those for which a packet is sent: who wants its dz, or else whose dz the entry was widened over."""
        wanted = [each for each in served if each.dz.covers(dz)]
        own = None if wanted else self.view.encoding.dz_of(flow.match)
        return wanted if own is None else [each for each in served if each.dz.overlaps(DzSet.of(own))]

    def reason(self, missed: Interest, walks: Sequence[tuple[Dz, Sequence[Step]]]) -> str:
        """Why a subscription that matches does not get the event."""
        if not walks:
            return "the plan does not send the event"
        texts = [str(dz) for dz, _ in walks]
        if not any(missed.dz.covers(dz) for dz, _ in walks):
            return f"its dz do not hold the event's {' or '.join(texts)}"
        stops = "; ".join(self._stops(missed.endpoint, walks))
        return stops or f"nothing leads from {self.publisher} to {missed.endpoint}"

    def _stops(self, host: str, walks: Sequence[tuple[Dz, Sequence[Step]]]) -> Iterator[str]:
        """Where a packet was at a port that the host is behind, and was not sent out of it."""
        for dz, steps in walks:
            for step in steps:
                near = self.view.topology.neighbours(step.switch)
                for port, to in enumerate(near, 1):
                    if to in (step.came_from, *step.out) or host not in self._behind(dz, step.switch, port):
                        continue
                    if step.notes:
                        yield "; ".join(step.notes)
                    elif step.flow is None:
                        yield f"{step.switch} has no entry for {self.view.encoding.text(dz)} and drops it"
                    else:
                        yield f"the entry of {step.switch} for {step.flow.match} does not send it to {to}"
