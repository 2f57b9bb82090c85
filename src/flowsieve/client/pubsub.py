"""Publish and subscribe in one process: a controller over an embedded network, for a first look and tests.

>>> from flowsieve import PubSub, Schema, Topology
>>> price = {"type": "int", "min": 0, "max": 1023}
>>> schema = Schema.parse({"price": price, "side": {"type": "enum", "values": ["buy", "sell"]}})
>>> network = Topology.make([("s1", "s2"), ("s2", "s3")], {"ann": "s1", "bob": "s2", "cy": "s3"})
>>> pubsub = PubSub(schema, network)
>>> _ = pubsub.advertise("ann", "True")
>>> cheap = pubsub.subscribe("bob", "price < 100 and side == 'buy'")
>>> dear = pubsub.subscribe("cy", "price >= 900")
>>> pubsub.publish("ann", price=60, side="buy").hosts
('bob',)
>>> cheap.received
[{'price': 60, 'side': 'buy'}]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from flowsieve.content.event import check_event
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request, free_id
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput, BadValue
from flowsieve.flow.entry import Flow
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.header.encoding import encoding_of
from flowsieve.header.tag import DZ_HEADERS
from flowsieve.index.plan import IndexPlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork


@dataclass(eq=False)
class LocalSubscription:
    """A filter in force; `received` holds the events that matched it exactly. Leaving its context ends it."""

    id: str
    host: str
    filter: Filter
    received: list[dict[str, object]] = field(default_factory=list)
    _home: PubSub | None = field(default=None, repr=False)

    def cancel(self) -> None:
        if self._home is not None:
            self._home._end(Op.UNSUBSCRIBE, self.id, self.host)
            self._home = None

    def __enter__(self) -> LocalSubscription:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()


@dataclass(frozen=True, slots=True)
class Published:
    """What became of an event: the hosts that received a copy, and the subscriptions it matched there."""

    hosts: tuple[str, ...]
    matches: tuple[str, ...]


class PubSub:
    """Ten lines to a network that filters: a schema, a topology, then advertise, subscribe and publish."""

    def __init__(
        self,
        schema: Schema,
        topology: Topology,
        *,
        plan: IndexPlan | None = None,
        header: str = "ipv6",
        trees: TreeMap | None = None,
        settings: Settings | None = None,
    ) -> None:
        if header not in DZ_HEADERS:
            raise BadInput(f"there is no header {header!r}; it is one of {', '.join(DZ_HEADERS)}")
        self.encoding = encoding_of(header)
        self.schema = schema
        self.network = EmbeddedNetwork(topology, (settings or Settings()).capacity)
        state = ControlState(
            topology, plan or RegularPlan.make(schema, room=self.encoding.room), trees, settings
        )
        self.controller = Controller(state, self.network, self.encoding)
        self._subscriptions: dict[str, LocalSubscription] = {}
        self._numbers = {op: count(1) for op in Op}

    @property
    def state(self) -> ControlState:
        return self.controller.state

    def advertise(self, host: str, filter: str = "True", *, id: str | None = None) -> str:
        """Let a host publish what the filter matches; returns the advertisement's id."""
        return self._add(Op.ADVERTISE, host, self._filter(filter), id)

    def unadvertise(self, id: str) -> None:
        if id not in self.state.advertisements:
            raise BadInput(f"there is no advertisement {id!r}")
        self._end(Op.UNADVERTISE, id, self.state.advertisements[id].endpoint)

    def subscribe(self, host: str, filter: str, *, id: str | None = None) -> LocalSubscription:
        """Have a host receive what the filter matches from now on."""
        parsed = self._filter(filter)
        made = self._add(Op.SUBSCRIBE, host, parsed, id)
        subscription = self._subscriptions[made] = LocalSubscription(made, host, parsed, _home=self)
        return subscription

    def publish(self, host: str, event: Mapping[str, object] | None = None, /, **values: object) -> Published:
        """Send an event from a host; types, ranges and the host's advertisements are checked first."""
        checked = check_event(self.schema, {**(event or {}), **values})
        if not any(interest.holds(checked, ()) for interest in self.state.publishes(host)):
            raise BadValue(f"{host} has no advertisement that covers {checked}")
        seen = len(self.network.deliveries)
        for dz in self.state.plan.encode(checked):
            self.network.send(host, self.encoding.text(dz))
        self.network.settle()
        hosts = {delivery.host: None for delivery in self.network.deliveries[seen:]}
        matched = [s for s in self._subscriptions.values() if s.host in hosts and s.filter.matches(checked)]
        for subscription in matched:
            subscription.received.append(dict(checked))
        return Published(tuple(hosts), tuple(subscription.id for subscription in matched))

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return self.controller.tables()

    def verify(self) -> Verdict:
        """Prove that the switches deliver every event to all who want it, once."""
        return self.controller.verify()

    def explain(
        self, host: str, event: Mapping[str, object] | None = None, /, **values: object
    ) -> Explanation:
        """Show, hop by hop, why an event goes where it goes."""
        return self.controller.explain(host, check_event(self.schema, {**(event or {}), **values}))

    def _filter(self, text: str) -> Filter:
        return Filter.parse(text, self.schema)

    def _add(self, op: Op, host: str, filter: Filter, id: str | None) -> str:
        if id is None:
            id = free_id(op.value, self.state.interests(op.side), self._numbers[op])
        outcome = self.controller.submit([Request(op, id, host, filter)])
        for _, reason in outcome.refused:
            raise reason
        return id

    def _end(self, op: Op, id: str, host: str) -> None:
        self.controller.submit([Request(op, id, host)])
        if op is Op.UNSUBSCRIBE:
            del self._subscriptions[id]
