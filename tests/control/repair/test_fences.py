"""Fences outlive controllers, and what cannot be fenced holds up nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import combinations

import pytest
from lives import PATIENCE, Lives

from flowsieve.control.request import Op
from flowsieve.network.generators import ring
from flowsieve.network.mend import Edge, tree_edges
from flowsieve.network.topology import Topology

MESH = Topology.make(
    [(f"s{a}", f"s{b}") for a, b in combinations(range(4), 2)], {f"h{i}": f"s{i}" for i in range(4)}
)


@asynccontextmanager
async def living(topology: Topology, *, populated: bool = True) -> AsyncIterator[Lives]:
    """A network, proved after every change; if it is populated, all hosts publish and want everything."""
    there = Lives(topology)
    async with asyncio.timeout(PATIENCE):
        await there.start()
        try:
            if populated:
                await there.populate()
            yield there
        finally:
            await there.kill()


async def until(there: Lives, *, down: set[Edge], closed: set[Edge]) -> None:
    """Wait until these links are done without, and these are fenced."""
    while there.dispatcher.state.down != down or there.dispatcher.fences.closed != closed:
        await asyncio.sleep(0.001)


def a_tree_edge(there: Lives) -> tuple[str, str]:
    return there.dispatcher.state.trees.trees[0].edges[0]


async def pulled_and_plugged_beside_a_stranded_switch(there: Lives) -> tuple[str, str]:
    """A switch that cannot be reached still sends over a link that the trees do without; it is up and fenced."""
    near, far = a_tree_edge(there)
    there.strand(far)
    there.fabric.set_link(near, far, up=False)
    await until(there, down={frozenset((near, far))}, closed={frozenset((near, far))})
    there.fabric.set_link(near, far, up=True)
    await until(there, down=set(), closed={frozenset((near, far))})
    return near, far


@pytest.mark.parametrize("lost", [False, True], ids=["kept by its switch", "lost by its switch"])
def test_a_fence_outlives_the_controller_until_both_ends_have_followed(lost: bool) -> None:
    async def story() -> None:
        async with living(ring(4)) as there:
            near, far = await pulled_and_plugged_beside_a_stranded_switch(there)
            await there.kill()
            if lost:
                there.fabric.restart(near)
            await there.start()
            while there.dispatcher.troubles.keys() != {far}:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert there.fabric.closed == there.dispatcher.fences.closed == {frozenset((near, far))}
            there.away.clear()
            there.connect()
            await until(there, down=set(), closed=set())
            assert not there.fabric.closed
            await there.check()

    asyncio.run(story())


def test_a_controller_that_starts_from_a_snapshot_knows_what_is_fenced() -> None:
    async def story() -> None:
        async with living(ring(4)) as there:
            near, far = await pulled_and_plugged_beside_a_stranded_switch(there)
            for compact in (True, False):
                await there.kill()
                await there.start(compact=compact)
                assert there.dispatcher.fences.closed == {frozenset((near, far))}

    asyncio.run(story())


def test_a_fence_that_was_made_and_not_acknowledged_is_known_when_its_switch_is_back() -> None:
    async def story() -> None:
        async with living(ring(4)) as there:
            near, far = a_tree_edge(there)
            there.strand(far)
            there.fabric.lose_answer(near)
            there.fabric.set_link(near, far, up=False)
            while near not in there.dispatcher.troubles:
                await asyncio.sleep(0.001)
            assert frozenset((near, far)) in tree_edges(there.dispatcher.state.trees)
            await there.kill()
            there.fabric.set_link(near, far, up=True)
            await there.start()
            while there.dispatcher.troubles.keys() != {far}:
                await asyncio.sleep(0.001)
            assert there.dispatcher.fences.closed == {frozenset((near, far))}
            there.away.clear()
            there.connect()
            await until(there, down=set(), closed=set())
            await there.check()

    asyncio.run(story())


def test_a_fence_that_was_to_be_opened_is_not_built_on_when_the_answer_is_lost() -> None:
    """Open or not, nobody knows; if the link dies then, it has to be fenced anew before another takes its place."""

    async def story() -> None:
        async with living(ring(4)) as there:
            near, far = a_tree_edge(there)
            edge = frozenset((near, far))
            there.fabric.set_link(near, far, up=False)
            await until(there, down={edge}, closed={edge})
            await there.dispatcher.settled()  # or it would be the answer to a table that is lost
            for end in edge:
                there.fabric.lose_answer(end)
            there.fabric.set_link(near, far, up=True)
            while there.dispatcher.fences.sure or not there.dispatcher.troubles.keys() >= edge:
                await asyncio.sleep(0.001)
            there.fabric.set_link(near, far, up=False)
            await asyncio.sleep(0.05)
            assert not there.dispatcher.fences.sure
            there.connect()
            there.fabric.set_link(near, far, up=True)
            await until(there, down=set(), closed=set())
            await there.check()

    asyncio.run(story())


def test_a_dead_link_whose_ends_are_both_away_holds_up_neither_mending_nor_requests_elsewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As where a rack loses power: the link in it was told to be down, then both its ends are gone."""

    async def story() -> None:
        async with living(ring(6), populated=False) as there:
            state = there.dispatcher.state
            stuck = frozenset(("s2", "s3"))
            assert tree_edges(state.trees) >= {stuck, frozenset(("s0", "s1")), frozenset(("s0", "s5"))}
            there.strand("s2")
            there.fabric.set_link("s2", "s3", up=False)
            there.strand("s3")
            while state.down != {stuck}:
                await asyncio.sleep(0.001)
            assert stuck in tree_edges(state.trees)  # it is not fenced, so nothing may take its place
            there.fabric.set_link("s0", "s5", up=False)
            while frozenset(("s0", "s5")) in tree_edges(state.trees):
                await asyncio.sleep(0.001)
            await asyncio.gather(
                there.ask(Op.ADVERTISE, "h0", "a < 3"), there.ask(Op.SUBSCRIBE, "h1", "True")
            )
            waiting = there.ask(Op.SUBSCRIBE, "h3", "True")
            await asyncio.sleep(0.5)
            assert not waiting.done()
            (told,) = [each.getMessage() for each in caplog.records if "are fenced" in each.getMessage()]
            assert "neither end of the link s2 - s3 can be reached" in told
            there.away.clear()
            there.connect()
            for edge in (stuck, ("s0", "s5")):
                there.fabric.set_link(*edge, up=True)
            await waiting
            await until(there, down=set(), closed=set())
            await there.check()

    with caplog.at_level(logging.WARNING, "flowsieve.control.repair"):
        asyncio.run(story())


