"""One switch's table on its way to what it should be: what is believed of it, what is asked for, and what is under way.

How that is done depends on what stands in tables: the dz of interests (`DzWork`), labels (`LabelWork`), or both, told
apart by their tags (`MixedWork`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from flowsieve.control.state import ControlState
from flowsieve.control.switches.belief import Belief
from flowsieve.flow.diff import Change, FlowOp, OpKind, apply_changes, changes_between, net_changes
from flowsieve.flow.entry import NOBODY, Deliver, Flow
from flowsieve.flow.entry_steps import EntrySteps
from flowsieve.flow.label_diff import label_ops, size_after
from flowsieve.flow.last_hop import readdressed
from flowsieve.flow.tables.pattern_order import ordered
from flowsieve.header.encoding import Encoding, PrefixEncoding
from flowsieve.index.dz import Dz

FEW = 1_000  # changes that may wait one after the other, though some of them may take others back
CurrentState = Callable[[], ControlState]
Rename = Callable[[Dz], Dz | None]


class TableWork(Protocol):
    """Nothing may build on it unless it is `known` what the switch holds.

    `deliveries` are the ports at which events are readdressed to the host there.
    """

    known: bool
    deliveries: Mapping[int, Deliver]

    @property
    def size(self) -> int:
        """How many entries of ours the switch is believed to hold."""
        ...

    def read(self, flows: Sequence[Flow]) -> list[FlowOp]:
        """Believe what a switch holds; the operations that remove what is no entry of ours from our group.

        All that is asked for from now on is what the state says.
        """
        ...

    def ask(self, changes: Sequence[Change]) -> None:
        """Have the table changed, after all that was asked for before."""
        ...

    def begin(self) -> Sequence[FlowOp]:
        """The operations, in a safe order, that make all that is asked for; they are under way from now on."""
        ...

    def acknowledge(self) -> None:
        """The switch has carried out what was under way."""
        ...

    def size_after(self, done: int) -> int:
        """How many entries of ours there are when so many operations of those under way are done."""
        ...

    def recode(self, encoding: Encoding, rename: Rename) -> None:
        """Go on with an encoding that has other names for the same entries, those under way and asked for included."""
        ...


def table_work(
    switch: str, encoding: Encoding, state: CurrentState, deliveries: Mapping[int, Deliver] | None
) -> TableWork:
    """The work on a switch, as the network's state asks for it."""
    own = deliveries or NOBODY
    if not state().mixed:
        kind = LabelWork if state().labelled else DzWork
        return kind(switch, encoding, state, own)
    labels = LabelWork(switch, PrefixEncoding(state().label_tag), state, own)
    return MixedWork(DzWork(switch, encoding, state, own), labels)


class DzWork:
    """What is asked for is the net difference of what changed; tables may be large, and are read anew only in doubt."""

    def __init__(
        self, switch: str, encoding: Encoding, state: CurrentState, deliveries: Mapping[int, Deliver]
    ) -> None:
        self._switch, self._state = switch, state
        self._belief = Belief(encoding, deliveries, state().owner)
        self._pending: list[Sequence[Change]] = []  # one after the other; in each, no dz stands twice
        self._waiting, self._most = 0, FEW  # changes that wait, and before they are put together
        self._under_way: Sequence[Change] = []
        self.deliveries = deliveries
        self.known = False

    @property
    def size(self) -> int:
        return len(self._belief.held)

    def read(self, flows: Sequence[Flow]) -> list[FlowOp]:
        strays = self._belief.read(flows)
        wanted = self._state().table(self._switch)
        self._keep([changes_between(self._belief.held, wanted)])
        self.known = True
        return strays

    def ask(self, changes: Sequence[Change]) -> None:
        self._pending.append(changes)
        self._waiting += len(changes)
        if self._waiting > self._most:  # the switch may be away for long
            self._keep([net_changes(self._pending)])

    def _keep(self, pending: list[Sequence[Change]]) -> None:
        """Have these wait, and let as many more come before they are put together."""
        self._pending, self._waiting = pending, sum(map(len, pending))
        self._most = max(FEW, 2 * self._waiting)

    def begin(self) -> EntrySteps:
        state, pending = self._state(), self._pending
        self._keep([])
        changes = pending[0] if len(pending) == 1 else net_changes(pending)
        steps = self._belief.steps(changes, state.dz_capacity(self._switch), state.partitions)
        self._under_way = steps.changes
        return steps

    def recode(self, encoding: Encoding, rename: Rename) -> None:
        self._belief.recode(encoding, rename)
        pending, under_way = net_changes(self._pending), self._under_way
        named = [
            [each._replace(dz=now) for each in some if (now := rename(each.dz))]
            for some in (pending, under_way)
        ]
        self._keep([named[0]])
        self._under_way = named[1]
        if not self._belief.known or len(named[0]) + len(named[1]) < len(pending) + len(under_way):
            self.known = False

    def acknowledge(self) -> None:
        self._belief.acknowledge(self._under_way)
        self._under_way = []

    def size_after(self, done: int) -> int:
        held = dict(self._belief.held)
        apply_changes(held, self._under_way[:done])
        return len(held)


