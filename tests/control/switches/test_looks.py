"""What switches really hold, for many who want to see it."""

from __future__ import annotations

import asyncio
from collections import Counter

from livenet import Net, running

from flowsieve.control.request import Op
from flowsieve.flow.entry import Flow


class Counted(Net):
    """A network whose switches are looked at when they may be, and counted."""

    def __init__(self, topology: str) -> None:
        super().__init__(topology)
        self.looks, self.reads = Counter[str](), Counter[str]()
        self.may_look = asyncio.Event()
        self.may_look.set()
        self.strange = Counter[str]()  # entries that the next read removes
        look, read = self.fabric.look, self.fabric.read

        async def counted_look(switch: str) -> tuple[tuple[Flow, ...], int]:
            self.looks[switch] += 1
            await self.may_look.wait()
            flows, _ = await look(switch)
            return flows, self.strange[switch]

        async def counted_read(switch: str) -> tuple[Flow, ...]:
            self.reads[switch] += 1
            self.strange[switch] = 0
            return await read(switch)

        self.fabric.look, self.fabric.read = counted_look, counted_read  # type: ignore[method-assign]


async def until_looked(net: Counted, count: int) -> None:
    async with asyncio.timeout(60):
        while sum(net.looks.values()) < count:
            await asyncio.sleep(0)


def test_all_who_look_at_a_time_share_one_look() -> None:
    async def main() -> None:
        async with running(Counted("line:3")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.ask(Op.SUBSCRIBE, "h2", "a < 128")
            await net.dispatcher.settled()
            reads = net.reads.copy()
            net.may_look.clear()
            first = asyncio.create_task(net.dispatcher.tables())
            await until_looked(net, 3)
            others = [asyncio.create_task(net.dispatcher.tables()) for _ in range(100)]
            others += [asyncio.create_task(net.dispatcher.tables(["s1"])) for _ in range(100)]
            await asyncio.sleep(0)
            net.may_look.set()
            tables = {switch: net.network.read(switch) for switch in net.topology.switches}
            assert await first == tables
            found = await asyncio.gather(*others)
            assert found == [tables] * 100 + [{"s1": tables["s1"]}] * 100
            assert net.looks == dict.fromkeys(
                net.topology.switches, 2
            )  # one that was under way, one for all the others
            assert net.reads == reads  # which is for controllers

    asyncio.run(main())


def test_what_is_shown_was_read_after_it_was_asked_for() -> None:
    async def main() -> None:
        async with running(Counted("line:2")) as net:
            await net.ask(Op.ADVERTISE, "h0", "True")
            await net.dispatcher.settled()
            net.may_look.clear()
            early = asyncio.create_task(net.dispatcher.tables())
            await until_looked(net, 2)
            await net.ask(Op.SUBSCRIBE, "h1", "a < 128")  # nor does a request wait for whoever looks
            late = asyncio.create_task(net.dispatcher.tables())
            await asyncio.sleep(0)
            net.may_look.set()
            await early
            assert all((await late).values())
            await net.holds()

    asyncio.run(main())


def test_somebody_who_leaves_disturbs_no_other() -> None:
    async def main() -> None:
        async with running(Counted("line:2")) as net:
            await net.dispatcher.settled()
            net.may_look.clear()
            impatient, patient = [asyncio.create_task(net.dispatcher.tables()) for _ in range(2)]
            await until_looked(net, 2)
            impatient.cancel()
            net.may_look.set()
            assert (await patient).keys() == {"s0", "s1"}
            assert net.looks == {"s0": 1, "s1": 1}

    asyncio.run(main())


def test_entries_that_no_flow_can_describe_are_removed_before_a_table_is_shown() -> None:
    async def main() -> None:
        async with running(Counted("line:2")) as net:
            await net.dispatcher.settled()
            before = net.reads.copy()
            net.strange["s1"] = 3
            assert (await net.dispatcher.verify()).holds
            assert net.strange["s1"] == 0
            assert net.reads - before == {"s1": 1}
            assert net.looks == {"s0": 1, "s1": 2}

    asyncio.run(main())


def test_all_who_ask_for_a_proof_at_a_time_share_one() -> None:
    async def main() -> None:
        async with running(Counted("line:2")) as net:
            await net.dispatcher.settled()
            net.may_look.clear()
            first = asyncio.create_task(net.dispatcher.verify())
            await until_looked(net, 2)
            others = [asyncio.create_task(net.dispatcher.verify()) for _ in range(20)]
            await asyncio.sleep(0)
            net.may_look.set()
            assert all(verdict.holds for verdict in await asyncio.gather(first, *others))
            assert net.looks == {"s0": 2, "s1": 2}

    asyncio.run(main())
