"""Which of several controllers may change real switches."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import peer
import pytest
from os_ken.ofproto import ofproto_v1_4 as ofp
from vswitch import PATIENCE_S, PATIENT, OpenVSwitch

from flowsieve.errors import SwitchError
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.fabric import Claim, Connected, SwitchEvent
from flowsieve.southbound.openflow import mastership
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.wire import CONTENT_TABLE

numbers = iter(range(1, 1000))


class FixedClaim(Claim):
    """Numbers from elsewhere: a switch is free for whoever has a higher one, if `over` says so, or the same."""

    def __init__(self, number: int, over: int = 0) -> None:
        self.number, self.over = number, over
        self.asked: list[int | None] = []

    def covers(self, number: int) -> bool:
        return number == self.number or number <= self.over

    async def above(self, number: int | None) -> int:
        self.asked.append(number)
        return self.number


def install(text: str) -> FlowOp:
    return FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix.parse(text)), 1000, (Output(1),)))


class Bridges:
    """Some new bridges, and controllers of them."""

    def __init__(self, open_vswitch: OpenVSwitch, count: int) -> None:
        self.vswitch = open_vswitch
        names = [f"m{next(numbers)}" for _ in range(count)]
        self.addresses = {name: open_vswitch.add_bridge(name, 1) for name in names}

    @asynccontextmanager
    async def controlled(
        self, claim: Claim | None, addresses: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[OpenFlowFabric, list[SwitchEvent]]]:
        heard: list[SwitchEvent] = []
        fabric = OpenFlowFabric(addresses or self.addresses, timing=PATIENT, report=heard.append, claim=claim)
        async with fabric:
            yield fabric, heard

    def entries(self) -> dict[str, int]:
        return {
            name: self.vswitch.ofctl("dump-flows", name, f"table={CONTENT_TABLE}", "--no-stats").count(
                "ipv6_dst"
            )
            for name in self.addresses
        }


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story()

    asyncio.run(whole())


async def write(fabric: OpenFlowFabric, text: str) -> None:
    """Install an entry everywhere."""
    for switch in fabric._channels:
        await fabric.read(switch)
        await fabric.apply(switch, [install(text)])


def test_a_new_switch_is_taken_at_once_and_a_second_controller_leaves_it_alone(
    open_vswitch: OpenVSwitch,
) -> None:
    bridges = Bridges(open_vswitch, 2)

    async def story() -> None:
        first = FixedClaim(5)
        async with bridges.controlled(first) as (one, _):
            await one.wait_connected(PATIENCE_S)
            await write(one, "ff0e:1::/32")
            async with bridges.controlled(FixedClaim(6)) as (two, heard):
                why = await two.stood_by()
                a, b = sorted(bridges.addresses)
                assert why == f"another controller holds {a} (generation 0x5), {b} (generation 0x5)"
                assert two.standing_by == why
                assert two.missing == dict.fromkeys((a, b), f"this controller stands by, since {why}")
                assert not any(isinstance(event, Connected) for event in heard)
                await write(one, "ff0e:2::/32")
            assert bridges.entries() == {a: 2, b: 2}
            assert first.asked == [None, None]

    play(story)


def test_whoever_takes_over_shuts_the_other_out_which_then_leaves_all_switches_alone(
    open_vswitch: OpenVSwitch,
) -> None:
    bridges = Bridges(open_vswitch, 2)
    only = dict([next(iter(bridges.addresses.items()))])

    async def story() -> None:
        async with bridges.controlled(FixedClaim(5)) as (one, heard):
            await one.wait_connected(PATIENCE_S)
            async with bridges.controlled(FixedClaim(6, over=5), only) as (two, _):
                await two.wait_connected(PATIENCE_S)
                (taken,) = only
                assert await one.stood_by() == f"another controller holds {taken} (generation 0x6)"
                assert set(one.missing) == set(bridges.addresses), "all or none"
                await write(two, "ff0e:1::/32")
            heard.clear()
            # The new one is gone, and still the switch is not the old one's.
            async with bridges.controlled(FixedClaim(5)) as (three, _):
                await three.stood_by()
            assert not any(isinstance(event, Connected) for event in heard)

    play(story)


def test_a_batch_of_the_old_master_is_refused_and_changes_nothing(open_vswitch: OpenVSwitch) -> None:
    bridges = Bridges(open_vswitch, 1)
    (name,) = bridges.addresses

    async def story() -> None:
        async with bridges.controlled(FixedClaim(5)) as (one, _):
            await one.wait_connected(PATIENCE_S)
            await one.read(name)
            async with bridges.controlled(FixedClaim(6, over=5)) as (two, _):
                # The old one does not look at its connections until the new one holds the switch.
                writing = asyncio.ensure_future(two.wait_connected(PATIENCE_S))
                session = one._channels[name]._session
                assert session is not None
                session._take = lambda event: None  # type: ignore[method-assign]
                await writing
                del session._take
                with pytest.raises(SwitchError):
                    await one.apply(name, [install("ff0e:1::/32")])
                await one.stood_by()
                assert bridges.entries() == {name: 0}

    play(story)


def test_one_switch_of_another_keeps_us_from_all_also_from_new_ones(open_vswitch: OpenVSwitch) -> None:
    bridges = Bridges(open_vswitch, 3)
    some = dict(list(bridges.addresses.items())[-1:])

    async def story() -> None:
        async with bridges.controlled(FixedClaim(5), some) as (one, _):
            await one.wait_connected(PATIENCE_S)
            claim = FixedClaim(6)
            async with bridges.controlled(claim) as (two, _):
                await two.stood_by()
                assert claim.asked == []
            await write(one, "ff0e:1::/32")
            assert one.standing_by is None

    play(story)


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "gone"])
def test_a_switch_that_is_away_holds_up_the_others_for_a_moment_only(
    open_vswitch: OpenVSwitch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    bridges = Bridges(open_vswitch, 1)
    if not silent:
        monkeypatch.setattr(mastership, "LOOK_SECONDS", PATIENCE_S)

    async def story() -> None:
        path = tmp_path / "away"
        async with AsyncExitStack() as stack:
            if silent:
                server = await asyncio.start_unix_server(say_nothing, path)
                await stack.enter_async_context(server)
            there = bridges.addresses | {"away": f"unix:{path}"}
            one, _ = await stack.enter_async_context(bridges.controlled(FixedClaim(5), there))
            while set(one.missing) != {"away"}:
                await asyncio.sleep(0.01)

    play(story)


def test_a_restarted_switch_is_claimed_anew(open_vswitch: OpenVSwitch) -> None:
    bridges = Bridges(open_vswitch, 1)

    async def story() -> None:
        claim = FixedClaim(5)
        async with bridges.controlled(claim) as (one, heard):
            await one.wait_connected(PATIENCE_S)
            open_vswitch.signal(signal.SIGKILL)
            open_vswitch.start_vswitchd()
            while sum(isinstance(event, Connected) for event in heard) < 2:
                await asyncio.sleep(0.01)
            assert claim.asked == [None, None]
            await write(one, "ff0e:1::/32")
            async with bridges.controlled(FixedClaim(6)) as (two, _):
                await two.stood_by()

    play(story)


def test_who_claims_nothing_changes_no_role_and_shares_switches(open_vswitch: OpenVSwitch) -> None:
    bridges = Bridges(open_vswitch, 1)
    (name,) = bridges.addresses

    async def story() -> None:
        async with bridges.controlled(None) as (low, _), bridges.controlled(None) as (high, _):
            await low.wait_connected(PATIENCE_S)
            await high.wait_connected(PATIENCE_S)
            await write(low, "ff0e:1::/32")
            await write(high, "ff0e:2::/32")
            async with bridges.controlled(FixedClaim(5)) as (one, _):
                await one.wait_connected(PATIENCE_S)
                assert len((await low.look(name))[0]) == 2
                await write(one, "ff0e:3::/32")
                assert one.standing_by is None and low.standing_by is None
        assert bridges.entries() == {name: 3}

    play(story)


def test_of_two_that_begin_at_once_not_both_go_on(open_vswitch: OpenVSwitch) -> None:
    async def story() -> None:
        for _ in range(10):
            bridges = Bridges(open_vswitch, 3)
            async with (
                bridges.controlled(FixedClaim(5)) as (one, _),
                bridges.controlled(FixedClaim(6)) as (two, _),
            ):
                while not (one.standing_by or two.standing_by):
                    await asyncio.sleep(0.01)
                for fabric in (one, two):
                    while fabric.missing and not fabric.standing_by:
                        await asyncio.sleep(0.01)
                    assert not fabric.standing_by or len(fabric.missing) == 3

    play(story)


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A switch that has hung up."""
    with suppress(ConnectionError):
        await reader.read()
    writer.transport.abort()


