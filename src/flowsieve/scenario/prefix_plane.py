"""A scenario whose packets are addressed by their dz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import finalize

import numpy as np

from flowsieve.client.batch_packets import Packets, packets_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.partitions.blocking import ConfiguratorProcesses
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.request import Request
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.control.transition.states import decided_here
from flowsieve.control.transition.stepwise import Meanwhile, Transition
from flowsieve.flow.capacity.weights import events_of
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.flow.view import NetworkView
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import Resampler
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
        self._served = ServedIndex(0, index.encoding.tag, index.plan)
        self._transition: Transition | None = None

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
        """By the index that is served; while the network goes over to another, by the one that each host has."""
        if self._transition is None:
            return packets_of(events, self._served.plan, self._served.encoding)
        moved = np.isin(events.hosts, list(self._transition.moved))
        halves = []
        for some, index in ((~moved, self._served), (moved, self._transition.new)):
            own = packets_of(events.take(some), index.plan, index.encoding)
            halves.append((np.flatnonzero(some)[own.rows], own.hi, own.lo))
        rows, hi, lo = (np.concatenate(both) for both in zip(*halves, strict=True))
        return Packets(self._served.encoding.family, rows, hi, lo)

    def go_over(self, plan: IndexPlan, meanwhile: Meanwhile) -> Transition:
        """Go over to another plan, publisher by publisher; `meanwhile` is called again and again on the way."""
        publishers = {each.endpoint for each in self.state.advertisements.values()}
        new = self._served.follower(plan)
        if (
            self.state.elsewhere is not None
        ):  # one process sees to the way; bounded tables may be cut otherwise
            here = self.controller.become(decided_here(self.state), self._served.encoding)
            self.controller.carry_out(here)
        self._transition = transition = Transition(self.controller, self._served, new, meanwhile=meanwhile)
        try:
            transition.run(sorted(publishers))
            self._served, self._index = new, replace(self._index, plan=plan)
        finally:
            self._transition = None
        return transition

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        return self.controller.tables()

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        return self.controller.verify(tables)

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        return self.controller.explain(host, values)

    def quote(self, host: str, wanted: Filter) -> Quote:
        return quote(self._scenario, self.state, host, wanted)

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        return self.controller.view(tables)

    def figures(self) -> dict[str, Any]:
        return {"bits": self.state.plan.bits, "coarsened": self.state.waste()}


def _first_state(scenario: Scenario, index: IndexSection) -> ControlState:
    """The control state that a scenario begins with."""
    topology, plan = scenario.topology, index.plan
    resample = Resampler(index.sample)
    sample = resample(plan)
    trees = partition_trees(topology, scenario.trees, sample)
    settings = Settings(
        index.budget,
        scenario.capacity,
        scenario.tables or Tables.OVERLAY,
        sample,
        elsewhere=scenario.configurators > 1,
        resample=resample,
    )
    return ControlState(topology, plan, trees, settings)
