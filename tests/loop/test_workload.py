"""The story's traffic: the first plan suits the first of it, and says nothing of what comes then."""

from __future__ import annotations

import numpy as np
import pytest

from flowsieve.content.filter import Filter
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.loop.files import FIRST_DIMENSIONS
from flowsieve.loop.judgement import PublisherLog
from flowsieve.loop.workload import SCHEMA, Readings, subscriptions

HOSTS = ("h1", "h2", "h4")


@pytest.mark.parametrize("drifted", [False, True])
def test_some_is_wanted_and_most_is_not(drifted: bool) -> None:
    drawn = Readings(np.random.default_rng(3)).draw(2_000, drifted)
    events = PublisherLog.of(np.arange(len(drawn)), drawn).events
    for texts in subscriptions(HOSTS, 60).values():
        wanted = np.any([Filter.parse(text, SCHEMA).matches_batch(events) for text in texts], axis=0)
        assert 0.01 < wanted.mean() < 0.5


def test_the_first_plan_covers_all_of_the_later_traffic_for_everybody() -> None:
    plan = RegularPlan.make(SCHEMA, bits=16, dimensions=list(FIRST_DIMENSIONS))
    (text, *_) = subscriptions(HOSTS, 60)["h1"]
    cover = plan.cover(Filter.parse(text, SCHEMA), 32)
    shares = []
    for drifted in (False, True):
        drawn = Readings(np.random.default_rng(3)).draw(300, drifted)
        names = SCHEMA.names
        hits = [
            any(cover.covers(dz) for dz in plan.encode(dict(zip(names, row, strict=True))))
            for row in drawn.tolist()
        ]
        shares.append(np.mean(hits))
    assert shares[0] < 0.1 and shares[1] == 1.0
