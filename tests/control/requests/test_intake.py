"""Requests that come together are worked on as one, and each is answered by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from livenet import SCHEMA, Net, running

from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.control.state import Outcome
from flowsieve.errors import BadInput


def subscription(id: str, host: str, text: str) -> Request:
    return Request(Op.SUBSCRIBE, id, host, Filter.parse(text, SCHEMA))


class Slices:
    """How many requests the state got at a time."""

    def __init__(self, net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        step = net.dispatcher.state.step

        def counted(requests: Sequence[Request]) -> Outcome:
            outcome = step(requests)
            self.sizes.append(len(requests))
            return outcome

        monkeypatch.setattr(net.dispatcher.state, "step", counted)


def test_many_at_once_are_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running(Net("line:4")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            slices = Slices(net, monkeypatch)
            asked = [subscription(f"q{n}", f"h{n % 4}", f"a < {n + 1}") for n in range(50)]
            outcomes = await asyncio.gather(*map(net.dispatcher.submit, asked))
            assert not any(outcome.refused for outcome in outcomes)
            assert sum(slices.sizes) == 50 and max(slices.sizes) > 10
            await net.holds()

    asyncio.run(story())


def test_in_one_slice_those_wait_that_depend_on_a_switch_that_is_away_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with running(Net("line:4", patience=20)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            old = [await net.ask(Op.SUBSCRIBE, host, "a < 50") for host in ("h1", "h3")]
            net.fabric.disconnect("s3")
            slices = Slices(net, monkeypatch)
            near, far, end_near, end_far = (
                asyncio.create_task(net.dispatcher.submit(request))
                for request in (
                    subscription("near", "h1", "a > 200"),
                    subscription("far", "h3", "a > 100"),
                    Request(Op.UNSUBSCRIBE, old[0], "h1"),
                    Request(Op.UNSUBSCRIBE, old[1], "h3"),
                )
            )
            await asyncio.gather(near, end_near)
            await asyncio.sleep(0.02)
            assert slices.sizes == [4]
            assert not far.done() and not end_far.done()
            net.fabric.connect("s3")
            await asyncio.gather(far, end_far)
            await net.holds()

    asyncio.run(story())


def test_a_bad_request_among_others_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running(Net("line:2")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            Slices(net, monkeypatch)
            asked = [subscription(id, "h1", "a < 50") for id in ("one", "two", "one", "three")]
            told: list[Any] = await asyncio.gather(*map(net.dispatcher.submit, asked), return_exceptions=True)
            assert [isinstance(each, BadInput) for each in told] == [False, False, True, False]
            assert net.dispatcher.state.subscriptions.keys() == {"one", "two", "three"}
            await net.holds()

    asyncio.run(story())


def test_where_tables_are_bounded_requests_are_taken_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        net = Net("line:2")
        net.dispatcher.state.bound("s1", 20)
        async with running(net):
            await net.ask(Op.ADVERTISE, "h0", "True")
            slices = Slices(net, monkeypatch)
            asked = [subscription(f"q{n}", "h1", f"{9 * n} <= a < {9 * n + 5}") for n in range(9)]
            await asyncio.gather(*map(net.dispatcher.submit, asked))
            assert slices.sizes == [1] * 9
            await net.holds()

    asyncio.run(story())


def test_a_client_that_gives_up_takes_its_request_with_it_and_no_other() -> None:
    async def story() -> None:
        async with running(Net("line:3", patience=20)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            net.fabric.disconnect("s2")
            one, other = (
                asyncio.create_task(net.dispatcher.submit(subscription(id, "h2", "a < 9"))) for id in "xy"
            )
            while len(net.dispatcher.state.subscriptions) < 2:
                await asyncio.sleep(0.001)
            one.cancel()
            while len(net.dispatcher.state.subscriptions) > 1:
                await asyncio.sleep(0.001)
            net.fabric.connect("s2")
            assert not (await other).refused
            assert net.dispatcher.state.subscriptions.keys() == {"y"}
            await net.holds()

    asyncio.run(story())