class LabelWork:
    """What is asked for is what the state says now: tables for labels are small, or most of them stays."""

    def __init__(
        self, switch: str, encoding: Encoding, state: CurrentState, deliveries: Mapping[int, Deliver]
    ) -> None:
        self._switch, self._state, self._encoding = switch, state, encoding
        self._held: dict[object, Flow] = {}
        self._made: tuple[Flow, ...] | None = None  # what the state asked for when the switch followed last
        self._aim: tuple[Flow, ...] = ()
        self._under_way: list[FlowOp] = []
        self.deliveries = deliveries
        self.known = False

    @property
    def size(self) -> int:
        return len(self._held)

    def read(self, flows: Sequence[Flow]) -> list[FlowOp]:
        minds = self._state().owner.minds
        ours = (flow for flow in flows if self._encoding.owns(flow.match) and minds(flow.owner))
        self._held, self._made = {flow.key: flow for flow in ours}, None
        self.known = True
        if bloom := self._state().bloom:
            bloom.adopt(self._switch, self._held.values())
        return []  # what is no entry of ours is in the way of those that are, and goes with the rest

    def ask(self, changes: Sequence[Change]) -> None:
        pass  # the state knows

    def begin(self) -> list[FlowOp]:
        """Of a large table little changes: entries that are the same objects as before are not looked at."""
        state, owner, before = self._state(), self._state().owner, self._made
        self._aim = state.label_entries(self._switch)
        held: Iterable[Flow] = self._held.values()
        new: Iterable[Flow] = self._aim
        if before is not None:
            there, wanted = set(map(id, before)), set(map(id, self._aim))
            held = [self._sent(entry, owner.number) for entry in before if id(entry) not in wanted]
            new = (entry for entry in self._aim if id(entry) not in there)
        self._under_way = label_ops(held, [self._sent(entry, owner.number) for entry in new])
        if bloom := state.bloom:
            room = state.capacity(self._switch)
            self._under_way = ordered(self._under_way, bloom.settings.labels, self.size, room)
        return self._under_way

    def acknowledge(self) -> None:
        for op in self._under_way:
            if op.kind is OpKind.REMOVE:
                del self._held[op.flow.key]
            else:
                self._held[op.flow.key] = op.flow
        self._made = self._aim

    def size_after(self, done: int) -> int:
        return size_after(len(self._held), self._under_way[:done])

    def recode(self, encoding: Encoding, rename: Rename) -> None:
        raise AssertionError("labels have no index to go over from")

    def _sent(self, entry: Flow, owner: int) -> Flow:
        return readdressed(entry, self.deliveries, owner)


class MixedWork:
    """Two works side by side. Where labels come to take less room they go first, so that there is room for dz."""

    def __init__(self, dz: DzWork, labels: LabelWork) -> None:
        self._dz, self._labels = dz, labels
        self._under_way: list[tuple[DzWork | LabelWork, Sequence[FlowOp]]] = []
        self.deliveries = dz.deliveries

    @property
    def known(self) -> bool:
        return self._dz.known and self._labels.known

    @known.setter
    def known(self, known: bool) -> None:
        self._dz.known = self._labels.known = known

    @property
    def size(self) -> int:
        return self._dz.size + self._labels.size

    def read(self, flows: Sequence[Flow]) -> list[FlowOp]:
        return self._dz.read(flows) + self._labels.read(flows)

    def ask(self, changes: Sequence[Change]) -> None:
        self._dz.ask(changes)

    def recode(self, encoding: Encoding, rename: Rename) -> None:
        self._labels.recode(encoding, rename)

    def begin(self) -> list[FlowOp]:
        dz, labels = self._dz.begin(), self._labels.begin()
        self._under_way = [(self._dz, dz), (self._labels, labels)]
        if self._labels.size_after(len(labels)) < self._labels.size:
            self._under_way.reverse()
        return [op for _, ops in self._under_way for op in ops]

    def acknowledge(self) -> None:
        self._dz.acknowledge()
        self._labels.acknowledge()

    def size_after(self, done: int) -> int:
        size = 0
        for work, ops in self._under_way:
            size += work.size_after(min(done, len(ops)))
            done = max(0, done - len(ops))
        return size
