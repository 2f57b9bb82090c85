"""The controller's belief of one switch: what it has acknowledged, and the way from there to another table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from flowsieve.flow.diff import Change, FlowOp, OpKind, Ports, apply_changes
from flowsieve.flow.entry import CONTENT_TABLE, Action, Deliver, Flow
from flowsieve.flow.entry_steps import EntrySteps, PortActions
from flowsieve.flow.order import ordered
from flowsieve.flow.owner import SOLE, Owner
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz


class Belief:
    """What a switch holds of ours, as long as it is `known`; nothing may build on it otherwise.

    `deliveries` are the ports at which the destination becomes that of the host there. Entries of another owner are
    passed over, whatever they are.
    """

    def __init__(
        self, encoding: Encoding, deliveries: Mapping[int, Deliver] | None = None, owner: Owner = SOLE
    ) -> None:
        self._owner = owner
        self.held: dict[Dz, Ports] = {}
        self.known = True
        self._encoding = encoding
        self.deliveries = deliveries or {}
        self._actions = PortActions(self.deliveries)

    def read(self, flows: Sequence[Flow]) -> list[FlowOp]:
        """Believe what a switch holds; the operations that remove what is no entry of ours from our group."""
        self.held, strays = {}, []
        held, dz_of, priority_of = self.held, self._encoding.dz_of, self._encoding.priority_of
        number = self._owner.number
        known: dict[int, Ports | None] = {}  # few actions stand in many entries, the same objects in most
        for flow in flows:
            if flow.owner != number and flow.owner is not None:
                continue
            dz, actions = dz_of(flow.match), flow.actions
            if dz is None:
                if self._encoding.owns(flow.match):
                    strays.append(FlowOp(OpKind.REMOVE, flow))
                continue
            if flow.owner is None and not self._owner.shares(dz):
                continue  # in the part of another owner, which will see to it
            if id(actions) not in known:
                known[id(actions)] = self._sent_to(actions)
            ports = known[id(actions)]
            placed = flow.table == CONTENT_TABLE and flow.onward is None
            if ports is not None and placed and flow.priority == priority_of(dz):
                held[dz] = ports
            else:
                strays.append(FlowOp(OpKind.REMOVE, flow))
        self.known = True
        return strays

    def recode(self, encoding: Encoding, rename: Callable[[Dz], Dz | None]) -> None:
        """Go on with an encoding that has other names for the same entries; for those without one, read anew."""
        self._encoding = encoding
        self.held, before = {}, self.held
        for dz, ports in before.items():
            if (now := rename(dz)) is None:
                self.known = False
            else:
                self.held[now] = ports

    def _sent_to(self, actions: tuple[Action, ...]) -> Ports | None:
        """The ports of an entry of ours that has these actions; None if none has."""
        ports = tuple(sorted(action.port for action in actions))
        return ports if self._actions[ports] == actions else None

    def steps(self, changes: Sequence[Change], capacity: int | None, partitions: Sequence[Dz]) -> EntrySteps:
        """The changes in a safe order, as operations."""
        steps = ordered(self.held, changes, capacity, partitions)
        return EntrySteps(steps, self._encoding, self._actions, self._owner.number)

    def acknowledge(self, steps: Iterable[Change]) -> None:
        """The switch has carried out these steps."""
        apply_changes(self.held, steps)
