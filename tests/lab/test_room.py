"""Real switches whose tables are taken by others' entries, and given back."""

from __future__ import annotations

import asyncio
import subprocess
import time

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.lab import Lab, running
from flowsieve.lab.real_network import bound_tables
from flowsieve.network.generators import line
from flowsieve.testing.lab_control import controlled

pytestmark = pytest.mark.real

SCHEMA = Schema.parse({name: {"type": "int", "min": 0, "max": 1023} for name in "ab"})
LIMIT, TAKEN = 300, 206
OURS, THEIRS = "0xf1055e1e00000000", "0x7"  # cookies
PATIENCE_SECONDS = 120.0


def of_others(lab: Lab, command: str, flows: str) -> None:
    """Somebody else changes the table of s0."""
    words = ["ovs-ofctl", "-O", "OpenFlow14", command, f"unix:{lab.management('s0')}", "-"]
    subprocess.run(words, input=flows, text=True, check=True, capture_output=True)


@pytest.mark.parametrize("cookie", [OURS, THEIRS], ids=["a cookie like ours", "another cookie"])
def test_the_room_that_others_take_is_found_at_once_and_found_again_when_they_go(cookie: str) -> None:
    topology = line(2)
    state = ControlState(topology, RegularPlan.make(SCHEMA))
    taken = "".join(f"table=1,ipv6,ipv6_dst=fd00:{n:x}::/32" + "{}\n" for n in range(1, TAKEN + 1))

    async def story(lab: Lab) -> None:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            controlled(lab, state, encoding_of("ipv6")) as dispatcher,
        ):
            await dispatcher.settled()
            bound_tables(lab, LIMIT)
            made = taken.replace("{}", f",cookie={cookie},priority=5,actions=drop")
            await asyncio.to_thread(of_others, lab, "add-flows", made)
            await dispatcher.submit(Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)))
            longest = 0.0
            for n in range(6):
                a, b = 137 * n % 900, 91 * n % 900
                wanted = Filter.parse(f"{a} <= a < {a + 53} and {b} <= b < {b + 57}", SCHEMA)
                began = time.monotonic()
                assert not (await dispatcher.submit(Request(Op.SUBSCRIBE, f"s{n}", "h1", wanted))).refused
                longest = max(longest, time.monotonic() - began)
            assert state.capacity("s0") == LIMIT - TAKEN
            assert longest < 8  # 206 steps took 16 s
            assert (await dispatcher.verify()).holds
            await asyncio.to_thread(of_others, lab, "del-flows", taken.replace("{}", ""))
            while state.bounds or state.waste():
                await asyncio.sleep(0.01)
            await dispatcher.settled()
            assert len((await dispatcher.tables())["s0"]) > LIMIT - TAKEN
            assert (await dispatcher.verify()).holds

    with running(topology) as lab:
        asyncio.run(story(lab))
