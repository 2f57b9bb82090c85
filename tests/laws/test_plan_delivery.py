"""With every kind of plan the network delivers what is wanted: through encoding, tables and packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import EVERY_KIND, attributes, events, filters, plans

from flowsieve.client.batch_packets import packets_of
from flowsieve.client.pubsub import PubSub
from flowsieve.content.box import Interval
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.cover_rule import AUTO
from flowsieve.control.state import Settings
from flowsieve.index.sample import EventSample
from flowsieve.network.generators import ring

kinds = pytest.mark.parametrize("kind", EVERY_KIND.split())
HOSTS = ("h1", "h2", "h3")


def written(wanted: Filter) -> str:
    """A filter of numbers, as its users write it."""
    boxes = []
    for box in wanted.boxes:
        parts = ["True"]
        for attribute, interval in zip(wanted.schema, box, strict=True):
            assert isinstance(interval, Interval)
            if interval != attribute.whole:
                low, high = attribute.value(interval.low), attribute.value(interval.high)
                if attribute.kind == "bool":
                    parts.append(f"{attribute.name} == {low}")
                else:
                    parts.append(f"{low!r} <= {attribute.name} <= {high!r}")
        boxes.append(f"({' and '.join(parts)})")
    return " or ".join(boxes)


@kinds
@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
def test_all_who_want_an_event_get_it_and_the_proof_holds(kind: str, data: st.DataObject) -> None:
    names = range(data.draw(st.integers(1, 3)))
    schema = Schema(tuple(data.draw(attributes(f"a{i}", "int float enum bool")) for i in names))
    plan = data.draw(plans(schema, most_bits=30, kinds=kind))
    known = data.draw(st.lists(events(schema), min_size=1, max_size=6))
    batch = EventBatch.from_events(schema, "h0", known)
    sample = EventSample.of(plan, batch) if data.draw(st.booleans()) else None
    capacity = data.draw(st.none() | st.integers(6, 12))
    pubsub = PubSub(
        schema,
        ring(4, 4),
        plan=plan,
        settings=Settings(
            budget=data.draw(st.integers(1, 12) | st.just(AUTO)), sample=sample, capacity=capacity
        ),
    )
    offer: Any = written(data.draw(filters(schema, most_boxes=2)))
    pubsub.advertise("h0", offer)
    wants = {
        pubsub.subscribe(host, written(data.draw(filters(schema, most_boxes=2)))).id: host
        for host in HOSTS
        for _ in range(data.draw(st.integers(0, 2)))
    }
    subscriptions = pubsub.state.subscriptions
    promised = Filter.parse(offer, schema)
    rows = np.array([promised.matches(event) for event in known])
    for event in np.array(known, object)[rows]:
        result = pubsub.publish("h0", event)
        matching = {id for id in wants if subscriptions[id].filter.matches(event)}
        assert set(result.matches) == matching
        assert {wants[id] for id in matching} <= set(result.hosts)
        if matching:
            assert {wants[id] for id in matching} <= set(pubsub.explain("h0", event).delivered)
    assert pubsub.verify().holds

    packets = packets_of(batch.take(rows), plan, pubsub.encoding)
    delivered = pubsub.network.deliver(np.zeros(len(packets.rows), np.int64), packets.hi, packets.lo)
    copies = set(zip(packets.rows[delivered.event].tolist(), delivered.host.tolist(), strict=True))
    assert len(delivered.event) == len(
        set(zip(delivered.event.tolist(), delivered.host.tolist(), strict=True))
    )
    hosts = list(pubsub.network.topology.hosts)
    for row, event in enumerate(np.array(known, object)[rows]):
        for id, host in wants.items():
            if subscriptions[id].filter.matches(event):
                assert (row, hosts.index(host)) in copies
