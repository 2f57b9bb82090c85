"""Live switches over OpenFlow, as an event loop sees them."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import peer
import pytest
from os_ken.ofproto import ofproto_v1_4 as ofp
from vswitch import PATIENCE_S, PATIENT, SOON, OpenVSwitch, wait_for

from flowsieve.errors import BadTopology, SwitchError, TableFull, Unacknowledged
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.network.names import SwitchId
from flowsieve.southbound.fabric import Connected, Disconnected, PortChanged, SwitchEvent, TableChanged
from flowsieve.southbound.openflow import datapath_sync
from flowsieve.southbound.openflow.datapath_id import switch_id
from flowsieve.southbound.openflow.fabric import MOST_GREETED, OpenFlowFabric
from flowsieve.southbound.openflow.ports import Port
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.southbound.openflow.wire import Frames, OpenFlowFrame

GROUP = Prefix.parse("ff0e::/16")
numbers = iter(range(1, 1000))


def install(*ports: int, group: Prefix = GROUP) -> FlowOp:
    return FlowOp(OpKind.INSTALL, Flow(PrefixMatch(group), 1000, tuple(map(Output, ports))))


def packet() -> bytes:
    """A UDP packet to a group address; nobody looks at its checksum."""
    head = struct.pack("!IHBB", 6 << 28, 12, 17, 64)
    ends = Prefix.parse("fd00::1/128").first.to_bytes(16) + Prefix.parse("ff0e:c800::/128").first.to_bytes(16)
    return bytes.fromhex("333300000001 020000000001 86dd") + head + ends + struct.pack("!HHHH4x", 9, 9, 12, 0)


class Bridge:
    """A new bridge with four ports, and a fabric of it alone."""

    def __init__(self, open_vswitch: OpenVSwitch, limit: int | None = None) -> None:
        self.vswitch = open_vswitch
        self.name = f"f{next(numbers)}"
        self.address = open_vswitch.add_bridge(self.name, 4, limit)
        self.heard: list[SwitchEvent] = []

    def use(self, work: Callable[[OpenFlowFabric], Awaitable[None]], timing: Timing = PATIENT) -> None:
        """Do something with a connected fabric."""

        async def main() -> None:
            control = self.vswitch.control
            async with OpenFlowFabric(
                {self.name: self.address}, timing=timing, control=control, report=self.heard.append
            ) as fabric:
                await fabric.wait_connected(PATIENCE_S)
                async with asyncio.timeout(PATIENCE_S):
                    await work(fabric)

        asyncio.run(main())

    def pass_packet(self, port: int) -> None:
        self.vswitch.appctl("netdev-dummy/receive", f"{self.name}-{port}", packet().hex())

    def sent(self) -> list[int]:
        """How many packets left by each port."""
        return [len(self.vswitch.sent(self.name, port)) for port in (1, 2, 3, 4)]

    def set_port(self, port: int, state: str) -> None:
        self.vswitch.appctl("netdev-dummy/set-admin-state", f"{self.name}-{port}", state)


@pytest.fixture
def bridge(open_vswitch: OpenVSwitch) -> Bridge:
    return Bridge(open_vswitch)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@pytest.mark.real
def test_a_batch_counts_once_it_is_awaited(bridge):
    async def work(fabric):
        await fabric.apply(bridge.name, [install(1, 2)])
        assert await fabric.read(bridge.name) == (install(1, 2).flow,)
        with pytest.raises(BadTopology, match="there is no switch 'f0'"):
            await fabric.apply("f0", [])

    bridge.use(work)
    assert bridge.heard[0] == Connected(bridge.name)
    assert isinstance(bridge.heard[-1], Disconnected)


@pytest.mark.real
def test_a_batch_that_does_not_fit_changes_nothing(open_vswitch):
    bridge = Bridge(open_vswitch, limit=1)

    async def work(fabric):
        await fabric.apply(bridge.name, [install(1)])
        with pytest.raises(TableFull):
            await fabric.apply(bridge.name, [install(2), install(1, group=Prefix.parse("ff15::/16"))])
        assert await fabric.read(bridge.name) == (install(1).flow,)
        await fabric.apply(bridge.name, [install(3)])

    bridge.use(work)


@pytest.mark.real
def test_ports_are_told_with_their_state_and_their_changes(bridge):
    async def work(fabric):
        assert await fabric.ports(bridge.name) == {1: True, 2: True, 3: True, 4: True}
        bridge.set_port(3, "down")
        await until(lambda: PortChanged(bridge.name, 3, False) in bridge.heard)
        assert await fabric.ports(bridge.name) == {1: True, 2: True, 3: False, 4: True}
        bridge.set_port(3, "up")
        await until(lambda: PortChanged(bridge.name, 3, True) in bridge.heard)
        assert await fabric.ports(bridge.name) == {1: True, 2: True, 3: True, 4: True}

    bridge.use(work)


@pytest.mark.real
def test_a_fenced_port_takes_nothing_in_and_lets_nothing_out(bridge):
    async def work(fabric):
        await fabric.apply(bridge.name, [install(1, 2, 3)])
        bridge.pass_packet(1)
        wait_for(lambda: bridge.sent() == [0, 1, 1, 0], "both copies")
        await fabric.fence(bridge.name, 2, True)
        assert await fabric.fences(bridge.name) == {2}
        assert (await fabric.ports(bridge.name))[2]
        bridge.pass_packet(2)
        bridge.pass_packet(1)
        wait_for(lambda: bridge.sent()[2] == 2, "the copy for the open port")
        assert bridge.sent() == [0, 1, 2, 0]
        await fabric.fence(bridge.name, 2, False)
        assert await fabric.fences(bridge.name) == frozenset()
        bridge.pass_packet(2)
        wait_for(lambda: bridge.sent() == [1, 1, 3, 0], "what the opened port takes in")

    bridge.use(work)


@pytest.mark.real
def test_a_fence_holds_for_a_port_that_is_down_and_outlives_a_connection(bridge):
    async def close(fabric):
        await fabric.apply(bridge.name, [install(1, 2, 3)])
        bridge.set_port(2, "down")
        await fabric.fence(bridge.name, 2, True)
        assert await fabric.fences(bridge.name) == {2}

    async def look(fabric):
        assert not (await fabric.ports(bridge.name))[2]
        bridge.set_port(2, "up")
        await until(lambda: PortChanged(bridge.name, 2, True) in bridge.heard)
        assert await fabric.fences(bridge.name) == {2}
        bridge.pass_packet(1)
        wait_for(lambda: bridge.sent()[2] == 1, "the copy for the open port")
        assert bridge.sent() == [0, 0, 1, 0]

    bridge.use(close)
    bridge.use(look)


@pytest.mark.real
def test_a_port_that_is_not_there_passes_for_fenced_and_for_open(bridge):
    async def work(fabric):
        for closed in (True, False):
            await fabric.fence(bridge.name, 9, closed)
            assert await fabric.fences(bridge.name) == frozenset()

    bridge.use(work)


@pytest.mark.real
def test_an_abandoned_request_leaves_the_switch_unknown_until_it_was_read(bridge):
    async def work(fabric):
        ops = [install(1, group=Prefix(6, 0xFF0E << 32 | i, 48)) for i in range(5000)]
        request = asyncio.create_task(fabric.apply(bridge.name, ops))
        await asyncio.sleep(0.001)
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        await fabric.wait_connected(PATIENCE_S)
        with pytest.raises(Unacknowledged, match="a request was abandoned"):
            await fabric.apply(bridge.name, [install(1)])
        assert len(await fabric.read(bridge.name)) in (0, 5000)
        await fabric.apply(bridge.name, [install(1)])

    bridge.use(work)


@pytest.mark.real
def test_an_error_inside_leaves_the_fabric_as_it_is(bridge):
    async def work(fabric):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        bridge.use(work)


# Connections that are cut.


class Cable:
    """A way to a switch that is cut, once, when a message of the controller's comes by that `at` picks."""

    def __init__(self, path: Path, beyond: str, at: Callable[[OpenFlowFrame], bool], passes: bool) -> None:
        self.address = f"unix:{path}"
        self._path, self._beyond, self._at, self._passes = path, beyond.removeprefix("unix:"), at, passes
        self.cuts = 0

    async def __aenter__(self) -> Cable:
        self._server = await asyncio.start_unix_server(self._carry, self._path)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._beyond)
        back = asyncio.create_task(self._pass_on(far_reader, writer))
        try:
            stream = Frames()
            while data := await reader.read(1 << 16):
                for frame in stream.feed(data):
                    cut = self.cuts == 0 and self._at(frame)
                    if cut:
                        back.cancel()  # no answer gets through
                        self.cuts += 1
                    if self._passes or not cut:
                        far_writer.write(frame.data)
                        await far_writer.drain()
                    if cut:
                        return
        finally:
            back.cancel()
            far_writer.close()
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
            writer.transport.abort()


