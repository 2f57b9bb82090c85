"""The controller's picture of one switch: what it has acknowledged, and the way from there to another table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flowsieve.flow.diff import Change, FlowOp, Kind, Ports, apply_changes, flow_op
from flowsieve.flow.entry import Deliver, Flow, content_flow
from flowsieve.flow.order import ordered
from flowsieve.header.tag import Tag
from flowsieve.index.dz import Dz


class Picture:
    """What a switch holds of ours, as long as it is `known`; nothing may build on it otherwise.

    `deliveries` are the ports at which the destination becomes that of the host there.
    """

    def __init__(self, tag: Tag, deliveries: Mapping[int, Deliver] | None = None) -> None:
        self.held: dict[Dz, Ports] = {}
        self.known = True
        self._tag = tag
        self._deliveries = deliveries or {}

    def read(self, flows: Iterable[Flow]) -> list[FlowOp]:
        """Believe what a switch holds; the operations that remove what is no entry of ours from our group."""
        self.held, strays = {}, []
        for flow in flows:
            if not self._tag.group.covers(flow.match.destination):
                continue
            dz = self._tag.dz(flow.match.destination)
            if flow == content_flow(self._tag, dz, flow.ports, self._deliveries):
                self.held[dz] = flow.ports
            else:
                strays.append(FlowOp(Kind.REMOVE, flow))
        self.known = True
        return strays

    def steps(
        self, changes: Sequence[Change], capacity: int | None, partitions: Sequence[Dz]
    ) -> tuple[list[Change], list[FlowOp]]:
        """The changes in a safe order, as steps and as operations."""
        steps = ordered(self.held, changes, capacity, partitions)
        return steps, [flow_op(step, self._tag, self._deliveries) for step in steps]

    def acknowledge(self, steps: Iterable[Change]) -> None:
        """The switch has carried out these steps."""
        apply_changes(self.held, steps)
