from __future__ import annotations

import numpy as np
import pytest

from flowsieve.client.batch_packets import screen
from flowsieve.content.filter import Filter
from flowsieve.demo.story import BROKEN_READING, SUBSCRIPTIONS, Story, make_story
from flowsieve.flow.interest import Interest
from flowsieve.index.dzset import WHOLE


@pytest.fixture(scope="module")
def story() -> Story:
    return make_story(readings=4000)


def test_the_same_seed_tells_the_same_story(story: Story) -> None:
    again = make_story(readings=4000)
    assert again.topology == story.topology
    assert again.advertisements == story.advertisements
    assert again.subscriptions == story.subscriptions
    for one, other in ((story.events, again.events), (story.yesterday, again.yesterday)):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.hosts.tolist() == other.hosts.tolist()
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])


def test_another_seed_tells_another_story(story: Story) -> None:
    other = make_story(readings=4000, seed=8)
    assert other.subscriptions != story.subscriptions
    assert not np.array_equal(other.events.columns["temperature"], story.events.columns["temperature"])


def test_there_are_a_hundred_different_filters_on_hosts_that_do_not_publish(story: Story) -> None:
    assert len({each.filter for each in story.subscriptions}) == SUBSCRIPTIONS == 100
    assert len({each.id for each in story.subscriptions}) == SUBSCRIPTIONS
    publishers = {each.host for each in story.advertisements}
    assert not publishers & {each.host for each in story.subscriptions}


def test_filters_mean_what_they_mean_in_python(story: Story) -> None:
    good = story.events.take(~story.events.faults()[0]).take(np.arange(300))
    for each in story.subscriptions:
        code = compile(each.filter, each.id, "eval")
        expected = [bool(eval(code, {}, good.event(row))) for row in range(len(good))]
        assert Filter.parse(each.filter, story.schema).matches_batch(good).tolist() == expected, each.filter


def test_gateways_publish_what_they_advertise_but_for_broken_sensors(story: Story) -> None:
    promised = [
        Interest(each.id, each.host, Filter.parse(each.filter, story.schema), WHOLE)
        for each in story.advertisements
    ]
    broken = story.events.columns["temperature"] == BROKEN_READING
    assert broken.any()
    np.testing.assert_array_equal(screen(story.events, promised).good, ~broken)


def test_the_event_that_is_followed_is_advertised_where_it_is_published(story: Story) -> None:
    (promise,) = [each.filter for each in story.advertisements if each.host == story.followed_host]
    assert Filter.parse(promise, story.schema).matches(story.followed)