def is_commit(frame: OpenFlowFrame) -> bool:
    return frame.type == 33 and frame.data[12:14] == b"\0\4"


@pytest.mark.real
@pytest.mark.parametrize(
    ("at", "passes", "committed"),
    [
        (lambda frame: frame.type == 34, True, False),
        (lambda frame: frame.type == 20, True, False),
        (is_commit, False, False),
        (is_commit, True, True),
    ],
    ids=["in the middle", "before the barrier is answered", "before the commit", "after the commit"],
)
def test_after_a_cut_in_a_bundle_reading_tells_the_truth(bridge, tmp_path, at, passes, committed):
    async def main() -> None:
        told = asyncio.Event()

        def heard(event: SwitchEvent) -> None:
            if isinstance(event, TableChanged):
                told.set()

        async with (
            Cable(tmp_path / "cable", bridge.address, at, passes) as cable,
            OpenFlowFabric({bridge.name: cable.address}, timing=PATIENT, report=heard) as fabric,
            asyncio.timeout(PATIENCE_S),
        ):
            await fabric.wait_connected(PATIENCE_S)
            ops = [install(1, group=Prefix(6, 0xFF0E << 32 | i, 48)) for i in range(600)]
            with pytest.raises(Unacknowledged):
                await fabric.apply(bridge.name, ops)
            assert cable.cuts == 1
            with pytest.raises(Unacknowledged):
                await fabric.apply(bridge.name, ops[:1])
            wanted = tuple(op.flow for op in ops) if committed else ()
            held = await fabric.read(bridge.name)
            while held != wanted:  # a busy switch reads the cut connection late, and tells that it did
                await told.wait()
                held = await fabric.read(bridge.name)
            dumped = bridge.vswitch.ofctl("dump-flows", bridge.name, "table=1", "--no-stats")
            assert dumped.count("actions=") == len(held)
            await fabric.apply(bridge.name, [install(2)])

    asyncio.run(main())


