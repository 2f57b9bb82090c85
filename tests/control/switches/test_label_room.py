"""A switch without room for its labels in a network that is mended: it is in the way of what crosses it alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import Refused, SwitchError
from flowsieve.flow.proof.proving import proved
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.southbound.fabric import SwitchEvent
from flowsieve.testing.embedded_fabric import EmbeddedFabric

SCHEMA = Schema.parse({"x": {"type": "int", "min": 0, "max": 9}})


def test_others_are_mended_and_served_though_one_switch_has_no_room_for_the_new_tree() -> None:
    topology = generate("ring:4")
    state = ControlState(topology, RegularPlan.make(SCHEMA, bits=0), settings=Settings(labelled=True))
    tree = state.trees.trees[0]
    ends = [switch for switch in topology.switches if sum(switch in edge for edge in tree.edges) == 1]
    small, large = (
        ends  # the ring's link between them is in no tree; they are in the middle when another one dies
    )
    (middle,) = (edge for edge in tree.edges if not set(edge) & set(ends))
    network = EmbeddedNetwork(topology, {small: state.size(small)})

    def heard(event: SwitchEvent) -> None:
        dispatcher.heard(event)

    fabric = EmbeddedFabric(network, heard)
    dispatcher = Dispatcher(state, fabric, encoding_of("receivers"), patience=2.0, drain=0)

    def host(switch: str) -> str:
        return topology.attached_at(switch)[0]

    async def ask(op: Op, id: str, switch: str) -> None:
        outcome = await dispatcher.submit(Request(op, id, host(switch), Filter.parse("True", SCHEMA)))
        for _, reason in outcome.refused:
            raise reason

    async def left(edge: Sequence[str]) -> None:
        """Wait until the tree does without a link."""
        while frozenset(edge) in map(frozenset, dispatcher.state.trees.trees[0].edges):
            await asyncio.sleep(0.01)

    async def story() -> None:
        async with asyncio.timeout(60), dispatcher:
            for switch in topology.switches:
                fabric.connect(switch)
            await ask(Op.ADVERTISE, "a", large)
            fabric.set_link(*middle, up=False)
            await left(middle)
            near, far = (next(s for s in middle if s in topology.linked(end)) for end in (large, small))
            await ask(Op.SUBSCRIBE, "near", near)
            with pytest.raises((Refused, SwitchError), match=small):
                await ask(Op.SUBSCRIBE, "far", far)  # which only the small one leads to
            assert set(dispatcher.troubles) == {small}
            fabric.set_link(*middle, up=True)
            fabric.set_link(large, near, up=False)  # now that its room is known
            await left((large, near))
            fabric.set_link(large, near, up=True)
            fabric.set_link(*middle, up=False)
            await left(middle)
            while set(dispatcher.troubles) != {small} or not dispatcher.mended:
                await asyncio.sleep(0.01)
            view = await dispatcher.view()
            assert (
                proved(replace(view, subscriptions=list(state.subscriptions.values()))).false_negatives == 0
            )

    asyncio.run(story())