async def without_roles(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: bool, barriers: bool = True
) -> None:
    """A switch that knows no roles, and says so or not; without `barriers` it falls silent after its features."""
    frames = peer.Frames()
    writer.write(peer.hello(5))
    try:
        while data := await reader.read(4096):
            for frame in frames.feed(data):
                if frame.type == ofp.OFPT_FEATURES_REQUEST:
                    writer.write(peer.features(frame.xid))
                elif frame.type == ofp.OFPT_BARRIER_REQUEST and barriers:
                    writer.write(peer.barrier(frame.xid))
                elif frame.type == ofp.OFPT_ROLE_REQUEST and answers:
                    writer.write(peer.error(frame.xid, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_TYPE))
    except ConnectionError:
        pass  # it was closed
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("answers", [True, False], ids=["with an error", "with nothing"])
def test_a_switch_that_knows_no_roles_is_told_of_once_and_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, answers: bool
) -> None:
    caplog.set_level(logging.WARNING, mastership.__name__)
    met = 0

    async def switch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal met
        met += 1
        await without_roles(reader, writer, answers)

    async def story() -> None:
        path = tmp_path / "switch"
        server = await asyncio.start_unix_server(switch, path)
        async with server, OpenFlowFabric({"s1": f"unix:{path}"}, claim=FixedClaim(5), timing=PATIENT) as one:
            for times in (1, 2):
                await one.wait_connected(PATIENCE_S)
                assert met == times
                session = one._channels["s1"]._session
                assert session is not None
                session.give_up("to be met again")
                while one._channels["s1"]._session is session:
                    await asyncio.sleep(0.01)

    play(story)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and "switch s1 knows no roles" in told[0], told


def test_a_switch_that_connects_anew_before_it_was_ours_is_asked_over_the_new_connection(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        path, heard = tmp_path / "controller", list[SwitchEvent]()
        fabric = OpenFlowFabric(
            {},
            listen=f"unix:{path}",
            identities={"s1": switch_id(7)},
            claim=FixedClaim(5),
            timing=PATIENT,
            report=heard.append,
        )
        async with fabric, asyncio.TaskGroup() as group:
            old = group.create_task(without_roles(*await asyncio.open_unix_connection(path), False, False))
            while fabric._channels["s1"]._latest is None:
                await asyncio.sleep(0.01)
            new = group.create_task(without_roles(*await asyncio.open_unix_connection(path), True))
            await fabric.wait_connected(PATIENCE_S)
            await old  # it was closed
            assert heard == [Connected("s1")]
            new.cancel()

    play(story)
