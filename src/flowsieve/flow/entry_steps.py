"""Changes of entries for dz as the operations that make them, without a value for each.

A request changes a dozen entries, and most of what it takes to bring them to switches would be spent on making values
that are packed into bytes and forgotten. So a batch stays what the tables' difference is: a dz and its ports. Whoever
looks at one operation gets the `FlowOp` that `flow_op` makes of the change; who can read changes needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from flowsieve.flow.diff import Change, FlowOp, OpKind, Ports
from flowsieve.flow.entry import NOBODY, Action, Deliver, Flow, content_actions
from flowsieve.header.encoding import Encoding

Actions = tuple[Action, ...]
Sample = tuple[int, Ports | None]  # length of a dz, ports that it is sent to
MOST_REMEMBERED = 1 << 14  # port sets


class PortActions(dict[Ports, Actions]):
    """What entries do that send out of some ports of a switch; few port sets stand in many entries.

    >>> PortActions()[1, 2]
    (Output(port=1), Output(port=2))
    """

    def __init__(self, deliveries: Mapping[int, Deliver] = NOBODY) -> None:
        super().__init__()
        self._made: Callable[[Ports], Actions] = lambda ports: content_actions(ports, deliveries)

    @classmethod
    def translated(cls, actions: PortActions, translate: Callable[[Actions], Actions]) -> PortActions:
        """The same, each list of actions translated."""
        made = cls()
        made._made = lambda ports: translate(actions[ports])
        return made

    def __missing__(self, ports: Ports) -> Actions:
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        actions = self[ports] = self._made(ports)
        return actions


class EntrySteps(Sequence[FlowOp]):
    """One operation for each of the `changes`, on entries of an owner."""

    __slots__ = ("actions", "changes", "encoding", "owner")

    def __init__(
        self, changes: Sequence[Change], encoding: Encoding, actions: PortActions, owner: int = 0
    ) -> None:
        self.changes, self.encoding, self.actions, self.owner = changes, encoding, actions, owner

    def __len__(self) -> int:
        return len(self.changes)

    @overload
    def __getitem__(self, at: int) -> FlowOp: ...
    @overload
    def __getitem__(self, at: slice) -> EntrySteps: ...
    def __getitem__(self, at: int | slice) -> FlowOp | EntrySteps:
        if isinstance(at, slice):
            return EntrySteps(self.changes[at], self.encoding, self.actions, self.owner)
        return self._operation(self.changes[at])

    def __iter__(self) -> Iterator[FlowOp]:
        return map(self._operation, self.changes)

    def acting(self, actions: PortActions) -> EntrySteps:
        """The same changes by a switch whose entries do something else for these ports."""
        return EntrySteps(self.changes, self.encoding, actions, self.owner)

    def samples(self, seen: set[Sample]) -> Iterator[FlowOp]:
        """An operation of each length of dz and set of ports that was not seen: no other has more to say of either.

        It counts as seen when the next one is asked for.
        """
        for change in self.changes:
            key = change.dz.length, change.new
            if key not in seen:
                yield self._operation(change)
                seen.add(key)

    def _operation(self, change: Change) -> FlowOp:
        """What `flow_op` makes of a change, of its owner."""
        dz, old, new = change
        ports = new if new is not None else old or ()
        kind = OpKind.REMOVE if new is None else OpKind.INSTALL if old is None else OpKind.MODIFY
        match, priority = self.encoding.match_of(dz), self.encoding.priority_of(dz)
        return FlowOp(kind, Flow(match, priority, self.actions[ports], self.owner))


def removes(ops: Sequence[FlowOp]) -> bool:
    """Whether some operation takes an entry out."""
    if isinstance(ops, EntrySteps):
        return any(change.new is None for change in ops.changes)
    return any(op.kind is OpKind.REMOVE for op in ops)
