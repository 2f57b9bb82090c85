"""What others have in the way of events is told; our own fences are not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from livenet import ENCODING, Net, running

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import NoJournal
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.request import Op
from flowsieve.control.state import Settings
from flowsieve.control.switches.hindrances import FENCE, Hindrances, shadowing
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.header.address import Prefix
from flowsieve.index.dz import Dz
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.southbound.fabric import TableChanged

DROP = Foreign(3000, "a drop", Prefix.parse("ff00::/8"), certain=True)


def test_an_entry_of_others_is_told_while_it_is_there_and_stays() -> None:
    async def story() -> None:
        async with running(Net("line:3")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            for there in ((DROP,), ()):
                net.fabric.strangers["s1"] = there
                net.dispatcher.heard(TableChanged("s1"))
                await net.dispatcher.settled()
                told = {"s1": "an entry of others comes before ours: a drop"} if there else {}
                assert net.dispatcher.hindrances == told
                assert (await net.dispatcher.verify()).holds == (not there)
                assert net.dispatcher.foreign("s1") == there

    asyncio.run(story())


def test_what_is_in_the_way_of_labels_alone_is_told_where_dz_are_sent_too() -> None:
    async def story() -> None:
        mixed = Settings(labelled=True, label_hosts=HostPatterns(("h0",)))
        async with running(Net("line:3", settings=mixed)) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            await net.ask(Op.ADVERTISE, "h1", "True")
            for reach, told in (("ff1e::/16", True), ("ff0e::/16", True), ("ff15::/16", False)):
                net.fabric.strangers["s1"] = (replace(DROP, reach=Prefix.parse(reach)),)
                net.dispatcher.heard(TableChanged("s1"))
                await net.dispatcher.settled()
                assert bool(net.dispatcher.hindrances) == told
                assert bool(net.dispatcher.foreign("s1")) == told
                assert (await net.dispatcher.verify()).holds == (not told)

    asyncio.run(story())


def test_a_link_that_is_fenced_and_opened_again_is_never_told() -> None:
    async def story() -> None:
        async with running(Net("ring:4")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            for _ in range(2):
                for a, b in (("s0", "s1"), ("s2", "s3")):
                    for up in (False, True):
                        net.fabric.set_link(a, b, up)
                        net.fabric.disconnect(b)
                        net.fabric.connect(b)
                        await net.holds()
                        for _ in range(20):  # for whoever looks at the ports
                            await asyncio.sleep(0)
                            assert net.dispatcher.hindrances == {}

    asyncio.run(story())


def test_a_port_that_others_have_closed_is_told_until_they_open_it() -> None:
    async def story() -> None:
        async with running(Net("line:3")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            port = net.topology.port("s1", "s2")
            for closed in (True, False):
                await net.fabric.fence("s1", port, closed)
                net.fabric.set_link("s1", "s2", up=True)  # the switch reports the port
                told = {"s1": "its port to s2 is set to no-receive and no-forward"} if closed else {}
                async with asyncio.timeout(20):
                    while net.dispatcher.hindrances != told:
                        await asyncio.sleep(0.01)
                assert (await net.dispatcher.verify()).holds == (not closed)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (DROP, True),
        (replace(DROP, in_port=2), True),
        (replace(DROP, certain=False), False),
        (replace(DROP, goes_on=True), False),
        (replace(DROP, priority=1001), False),  # below that of the one entry of ours
        (replace(DROP, priority=1002), True),
        (replace(DROP, reach=Prefix.parse("ff15::/16")), False),
        (replace(DROP, reach=Prefix.parse("ff0e::/18")), True),
        (replace(DROP, reach=Prefix.parse("ff0e:4000::/18")), False),
        (replace(DROP, reach=Prefix.parse("225.128.0.0/9")), False),
    ],
)
def test_an_entry_shadows_what_it_surely_comes_before(entry: Foreign, told: bool) -> None:
    assert list(shadowing(ENCODING, [entry], {Dz.parse("00"): (1,)})) == ([entry] if told else [])


def test_a_fence_that_is_opened_while_the_ports_are_read_is_not_told() -> None:
    async def story() -> None:
        async with running(Net("ring:4")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 16")
            near, far = net.dispatcher.state.trees.trees[0].edges[0]
            fenced = {frozenset((near, far))}

            class Opening:
                """Switches of which a fence is opened just after it was read."""

                def foreign(self, switch: str) -> tuple[Foreign, ...]:
                    return ()

                async def settings(self, switch: str) -> dict[int, PortSetting]:
                    fenced.clear()
                    return {net.dispatcher.state.topology.port(near, far): FENCE}

            core = Core(net.dispatcher.state, Opening(), ENCODING, Scribe(NoJournal()))  # type: ignore[arg-type]
            found = Hindrances(core, lambda: frozenset(fenced))
            await found.look(near)
            assert found.told == {}
            await found.look(near)  # nobody of ours has closed it now
            assert list(found.told) == [near]

    asyncio.run(story())
