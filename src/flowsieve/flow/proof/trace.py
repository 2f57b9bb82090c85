"""The path of one packet through the tables, step by step: their plain meaning."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import look_up
from flowsieve.flow.others import Foreign, SentCopy
from flowsieve.flow.proof.passage import Passage
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True)
class Step:
    """A packet at a switch: where it came from, the entry that it met, the neighbours that it was sent to.

    `notes` say what others have to do with it, and why copies that were sent do not arrive.
    """

    switch: str
    came_from: str
    flow: Flow | None
    out: tuple[str, ...]
    notes: tuple[str, ...] = ()


def trace(
    topology: Topology,
    tables: Mapping[str, Collection[Flow]],
    host: str,
    family: int,
    destination: int,
    source: int = 0,
    passage: Passage | None = None,
) -> tuple[Step, ...]:
    """The steps of a packet from a host, nearest first; no link is followed twice.

    With a `passage`, what others have made of the switches counts as well; an entry of theirs that may match or not is
    noted, and taken not to.
    """
    steps: list[Step] = []
    arrivals = deque([(topology.endpoint(host).switch, host, 1)])
    seen = set()
    if passage is not None and (why := passage.unheard(host)):
        return (Step(topology.endpoint(host).switch, host, None, (), (why,)),)
    while arrivals:
        switch, came_from, hops = arrivals.popleft()
        if (switch, came_from) in seen:
            continue
        seen.add((switch, came_from))
        flow = look_up(tables.get(switch, ()), family, destination, source)
        near = topology.neighbours(switch)
        copies: Iterable[SentCopy] = map(SentCopy.of, flow.actions) if flow else ()
        notes: list[str] = []
        if passage is not None:
            others, surely = met(passage, switch, near.index(came_from) + 1, flow, destination)
            notes += [_note(switch, each, each is surely) for each in others]
            if surely is not None:
                copies = (*(copies if surely.goes_on else ()), *surely.copies)
                flow = flow if surely.goes_on else None
        out = []
        for copy in sorted(copies, key=lambda copy: copy.port) if hops < HOP_LIMIT else ():
            if not 1 <= copy.port <= len(near) or near[copy.port - 1] == came_from:
                continue
            why = passage.lost(switch, copy) if passage is not None else None
            if why is None:
                out.append(near[copy.port - 1])
            else:
                notes.append(why)
        steps.append(Step(switch, came_from, flow, tuple(out), tuple(notes)))
        arrivals.extend((to, switch, hops + 1) for to in out if to not in topology.attached)
    return tuple(steps)


def met(
    passage: Passage, switch: str, in_port: int, flow: Flow | None, destination: int
) -> tuple[list[Foreign], Foreign | None]:
    """The entries of others that a packet does or may meet instead of ours, and the one of them that it surely does."""
    found: list[Foreign] = []
    own = flow.priority if flow is not None else -1
    for each in reversed(passage.entries(switch)):
        reach = each.within(passage.group)
        if each.rank < own or each.in_port not in (None, in_port) or reach is None:
            continue
        if destination >> (reach.width - reach.length) != reach.bits:
            continue
        found.append(each)
        if each.certain:
            return found, each if len(found) == 1 and each.rank > own else None
    return found, None


def _note(switch: str, entry: Foreign, surely: bool) -> str:
    meets = "meets" if surely else "may meet"
    return f"at {switch} it {meets} an entry of others: {entry.text}"
