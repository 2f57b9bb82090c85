"""Late events and notices on real switches: what is sent again is what a host takes, and a notice is heard."""

from __future__ import annotations

from pathlib import Path

import pytest
from place import NETWORK, SCHEMA, Place, play, take, until

from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.guard import Guard
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.punt import Punt, host_ports, with_ports
from flowsieve.header.match import PrefixMatch
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.serving.late_resender import LATE_RATE

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
    late = Punt.within(old.group, EVENT_PORT, rate=LATE_RATE)
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
