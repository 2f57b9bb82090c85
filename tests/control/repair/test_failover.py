"""Detours stand in for dead links, and the trees stay as they are; once they cannot, the trees are mended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from lives import PATIENCE, Lives

from flowsieve.network.generators import generate
from flowsieve.network.mend import tree_edges
from flowsieve.network.topology import Topology


def played(topology: Topology, story: Callable[[Lives], Awaitable[None]]) -> None:
    async def whole() -> None:
        lives = Lives(topology, detours=True)
        async with asyncio.timeout(PATIENCE):
            await lives.start()
            try:
                await lives.populate()
                await until(
                    lambda: lives.dispatcher.detours.keys() == tree_edges(lives.dispatcher.state.trees)
                )
                await story(lives)
            finally:
                await lives.kill()

    asyncio.run(whole())


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def pull(lives: Lives, a: str, b: str) -> None:
    lives.fabric.set_link(a, b, up=False)


def test_a_dead_link_is_bridged_and_the_trees_keep_it() -> None:
    async def story(lives: Lives) -> None:
        state = lives.dispatcher.state
        before, operations = state.trees, lives.dispatcher.operations
        pull(lives, "s0", "s1")
        assert not lives.fabric.closed  # at once, without anybody's doing
        await until(lambda: state.down == {frozenset(("s0", "s1"))})
        await lives.check()
        assert state.trees is before and lives.dispatcher.operations == operations
        assert not lives.dispatcher.fences.closed and lives.dispatcher.mended
        lives.fabric.set_link("s0", "s1", up=True)
        await until(lambda: not state.down)
        await lives.check()
        assert state.trees is before

    played(generate("ring:4"), story)


def test_when_the_way_around_dies_as_well_the_trees_are_mended() -> None:
    async def story(lives: Lives) -> None:
        state = lives.dispatcher.state
        before = state.trees
        pull(lives, "s0", "s1")
        await until(lambda: len(state.down) == 1)
        _, through, _ = lives.dispatcher.detours[frozenset(("s0", "s1"))]
        pull(lives, "s0", through)
        await until(lambda: len(state.down) == 2 and lives.dispatcher.mended)
        await lives.check()
        assert state.trees is not before
        assert not tree_edges(state.trees) & state.down

    links = [("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0"), ("s1", "s3"), ("s0", "s2")]
    played(Topology.make(links, {f"h{i}": f"s{i}" for i in range(4)}), story)


def test_a_fence_shuts_out_the_detours_of_its_link() -> None:
    async def story(lives: Lives) -> None:
        """s1 cannot be reached, and goes on sending around; none of it may land once the trees do without the link."""
        lives.strand("s1")
        pull(lives, "s0", "s1")
        await until(lambda: len(lives.dispatcher.state.down) == 1)
        assert not lives.fabric.closed
        pull(lives, "s2", "s3")  # on the way around; checks after every change see to it that nothing doubles
        await until(lambda: lives.dispatcher.fences.closed >= {frozenset(("s0", "s1"))})
        lives.fabric.set_link("s2", "s3", up=True)
        await until(lambda: len(lives.dispatcher.state.down) == 1)
        assert frozenset(("s0", "s1")) in lives.fabric.closed

    played(generate("ring:4"), story)


@pytest.mark.parametrize("grace", [0.1, 1000.0])
def test_a_controller_that_starts_anew_finds_the_bridge(
    grace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowsieve.control.repair.failover.GRACE_SECONDS", grace)

    async def story(lives: Lives) -> None:
        before = lives.dispatcher.state.trees
        pull(lives, "s0", "s1")
        await until(lambda: len(lives.dispatcher.state.down) == 1)
        await lives.kill()
        await lives.start()
        await asyncio.sleep(0.2)
        await lives.check()
        assert lives.dispatcher.state.trees == before
        assert not lives.dispatcher.fences.closed

    played(generate("ring:4"), story)


def test_a_bridge_that_was_lost_while_the_controller_was_away_is_not_believed_in() -> None:
    async def story(lives: Lives) -> None:
        pull(lives, "s0", "s1")
        await until(lambda: len(lives.dispatcher.state.down) == 1)
        await lives.kill()
        lives.fabric.restart("s2")  # which passed on what went around
        await lives.start()
        await lives.check()
        assert not lives.fabric.closed - lives.dispatcher.state.down

    played(generate("ring:4"), story)


def test_a_link_without_a_way_around_is_no_concern_of_theirs() -> None:
    async def story(lives: Lives) -> None:
        pull(lives, "s0", "s1")
        await until(lambda: len(lives.dispatcher.state.down) == 1)
        await lives.check()

    topology = Topology.make([("s0", "s1")], {"h0": "s0", "h1": "s1"})

    async def whole() -> None:
        lives = Lives(topology, detours=True)
        async with asyncio.timeout(PATIENCE):
            await lives.start()
            await lives.populate()
            await story(lives)
            assert not lives.dispatcher.detours
            await lives.kill()

    asyncio.run(whole())
