"""All that the demo works out, each part when it is first asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from flowsieve.client.pubsub import PubSub
from flowsieve.demo.compare import Carried, best_broker, broadcast, brokered
from flowsieve.demo.delivery import Delivered, install, send
from flowsieve.demo.story import Statement, Story
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict

SIEVE, BROADCAST, BROKER = "flowsieve", "broadcast", "central broker"


class Telling:
    """A story on a network of its own; `seconds` says how long each part took."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.seconds: dict[str, float] = {}

    @cached_property
    def pubsub(self) -> PubSub:
        """The network with every request served."""
        with self._timed("serving"):
            return install(self.story)

    @cached_property
    def tables(self) -> Mapping[str, int]:
        """The entries of each switch."""
        return {switch: len(flows) for switch, flows in self.pubsub.tables().items()}

    @cached_property
    def delivered(self) -> Delivered:
        pubsub = self.pubsub
        with self._timed("sending"):
            return send(pubsub, self.story)

    @cached_property
    def broker(self) -> str:
        """The best host for a broker."""
        return best_broker(self.delivered.traffic)

    @cached_property
    def ways(self) -> Mapping[str, Carried]:
        """What the network carried, and what the others would have."""
        traffic = self.delivered.traffic
        return {
            SIEVE: self.delivered.carried,
            BROADCAST: broadcast(traffic),
            BROKER: brokered(traffic, self.broker),
        }

    @cached_property
    def followed(self) -> Explanation:
        """The way of one event."""
        return self.pubsub.explain(self.story.followed_host, self.story.followed)

    @cached_property
    def verdict(self) -> Verdict:
        pubsub = self.pubsub
        with self._timed("proving"):
            return pubsub.verify()

    @cached_property
    def interests(self) -> Mapping[str, Statement]:
        """The subscriptions by id."""
        return {each.id: each for each in self.story.subscriptions}

    @property
    def speaker(self) -> str:
        """Who publishes the event that is followed."""
        return next(each.who for each in self.story.advertisements if each.host == self.story.followed_host)

    @property
    def holds(self) -> bool:
        """Whether nothing was lost or doubled, applications saw exact results, and the tables are proved."""
        return self.delivered.holds and not self.followed.missed and self.verdict.holds

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part] = time.perf_counter() - start
