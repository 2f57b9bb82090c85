"""Late events and notices on real switches: what is sent again is what a host takes, and a notice is heard."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from place import NETWORK, SCHEMA, Place, play, take, until
from reindexing import Log, Reader, publish_while, stays_behind

from flowsieve.control.core import LATE_EVENTS
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import Guard, known_sources
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.punt import Punt, host_ports, with_ports
from flowsieve.header.match import PrefixMatch
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.serving.guarding import GUARD_RATE, guarding

pytestmark = pytest.mark.real

PLAN = RegularPlan.make(SCHEMA, bits=7, dimensions=["side", "price"])


async def go_over(there: Place, header: str) -> None:
    """Have another index, with tables from ann to bob; what ann sends by the old one is late."""
    dispatcher, (old, new) = there.dispatcher, POOLS[header][:2]
    switches, family = dispatcher._core.switches, new.group.family
    to_bob = deliveries_of(NETWORK, family)["s2"][NETWORK.endpoint("bob").port]
    for switch, action in (("s1", Output(NETWORK.port("s1", "s2"))), ("s2", to_bob)):
        await switches.guard(switch, Guard(new.group, owner=1))
        await switches.apply(switch, [FlowOp(OpKind.INSTALL, Flow(PrefixMatch(new.group), 1000, (action,)))])
    dispatcher.served = ServedIndex(1, new, PLAN)
    dispatcher.fenced = (ServedIndex(0, old, dispatcher.state.plan),)
    late = Punt.within(old.group, EVENT_PORT, rate=LATE_EVENTS)
    await switches.punt("s1", with_ports([late], host_ports(NETWORK, "s1")))


@pytest.mark.parametrize("header", ["ipv6", "ipv4"])
def test_a_late_event_arrives_and_its_publisher_hears_of_it(tmp_path: Path, header: str) -> None:
    async def story(there: Place) -> None:
        ann, other, bob = [await there.client(host) for host in ("ann", "ann", "bob")]
        cheap = await bob.subscribe("price < 512")
        await ann.advertise()
        await other.advertise("price < 3")  # of the same host, and silent
        await until(lambda: cheap.checked)
        await ann.publish(price=1, side="buy")
        assert await take(cheap, 1) == [{"price": 1, "side": "buy"}]
        await go_over(there, header)
        holders, late = there.dispatcher.holders, there.behind.late
        assert len(holders.behind(1)) == 2
        await ann.publish(price=2, side="sell", data=bytes(801))
        assert await take(cheap, 1) == [{"price": 2, "side": "sell"}]
        await until(lambda: not holders.behind(1), 8)  # a renewal is due after 10 s: the notice was heard
        assert late.counters.again == late.counters.received - late.counters.digests == 1
        await there.behind.notices.announce()
        assert not holders.unaware(1)
        for price in (3, 700, 4):
            await ann.publish(price=price, side="buy")
        assert [each["price"] for each in await take(cheap, 2)] == [3, 4]
        counts = bob.stats
        assert (counts.lost, counts.malformed, counts.forged, counts.duplicates, counts.repeats) == (0,) * 5

    play(tmp_path, story, header)


def test_the_network_goes_over_under_its_clients_with_one_that_never_does(tmp_path: Path) -> None:
    """Its hosts are guarded: what is sent again is let in as what they have advertised."""

    def draw(dice: Random) -> dict[str, Any]:
        return {"price": dice.randrange(1024), "side": dice.choice(["buy", "sell"])}

    async def story(there: Place) -> None:
        dispatcher, late = there.dispatcher, there.behind.late
        ann, bob, cy, dee = [await there.client(host) for host in ("ann", "bob", "cy", "dee")]
        stays_behind(cy)
        readers = [await Reader.of(bob, "price < 300"), await Reader.of(dee, "side == 'sell'")]
        await ann.advertise("price < 900 or side == 'sell'")
        await ann.advertise("price >= 900")
        await cy.advertise()
        await until(lambda: all(each.subscription.checked for each in readers))
        logs = [Log(ann), Log(cy)]
        dispatcher.transition.publisher_patience = 1.0
        running = asyncio.create_task(there.behind.notices.run())
        for version, plan in enumerate((PLAN, RegularPlan.make(SCHEMA, bits=5)), 1):
            record = await publish_while(dispatcher.reindex(plan), logs, draw, 0.003, more=20)
            assert record.ended == "arrived"
            assert ann._index.version == version
        running.cancel()
        for reader in readers:
            await reader.read(logs)
            reader.check(logs)
        assert late.counters.again > 20 and late.counters.unsent == late.counters.malformed == 0
        refused = await dispatcher.refusals()
        assert all(each.outside == each.over_rate == 0 for each in refused.values())

    play(tmp_path, story, guarding=guarding(True, GUARD_RATE, None, partial(known_sources, family=6)))
