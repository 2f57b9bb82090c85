"""A transition for a caller that waits: a scenario on the embedded network or on real switches, a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flowsieve.control.controller import Controller
from flowsieve.control.state import ControlState
from flowsieve.control.transition.crossing import CrossingPhase, renamed
from flowsieve.control.transition.records import PhaseRecord
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.control.transition.states import arrived, begun, check_room, entered
from flowsieve.index.sides import NEW, OLD
from flowsieve.network.tree import TreeMap

Meanwhile = Callable[[], None]


@dataclass(slots=True)
class Transition:
    """A controller's way to another index, phase by phase.

    `meanwhile` is called whenever a switch has followed and others have not, and whenever a publisher has gone over
    and others have not: events that are published then meet what they would meet in a network that lives.
    """

    controller: Controller
    index: ServedIndex
    new: ServedIndex
    carry: bool = True
    trees: TreeMap | None = None
    meanwhile: Meanwhile = lambda: None
    moved: set[str] = field(default_factory=set)  # hosts that publish by the new index
    records: list[PhaseRecord] = field(default_factory=list)

    def run(self, publishers: list[str]) -> None:
        """Go all the way; raises TableFull, before anything is changed, where tables would not fit."""
        controller, start = self.controller, self.controller.state
        first = begun(start, self.index, self.new, carry=self.carry, trees=self.trees)
        check_room(start, first)
        check_room(start, entered(first, CrossingPhase.INSTALL))
        if self.carry:
            self._phase(CrossingPhase.CARRY, first, joined=True)
            self._phase(CrossingPhase.INSTALL, entered(controller.state, CrossingPhase.INSTALL))
        else:
            self._phase(CrossingPhase.INSTALL, first, joined=True)
        self._phase(CrossingPhase.SWITCH, entered(controller.state, CrossingPhase.SWITCH))
        with _Timed(self._record(CrossingPhase.SWITCH), controller):
            for host in publishers:
                self.moved.add(host)
                self.meanwhile()
        controller.switches.settle()  # what was sent under the old tag arrives
        self._phase(CrossingPhase.CLEAR, entered(controller.state, CrossingPhase.CLEAR))
        last = arrived(controller.state)
        with _Timed(self._record(CrossingPhase.CLEAR), controller):
            controller.carry_out(controller.become(last, self.new.encoding, renamed(False, NEW)))

    def _phase(self, phase: CrossingPhase, state: ControlState, *, joined: bool = False) -> None:
        controller = self.controller
        record = PhaseRecord(phase)
        self.records.append(record)
        rename = renamed(True, OLD) if joined else lambda dz: dz
        with _Timed(record, controller):
            assert state.crossing is not None
            changes = controller.become(state, state.crossing.encoding, rename)
            for switch, some in changes.items():
                controller.carry_out({switch: some})
                self.meanwhile()

    def _record(self, phase: CrossingPhase) -> PhaseRecord:
        return next(record for record in self.records if record.phase is phase)


class _Timed:
    """Adds what happens in a `with` block to the record of a phase."""

    def __init__(self, record: PhaseRecord, controller: Controller) -> None:
        self._record, self._controller = record, controller

    def __enter__(self) -> None:
        self._start, self._before = time.perf_counter(), self._controller.operations

    def __exit__(self, *_: object) -> None:
        record, controller = self._record, self._controller
        record.seconds += time.perf_counter() - self._start
        record.operations += controller.operations - self._before
        topology = controller.state.topology
        record.entries = sum(len(controller.believed(switch)) for switch in topology.switches)
