"""The path of one packet through the tables, step by step: their plain meaning."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import look_up
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True)
class Step:
    """A packet at a switch: where it came from, the entry that it met, the neighbours that it was sent to."""

    switch: str
    came_from: str
    flow: Flow | None
    out: tuple[str, ...]


def trace(
    topology: Topology,
    tables: Mapping[str, Collection[Flow]],
    host: str,
    family: int,
    destination: int,
    source: int = 0,
) -> tuple[Step, ...]:
    """The steps of a packet from a host, nearest first; no link is followed twice."""
    steps: list[Step] = []
    arrivals = deque([(topology.endpoint(host).switch, host, 1)])
    seen = set()
    while arrivals:
        switch, came_from, hops = arrivals.popleft()
        if (switch, came_from) in seen:
            continue
        seen.add((switch, came_from))
        flow = look_up(tables.get(switch, ()), family, destination, source)
        near = topology.neighbours(switch)
        ports = flow.ports if flow and hops < HOP_LIMIT else ()
        out = tuple(
            near[port - 1] for port in ports if 1 <= port <= len(near) and near[port - 1] != came_from
        )
        steps.append(Step(switch, came_from, flow, out))
        arrivals.extend((to, switch, hops + 1) for to in out if to not in topology.attached)
    return tuple(steps)
