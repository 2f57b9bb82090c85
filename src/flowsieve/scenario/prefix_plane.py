"""A scenario whose packets are addressed by their dz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import finalize

from flowsieve.client.batch_packets import Packets, packets_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.partitions.blocking import ConfiguratorProcesses
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.flow.capacity.weights import events_of
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.flow.view import NetworkView
from flowsieve.index.sample import EventSample
from flowsieve.scenario.index_section import IndexSection
from flowsieve.scenario.price import Quote, quote
from flowsieve.scenario.read import Scenario
from flowsieve.southbound.fabric import Switches


class PrefixPlane:
    """The plane of dz: a `Controller`, and publishers that know the plan and nobody's filters."""

    columns = ("dst",)

    def __init__(self, scenario: Scenario, index: IndexSection, switches: Switches) -> None:
        self._scenario, self._index = scenario, index
        state = _first_state(scenario, index)
        if state.elsewhere is not None:
            self._share(state)
        self.controller = Controller(state, switches, index.encoding)

    def _share(self, state: ControlState) -> None:
        """Have configurators decide on the tables, for as long as this plane is there."""
        assert state.elsewhere is not None
        settings = state.settings
        events = None if settings.sample is None else events_of(settings.sample)
        processes = ConfiguratorProcesses(self._scenario.configurators, settings.tables, events)
        finalize(self, processes.end)
        processes.start()
        state.elsewhere.deciders = processes
        processes.begin(state.topology, state.trees, state.elsewhere.capacity, state.all_interests())

    @property
    def state(self) -> ControlState:
        return self.controller.state

    @property
    def operations(self) -> int:
        return self.controller.operations

    def submit(self, requests: Sequence[Request]) -> Outcome:
        return self.controller.submit(requests)

    def interests(self, side: Side) -> Mapping[str, Interest]:
        return self.state.interests(side)

    def packets(self, events: EventBatch) -> Packets:
        return packets_of(events, self.state.plan, self._index.encoding)

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return self.controller.tables()

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        return self.controller.verify(tables)

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        return self.controller.explain(host, values)

    def quote(self, host: str, wanted: Filter) -> Quote:
        return quote(self._scenario, self._index, self.state, host, wanted)

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        return self.controller.view(tables)

    def figures(self) -> dict[str, Any]:
        return {"bits": self._index.plan.bits, "coarsened": self.state.waste()}


def _first_state(scenario: Scenario, index: IndexSection) -> ControlState:
    """The control state that a scenario begins with."""
    topology, plan = scenario.topology, index.plan
    sample = EventSample.of(plan, index.sample) if index.sample is not None else None
    trees = partition_trees(topology, scenario.trees, sample)
    settings = Settings(
        index.budget,
        scenario.capacity,
        scenario.tables or Tables.OVERLAY,
        sample,
        elsewhere=scenario.configurators > 1,
    )
    return ControlState(topology, plan, trees, settings)
