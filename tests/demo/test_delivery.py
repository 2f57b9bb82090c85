from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from flowsieve.client.batch_packets import screen
from flowsieve.demo.delivery import send
from flowsieve.demo.telling import Telling
from flowsieve.flow.diff import FlowOp, OpKind


def test_all_that_was_wanted_arrived_and_applications_saw_exactly_that(told: Telling) -> None:
    found = told.delivered
    assert found.holds
    assert found.wanted > 0
    assert found.copies == found.wanted + found.unwanted
    assert found.events + found.rejected == len(told.story.events)


def test_what_is_wanted_is_what_the_filters_match_one_by_one(told: Telling) -> None:
    story, found = told.story, told.delivered
    events = story.events.take(screen(story.events, told.pubsub.state.advertisements.values()).good)
    for row in range(0, len(events), 20):
        event = events.event(row)
        for number, host in enumerate(story.topology.hosts):
            own = [each.filter for each in told.pubsub.state.subscriptions.values() if each.endpoint == host]
            assert found.traffic.wanted[number, row] == any(filter.matches(event) for filter in own)


def test_a_batch_does_what_publishing_one_by_one_does(told: Telling) -> None:
    pubsub, story = told.pubsub, told.story
    good = screen(story.events, pubsub.state.advertisements.values()).good
    events = story.events.take(good).take(np.arange(0, good.sum(), 7))
    batch = send(pubsub, replace(story, events=events))
    before = Counter(pubsub.network.link_packets)
    hosts = list(story.topology.hosts)
    for row in range(len(events)):
        published = pubsub.publish(events.hosts[row], events.event(row))
        assert set(published.hosts) == {hosts[number] for number in np.flatnonzero(batch.got[:, row])}
    one_by_one = Counter(pubsub.network.link_packets) - before
    assert one_by_one.total() > 0
    assert batch.carried.between_switches == one_by_one.total()
    assert {way: batch.carried.packets[way] for way in one_by_one} == one_by_one


def test_flows_that_are_missing_are_noticed(untold: Telling) -> None:
    network = untold.pubsub.network
    switch = untold.story.topology.hosts[untold.story.subscriptions[0].host]
    network.apply(switch, [FlowOp(OpKind.REMOVE, flow) for flow in network.read(switch)])
    assert untold.delivered.lost > 0
    assert untold.delivered.matched != untold.delivered.matching
    assert not untold.delivered.holds
