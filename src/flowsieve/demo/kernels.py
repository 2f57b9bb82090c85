"""The demo's kernels compiled by two processes at once, which halves the wait when it is run for the first time.

Numba keeps what it compiled on disk, so each process takes half and finds the other's half there. What neither
has compiled is compiled when the demo first needs it.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np

from flowsieve.client.batch_packets import packets_of
from flowsieve.content.filter import Filter
from flowsieve.demo.delivery import BUDGET, TABLES, TREES, install
from flowsieve.demo.story import Story, make_story
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dzset import DzSet
from flowsieve.index.dzset_kernel import canonical
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.tree import TreeMap
from flowsieve.southbound.embedded.network import EmbeddedNetwork


def are_compiled() -> bool:
    """Whether an earlier run has left the kernels on disk, judged by the first that is used."""
    DzSet.of("0")
    return not canonical.stats.cache_misses


def compile_kernels() -> None:
    """Compile half of them here, the other half in a process of its own."""
    other = subprocess.Popen([sys.executable, "-m", "flowsieve.demo.kernels"])
    try:
        story = replace(make_story(readings=0), advertisements=(), subscriptions=())
        _compiler(story).change("h0", Side.SUBSCRIBER, DzSet.of("01"), adding=True)
        pubsub = install(story)
        pubsub.verify()
        pubsub.state.plan.touches(Filter.parse("alarm", story.schema), DzSet.of("0") - DzSet.of("01"))
    finally:
        other.wait()


def _compile_other_half() -> None:
    story = make_story(readings=10)
    plan = RegularPlan.make(story.schema)
    plan.cover(Filter.parse("alarm", story.schema), BUDGET, EventSample.of(plan, story.yesterday))
    packets = packets_of(story.events, plan, encoding_of("ipv6"))
    EmbeddedNetwork(story.topology).deliver(np.zeros(len(packets.rows), np.int64), packets.hi, packets.lo)
    _compiler(story).update()  # last: it finds much of what it needs compiled by the first half


def _compiler(story: Story) -> Compiler:
    return Compiler(story.topology, TreeMap.spread(story.topology, TREES), TABLES)


if __name__ == "__main__":
    _compile_other_half()
