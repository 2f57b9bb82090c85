"""What of a scenario depends on how packets are addressed: by what is in them (dz), by whom they are for (labels), or
some by one and some by the other.

A plane takes the requests, says what publishers send, and proves, explains and prices what the switches hold. All else
about a scenario is the same for either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from flowsieve.client.batch_packets import Packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.request import Request
from flowsieve.control.state import Outcome
from flowsieve.flow.entry import Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.view import NetworkView
from flowsieve.scenario.bloom_plane import BloomPlane
from flowsieve.scenario.index_section import BloomSection, IndexSection, ReceiverSection
from flowsieve.scenario.label_plane import LabelPlane
from flowsieve.scenario.mixed_plane import MixedPlane
from flowsieve.scenario.prefix_plane import PrefixPlane
from flowsieve.scenario.price import Quote
from flowsieve.scenario.read import Scenario
from flowsieve.southbound.fabric import Switches


class Plane(Protocol):
    """A scenario's control plane, and its publishers' side."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The addresses that tell packets apart: the destination, perhaps the source before it."""

    @property
    def operations(self) -> int:
        """Flow operations that switches have carried out."""

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Serve a slice of requests; on return every switch has acknowledged what follows from it."""

    def interests(self, side: Side) -> Mapping[str, Interest]:
        """All that is advertised, or subscribed, by id."""

    def packets(self, events: EventBatch) -> Packets:
        """What publishers send for events that they may publish."""

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""

    def verify(self, tables: Mapping[str, tuple[Flow, ...]]) -> Verdict:
        """Prove that tables do what all interests ask for."""

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        """Show, hop by hop, why an event that a host publishes goes where it goes."""

    def quote(self, host: str, wanted: Filter) -> Quote:
        """Price a subscription; the plane is given up for it."""

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> NetworkView:
        """The network, to be followed over all dz; BadInput where there are none."""

    def figures(self) -> dict[str, Any]:
        """What the report of a run says of the plane: `bits`, `coarsened` and more."""


def plane_of(scenario: Scenario, switches: Switches) -> Plane:
    """The plane that a scenario's index asks for, over switches with empty tables."""
    index = scenario.index
    if isinstance(index, IndexSection):
        kind = PrefixPlane if index.label_hosts is None else MixedPlane
        return kind(scenario, index, switches)
    if isinstance(index, BloomSection):
        return BloomPlane(scenario, index, switches)
    assert isinstance(index, ReceiverSection)
    return LabelPlane(scenario, index, switches)