# Peers that are no switches.


async def greeted(reader: asyncio.StreamReader) -> None:
    """Read up to the last message of a handshake."""
    stream = Frames()
    while data := await reader.read(1 << 16):
        if any(frame.type == 9 for frame in stream.feed(data)):
            return


async def false_switch(seed: int, path: Path, strings: int) -> tuple[asyncio.Server, list[int]]:
    """Serves random bytes to all that dial, every other time after a handshake; and counts."""
    draw, served = random.Random(seed), [0]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            if served[0] < strings:
                served[0] += 1
                if served[0] % 2:
                    writer.write(peer.hello(5) + peer.features(2))
                    await greeted(reader)
                writer.write(draw.randbytes(draw.randrange(1, 300)))
                await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(serve, path), served


async def serve_an_empty_table(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A switch that can shake hands, show signs of life and list its entries."""
    stream = Frames()
    writer.write(peer.hello(5) + peer.features(2))
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            for frame in stream.feed(data):
                if peer.asks_for_entries(frame):
                    writer.write(peer.stats(frame.xid, []))
                elif frame.type == 2:
                    writer.write(peer.message(3, frame.xid, frame.data[8:]))
    writer.close()


def test_a_false_switch_harms_nobody(tmp_path):
    heard: list[SwitchEvent] = []

    async def main() -> None:
        noise, served = await false_switch(3, tmp_path / "noise", 1000)
        good = await asyncio.start_unix_server(serve_an_empty_table, tmp_path / "good")
        addresses = {name: f"unix:{tmp_path / name}" for name in ("noise", "good")}
        timing = Timing(
            answer=PATIENCE_S, silence=PATIENCE_S, connect=0.5, first_retry=0.0005, last_retry=0.0005
        )
        async with OpenFlowFabric(addresses, timing=timing, report=heard.append) as fabric, noise, good:
            async with asyncio.timeout(PATIENCE_S):
                reads = 0
                while served[0] < 1000 or reads < 10:
                    assert await fabric.read("good") == ()
                    reads += 1
            assert set(fabric.missing) <= {"noise"}
            assert "good" not in fabric.unknown
            assert [event for event in heard if event.switch == "good"] == [Connected("good")]

    asyncio.run(main())
    assert sum(isinstance(event, Disconnected) for event in heard) >= 400


def test_who_dials_us_and_says_nothing_is_not_waited_for_without_bound(tmp_path):
    async def main() -> None:
        place = str(tmp_path / "port")
        timing = Timing(connect=3.0)
        async with OpenFlowFabric(
            {}, listen=f"unix:{place}", identities={"s1": switch_id(7)}, timing=timing
        ) as fabric:
            silent = [await asyncio.open_unix_connection(place) for _ in range(MOST_GREETED + 20)]
            greetings = [await reader.read(100) for reader, _ in silent]
            assert sum(greeting == b"" for greeting in greetings) == 20
            async with asyncio.timeout(PATIENCE_S):
                for reader, _ in silent:
                    assert await reader.read(100) == b""  # they are hung up on
            reader, writer = await asyncio.open_unix_connection(place)
            writer.write(peer.hello(5) + peer.features(2, datapath=7))
            await fabric.wait_connected(PATIENCE_S)
            for _, each in [*silent, (reader, writer)]:
                each.close()

    asyncio.run(main())


async def dialled(place: str, datapath: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A switch that dials us and tells its datapath id."""
    reader, writer = await asyncio.open_unix_connection(place)
    writer.write(peer.hello(5) + peer.features(2, datapath=datapath))
    return reader, writer


async def hung_up(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await reader.read(1 << 16):
            pass


def test_a_newcomer_may_be_given_a_name_and_keeps_it(tmp_path):
    heard: list[SwitchEvent] = []
    asked: list[SwitchId] = []

    def name(identity: SwitchId) -> str | None:
        asked.append(identity)
        return {switch_id(8): "new", switch_id(9): "s1"}.get(identity)

    async def main() -> None:
        place = str(tmp_path / "port")
        async with OpenFlowFabric(
            {}, listen=f"unix:{place}", identities={"s1": switch_id(7)}, unknown=name, report=heard.append
        ) as fabric:
            with pytest.raises(BadTopology, match="there is no switch 'new'"):
                await fabric.read("new")
            for datapath in (6, 9):  # one that gets no name, and one that gets somebody else's
                reader, writer = await dialled(place, datapath)
                await hung_up(reader)
                writer.close()
            for _ in range(2):
                async with asyncio.timeout(PATIENCE_S):
                    reader, writer = await dialled(place, 8)
                    await until(lambda: "new" not in fabric.missing and Connected("new") in heard)
                    writer.close()
                    await until(lambda: "new" in fabric.missing)
            assert set(fabric.missing) == {"s1", "new"}

    asyncio.run(main())
    assert asked == [switch_id(6), switch_id(9), switch_id(8)]
    assert heard.count(Connected("new")) == 2


def test_too_many_waiting_requests_are_refused(tmp_path):
    async def main() -> None:
        async with OpenFlowFabric({"s1": f"unix:{tmp_path}/none"}, timing=Timing(connect=60)) as fabric:
            requests = [asyncio.create_task(fabric.apply("s1", [install(1)])) for _ in range(1030)]
            done, waiting = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 6
            for request in done:
                with pytest.raises(SwitchError, match="1024 requests waiting; let them settle first"):
                    await request
            for request in waiting:
                request.cancel()
            await asyncio.wait(waiting)
            assert all(request.cancelled() for request in waiting)

    asyncio.run(main())


# The datapath's word.


@pytest.mark.real
def test_a_datapath_that_does_not_answer_leaves_the_switch_unknown(bridge, tmp_path, monkeypatch):
    monkeypatch.setattr(datapath_sync, "LONGEST", 0.2)

    async def main() -> None:
        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        control = await asyncio.start_unix_server(say_nothing, tmp_path / "control")
        async with (
            control,
            OpenFlowFabric({bridge.name: bridge.address}, control=f"unix:{tmp_path}/control") as fabric,
        ):
            with pytest.raises(Unacknowledged, match="no word from the datapath"):
                await fabric.apply(bridge.name, [install(1)])
            with pytest.raises(Unacknowledged, match="no word from the datapath"):
                await fabric.apply(bridge.name, [install(1)])
            with pytest.raises(Unacknowledged, match="no word from the datapath"):
                await fabric.read(bridge.name)
            assert fabric.unknown.keys() == {bridge.name}

    asyncio.run(main())


@pytest.mark.parametrize("known", [False, True])
def test_a_table_that_is_right_counts_when_the_datapath_has_followed(tmp_path, monkeypatch, known):
    """It is right, since it was changed, perhaps by another controller; nobody said yet that packets meet it."""
    monkeypatch.setattr(datapath_sync, "LONGEST", 0.1)
    silent, purges = asyncio.Event(), 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal purges
        while data := await reader.read(1 << 16):
            if not silent.is_set():
                purges += data.count(b"revalidator/purge")
                writer.write(b'{"id": 0, "result": "s1", "error": null}' * data.count(b"method"))
        writer.close()

    async def main() -> None:
        switch = await asyncio.start_unix_server(serve_an_empty_table, tmp_path / "s1")
        control = await asyncio.start_unix_server(answer, tmp_path / "control")
        async with (
            asyncio.timeout(PATIENCE_S),
            switch,
            control,
            OpenFlowFabric(
                {"s1": f"unix:{tmp_path}/s1"}, control=f"unix:{tmp_path}/control", timing=SOON
            ) as fabric,
        ):
            if known:
                await fabric.read("s1")
                assert (await fabric.read("s1"), purges) == ((), 1)
            silent.set()
            for _ in range(2):
                with pytest.raises(Unacknowledged):
                    await (fabric.apply("s1", [install(1)]) if known else fabric.read("s1"))
                with pytest.raises(Unacknowledged, match="no word from the datapath"):
                    await fabric.read("s1")
            silent.clear()
            assert await fabric.read("s1") == ()
            assert await fabric.read("s1") == ()
            assert purges == 1 + known
            assert fabric.unknown == {}

    asyncio.run(main())


@pytest.mark.real
@pytest.mark.parametrize(
    "answer", [None, b"", b"no JSON", b'{"error": "no such command", "result": null}' * 3]
)
def test_where_the_datapath_cannot_be_asked_it_gets_a_fixed_time(bridge, tmp_path, answer):
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(answer or b"")
            writer.close()

        server = await asyncio.start_unix_server(serve, tmp_path / "control")
        control, timing = f"unix:{tmp_path}/{'none' if answer is None else 'control'}", Timing(lag=0.15)
        async with (
            server,
            OpenFlowFabric({bridge.name: bridge.address}, control=control, timing=timing) as fabric,
        ):
            await fabric.wait_connected(PATIENCE_S)
            began = asyncio.get_running_loop().time()
            await fabric.apply(bridge.name, [install(1)])
            assert asyncio.get_running_loop().time() - began >= 0.15

    asyncio.run(main())


async def strange_switch(place: str, datapath: int) -> asyncio.Server:
    """A switch that can be dialled, and says its datapath id."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(peer.hello(5) + peer.features(2, datapath=datapath))
        await hung_up(reader)
        writer.close()

    return await asyncio.start_unix_server(serve, place)


def test_a_switch_that_answers_for_another_is_refused_and_told_of(tmp_path):
    heard: list[SwitchEvent] = []
    strangers: list[SwitchId] = []

    async def main() -> None:
        place = str(tmp_path / "s1")
        async with (
            await strange_switch(place, 8),
            OpenFlowFabric(
                {"s1": f"unix:{place}"},
                identities={"s1": switch_id(7)},
                unknown=strangers.append,
                report=heard.append,
                timing=PATIENT,
            ) as fabric,
        ):
            async with asyncio.timeout(PATIENCE_S):
                await until(lambda: len(strangers) > 1)  # it is tried again and again
                await until(lambda: "datapath id" in fabric.missing["s1"])
            with pytest.raises(
                SwitchError, match="has the datapath id 0000000000000008; right is 0000000000000007"
            ):
                await fabric.wait_connected(0.01)

    asyncio.run(main())
    assert set(strangers) == {switch_id(8)}
    assert [type(each) for each in heard] == [Disconnected]  # why it is not connected, once


@pytest.mark.real
def test_a_switch_is_looked_at_without_a_change(bridge):
    async def work(fabric):
        bridge.vswitch.ofctl("add-flow", bridge.name, "priority=7,tcp6,ipv6_dst=ff0e::/16,actions=output:1")
        await fabric.apply(bridge.name, [])
        assert await fabric.look(bridge.name) == ((), 1)
        assert await fabric.look(bridge.name) == ((), 1)
        assert await fabric.read(bridge.name) == ()
        assert await fabric.look(bridge.name) == ((), 0)

    bridge.use(work)


class SlowReader:
    """A switch that does all it is asked to, but lists its entries only when it may."""

    def __init__(self) -> None:
        self.may_list = asyncio.Event()
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream, port = Frames(), Port(1, bytes(6), "s1-eth1", 0, 0)
        writer.write(peer.hello(5) + peer.features(2))
        listing = []
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for frame in stream.feed(data):
                    if peer.asks_for_entries(frame):
                        self.asked += 1
                        listing.append(asyncio.create_task(self._list(frame.xid, writer)))
                    elif frame.type == ofp.OFPT_MULTIPART_REQUEST:
                        if frame.data[8:10] == struct.pack("!H", ofp.OFPMP_PORT_DESC):
                            writer.write(peer.ports(frame.xid, port))
                        elif frame.data[8:10] == struct.pack("!H", ofp.OFPMP_GROUP_DESC):
                            writer.write(peer.no_groups(frame.xid))
                    elif frame.type == ofp.OFPT_BARRIER_REQUEST:
                        writer.write(peer.barrier(frame.xid))
                    elif frame.type == ofp.OFPT_BUNDLE_CONTROL:
                        bundle, what = struct.unpack_from("!IH", frame.data, 8)
                        writer.write(peer.bundle(frame.xid, bundle, what + 1))
        writer.close()

    async def _list(self, xid: int, writer: asyncio.StreamWriter) -> None:
        await self.may_list.wait()
        writer.write(peer.stats(xid, [install(1).flow]))


def test_whoever_looks_holds_nobody_up(tmp_path):
    heard: list[SwitchEvent] = []

    async def main() -> None:
        switch = SlowReader()
        server = await asyncio.start_unix_server(switch.serve, tmp_path / "s1")
        address = {"s1": f"unix:{tmp_path / 's1'}"}
        async with (
            server,
            OpenFlowFabric(address, timing=PATIENT, report=heard.append) as fabric,
            asyncio.timeout(PATIENCE_S / 2),
        ):
            await fabric.wait_connected(PATIENCE_S)
            looks = [asyncio.create_task(fabric.look("s1")) for _ in range(3)]
            await until(lambda: switch.asked == 1)
            await fabric.fence("s1", 1, True)
            await fabric.apply("s1", [install(1)])
            assert await fabric.ports("s1") == {1: True}
            reading = asyncio.create_task(fabric.read("s1"))
            await until(lambda: switch.asked == 2)
            await fabric.fence("s1", 1, False)  # nor does a fence wait for a controller that reads
            assert not any(task.done() for task in [*looks, reading])
            switch.may_list.set()
            assert await reading == (install(1).flow,)
            assert await asyncio.gather(*looks) == [((install(1).flow,), 0)] * 3
        assert [type(event) for event in heard] == [Connected, Disconnected]

    asyncio.run(main())


def test_a_look_that_is_abandoned_costs_no_connection(tmp_path):
    heard: list[SwitchEvent] = []

    async def main() -> None:
        switch = SlowReader()
        server = await asyncio.start_unix_server(switch.serve, tmp_path / "s1")
        address = {"s1": f"unix:{tmp_path / 's1'}"}
        async with (
            server,
            OpenFlowFabric(address, timing=PATIENT, report=heard.append) as fabric,
            asyncio.timeout(PATIENCE_S / 2),
        ):
            await fabric.wait_connected(PATIENCE_S)
            look = asyncio.create_task(fabric.look("s1"))
            await until(lambda: switch.asked == 1)
            look.cancel()
            switch.may_list.set()
            assert await fabric.look("s1") == ((install(1).flow,), 0)
            await fabric.apply("s1", [install(1)])
            assert heard == [Connected("s1")]

    asyncio.run(main())


@pytest.mark.real
def test_what_is_unknown_is_not_known_by_a_look(bridge):
    async def work(fabric):
        request = asyncio.create_task(fabric.apply(bridge.name, [install(1)]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        await fabric.wait_connected(PATIENCE_S)
        await fabric.look(bridge.name)
        with pytest.raises(Unacknowledged, match="a request was abandoned"):
            await fabric.apply(bridge.name, [install(1)])
        await fabric.read(bridge.name)
        await fabric.apply(bridge.name, [install(1)])

    bridge.use(work)


def test_a_socket_on_which_somebody_listens_is_not_taken_away(tmp_path):
    async def main() -> None:
        place = f"unix:{tmp_path / 'port'}"
        async with OpenFlowFabric({}, listen=place, identities={"s1": switch_id(7)}) as fabric:
            with pytest.raises(SwitchError, match=r"switches cannot dial us at unix:.*in use"):
                async with OpenFlowFabric({}, listen=place):
                    pass
            _, writer = await dialled(str(tmp_path / "port"), 7)
            async with asyncio.timeout(PATIENCE_S):
                await until(lambda: not fabric.missing)
            writer.close()
        async with OpenFlowFabric({}, listen=place):
            pass  # the first is gone, and its socket is still there

    asyncio.run(main())


@pytest.mark.real
def test_what_others_do_in_tables_for_labels_is_heard_named_and_set_right(bridge):
    label = Flow(PrefixMatch(Prefix.parse("ff1e::/16")), 1001, (Output(1),), table=16)
    strange = "table=16,priority=3000,ipv6,ipv6_dst=ff00::/8,actions=drop"

    async def main() -> None:
        told = asyncio.Queue[SwitchEvent]()

        async def change(*words: str) -> None:
            """Something that somebody else does, and what is heard of it."""
            while not told.empty():
                told.get_nowait()
            bridge.vswitch.ofctl(words[0], bridge.name, *words[1:])
            while not isinstance(await told.get(), TableChanged):
                pass

        async with (
            OpenFlowFabric({bridge.name: bridge.address}, timing=PATIENT, report=told.put_nowait) as fabric,
            asyncio.timeout(PATIENCE_S),
        ):
            await fabric.wait_connected(PATIENCE_S)
            await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, label)])
            await change("del-flows", "table=16")
            assert await fabric.read(bridge.name) == ()
            await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, label)])
            bridge.vswitch.ofctl(
                "add-flow", bridge.name, "table=5,actions=drop"
            )  # none of ours, and not heard
            await change("add-flow", strange)
            assert await fabric.read(bridge.name) == (label,)
            (stranger,) = fabric.foreign(bridge.name)
            assert stranger.text.startswith("table=16 priority=3000") and str(stranger.reach) == "ff1e::/16"
            await change("add-flow", "table=17,ipv6,ipv6_dst=ff1e::/16,actions=output:1")
            found = await fabric.read(bridge.name)
            assert [(flow.table, flow.owner) for flow in found] == [(16, 0), (17, None)]

    asyncio.run(main())
