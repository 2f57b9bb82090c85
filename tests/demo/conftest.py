"""A short telling of the story, which several tests look at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowsieve.demo.story import Story, make_story
from flowsieve.demo.telling import Telling


def short_story() -> Story:
    story = make_story(readings=1500)
    return replace(story, subscriptions=story.subscriptions[:28])


@pytest.fixture(scope="session")
def told() -> Telling:
    """Shared: its tables stay as they are."""
    return Telling(short_story())


@pytest.fixture
def untold() -> Telling:
    """One of a test's own."""
    return Telling(short_story())
