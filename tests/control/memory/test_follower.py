"""A state that follows another controller's journal is what that journal leads to, whenever it is asked."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.etcd_journal import EtcdJournal
from flowsieve.control.memory.follower import Follower
from flowsieve.control.memory.journal import Asked, Entry, Origin, Past, Rewired
from flowsieve.control.memory.recovery import advance, recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.shared.etcd import Etcd
from flowsieve.control.shared.leadership import Leadership
from flowsieve.control.state import ControlState, Settings
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import generate
from flowsieve.network.tree import TreeMap
from flowsieve.testing.etcd_servers import EtcdServers, etcd_installed

pytestmark = pytest.mark.skipif(not etcd_installed(), reason="there is no etcd; apt-get install etcd-server")

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 63}})
NETWORK = generate("ring:4")
PLAN = RegularPlan.make(SCHEMA)


def fresh(capacity: int | None, trees: TreeMap | None) -> ControlState:
    return ControlState(NETWORK, PLAN, trees, Settings(budget=8, capacity=capacity))


def some(dice: Random, number: int) -> Entry:
    """What a controller may be asked, or find."""
    if number == 0:
        return Asked(Request(Op.ADVERTISE, "all", "h0", Filter.parse("True", SCHEMA)), Origin("h0", 1, 0.0))
    if dice.random() < 0.1:
        edges = [frozenset((link.a, link.b)) for link in NETWORK.links]
        return Rewired(frozenset(dice.sample(edges, dice.randrange(2))))
    low, host = dice.randrange(60), f"h{dice.randrange(1, 4)}"
    wanted = Filter.parse(f"{low} <= a < {low + dice.randrange(1, 9)}", SCHEMA)
    if number > 5 and dice.random() < 0.3:
        return Asked(Request(Op.UNSUBSCRIBE, str(dice.randrange(1, number)), host), Origin(host, number, 0.0))
    return Asked(Request(Op.SUBSCRIBE, str(number), host, wanted), Origin(host, number, 0.0))


def told(known: tuple[ControlState, Ledger]) -> object:
    state, ledger = known
    return state.tables, state.trees, state.subscriptions, ledger.to_json()


@pytest.mark.parametrize("capacity", [None, 6])
def test_it_is_what_the_journal_leads_to(tmp_path: Path, capacity: int | None) -> None:
    async def story(servers: EtcdServers) -> None:
        dice, make = Random(7), partial(fresh, capacity)
        etcds = [Etcd(servers.addresses, "network") for _ in range(2)]
        leadership = Leadership(etcds[0], "a", {}, 30)
        await leadership.win()
        journal = await EtcdJournal.opened(leadership, "base")
        follower, leads = Follower(etcds[1], SCHEMA, make), recover(Past(), make)
        following = asyncio.create_task(follower.follow())
        number = 0
        for turn in range(30):
            slice = [some(dice, n) for n in range(number, number + dice.randrange(1, 6))]
            number += len(slice)
            await journal.append(slice)
            advance(*leads, slice)
            if dice.random() < 0.2:
                await journal.compact(snapshot(*leads), journal.number)
            if dice.random() < 0.2:
                await follower._take_up()
            if turn % 10 == 9:
                assert told(await follower.caught_up()) == told(leads)
                assert told(recover(await journal.load(SCHEMA), make)) == told(leads)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await leadership.leave()
        for etcd in etcds:
            await etcd.close()

    with EtcdServers(tmp_path) as servers:
        asyncio.run(story(servers))