def test_mending_takes_a_fenced_link_only_where_no_other_is_and_only_those_wait_whose_way_it_is() -> None:
    async def story() -> None:
        async with living(MESH, populated=False) as there:
            near, far = await pulled_and_plugged_beside_a_stranded_switch(there)
            fenced, state = frozenset((near, far)), there.dispatcher.state
            for left in (2, 1, 0):  # other links that lead to it
                (edge,) = [edge for edge in tree_edges(state.trees) if far in edge]
                assert (edge == fenced) == (left == 0)
                if left:
                    there.fabric.set_link(*edge, up=False)
                    while edge in tree_edges(state.trees):
                        await asyncio.sleep(0.001)
            beyond, *here = sorted(there.topology.hosts, key=lambda host: there.topology.hosts[host] != far)
            await asyncio.gather(
                *(there.ask(op, host, "a < 9") for host in here for op in (Op.ADVERTISE, Op.SUBSCRIBE))
            )
            waiting = there.ask(Op.SUBSCRIBE, beyond, "a < 9")
            there.away.clear()
            there.connect()
            await waiting
            assert fenced not in there.fabric.closed
            await there.check()

    asyncio.run(story())


def test_a_mend_on_a_full_disk_is_kept_in_what_is_set_aside() -> None:
    """Also that which a second life mends; all of it is in the journal when there is room."""

    async def story() -> None:
        async with living(MESH) as there:
            first, *_ = (frozenset(edge) for edge in there.dispatcher.state.trees.trees[0].edges)
            there.memory.full = True
            there.fabric.set_link(*first, up=False)
            await until(there, down={first}, closed={first})
            await again(there)
            second = next(iter(tree_edges(there.dispatcher.state.trees)))
            there.fabric.set_link(*second, up=False)
            await until(there, down={first, second}, closed={first, second})
            await again(there)
            there.memory.full = False
            await asyncio.gather(there.ask(Op.ADVERTISE, "h0", "a < 3"))
            await again(there)
            assert there.dispatcher.fences.closed == {first, second}
            await there.check()

    asyncio.run(story())


async def again(there: Lives) -> None:
    """Kill a controller; the next one has the same trees."""
    trees = there.dispatcher.state.trees
    await there.kill()
    await there.start()
    assert there.dispatcher.state.trees == trees


def test_where_a_mend_can_be_kept_nowhere_the_trees_stay_and_a_dead_edge_is_fenced_all_the_same() -> None:
    """What is mended and not written down would be other trees after a kill, while switches hold tables of these."""

    async def story() -> None:
        async with living(ring(4)) as there:
            near, far = a_tree_edge(there)
            edge = frozenset((near, far))
            before = there.dispatcher.state.trees
            there.memory.full, there.memory.reserve = True, False
            there.fabric.set_link(near, far, up=False)
            while edge not in there.dispatcher.fences.sure or there.dispatcher.scribe.trouble is None:
                await asyncio.sleep(0.001)
            assert there.dispatcher.state.trees == before and not there.dispatcher.mended
            await there.kill()
            await there.start()
            assert there.dispatcher.state.trees == before
            while there.dispatcher.scribe.trouble is None:
                await asyncio.sleep(0.001)
            there.memory.full = False
            await until(there, down={edge}, closed={edge})
            assert edge not in tree_edges(there.dispatcher.state.trees)
            trees = there.dispatcher.state.trees
            await there.kill()
            await there.start()
            assert there.dispatcher.state.trees == trees
            await there.check()

    asyncio.run(story())
