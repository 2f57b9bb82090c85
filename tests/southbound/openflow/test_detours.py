"""What an Open vSwitch does about dead links: its groups, the marks that it gives and takes, what it tells of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from vswitch import PATIENCE_S, PATIENT, OpenVSwitch

from flowsieve.errors import DetoursRefused
from flowsieve.flow.detours import NO_PROTECTION, Arrival, Protection, Way
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Deliver, Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.frame import UdpFrame, build
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.fabric import DetourCosts
from flowsieve.southbound.openflow.detours import groups_in
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.wire import ProtocolError

pytestmark = pytest.mark.real

HOST, LINK, VIA, NEAR = 1, 2, 3, 4  # a host's port, and three to other switches
OUT, IN, PASSING = 100, 200, 300  # marks: of what goes around the link, of what comes around it, of others
AROUND = Protection(
    frozenset({LINK, VIA, NEAR}),
    {LINK: Way(OUT, VIA)},
    {Arrival(NEAR, PASSING): VIA},
    {Arrival(VIA, IN): LINK},
)
CONTENT = Flow(PrefixMatch(Prefix.parse("ff0e::/16")), 1000, (Output(LINK), Output(NEAR)))
Work = Callable[[OpenFlowFabric], Awaitable[None]]
LAST = b"last"
ENDS = {6: ("fd00:f::1", "ff0e::1"), 4: ("10.0.0.1", "225.128.0.1")}
numbers = iter(range(1, 1000))


def event(
    mark: int | None = None, payload: bytes = b"event", family: int = 6, to: str | None = None
) -> bytes:
    source, group = ENDS[family]
    parsed = (Prefix.parse(each) for each in (source, to or group))
    ends = (each.first.to_bytes(each.width // 8) for each in parsed)
    frame = build(UdpFrame(b"\2" + bytes(5), b"\x33\x33" + bytes(4), *ends, 999, 7420, payload))
    return frame if mark is None else frame[:12] + b"\x81\x00" + mark.to_bytes(2) + frame[12:]


class Bridge:
    """A switch with a host and three links."""

    def __init__(self, vswitch: OpenVSwitch) -> None:
        self.name, self.vswitch = f"d{next(numbers)}", vswitch
        self._address = vswitch.add_bridge(self.name, 4)

    def use(self, work: Work) -> None:
        async def main() -> None:
            async with (
                OpenFlowFabric(
                    {self.name: self._address}, control=self.vswitch.control, timing=PATIENT
                ) as fabric,
                asyncio.timeout(PATIENCE_S),
            ):
                await fabric.wait_connected(PATIENCE_S)
                await fabric.read(self.name)
                await work(fabric)

        asyncio.run(main())

    def send(self, port: int, packet: bytes) -> dict[int, list[int | None]]:
        """By which ports a packet that comes in at one goes out, and under which mark.

        Another one comes after it from the host, so that it shows when there is nothing more to come.
        """
        before = {each: len(self.vswitch.sent(self.name, each)) for each in (HOST, LINK, VIA, NEAR)}
        for at, each in ((port, packet), (HOST, event(payload=LAST))):
            self.vswitch.appctl("netdev-dummy/receive", f"{self.name}-{at}", each.hex())
        end = time.monotonic() + PATIENCE_S
        while not any(each.endswith(LAST) for each in self.vswitch.sent(self.name, NEAR)[before[NEAR] :]):
            assert time.monotonic() < end, "the last one does not come"
            time.sleep(0.01)
        sent = {each: self.vswitch.sent(self.name, each)[n:] for each, n in before.items()}
        found = {each: [_mark(one) for one in some if not one.endswith(LAST)] for each, some in sent.items()}
        return {each: marks for each, marks in found.items() if marks}

    def set_link(self, up: bool) -> None:
        """Plug the cable of the link, or pull it."""
        self.vswitch.appctl("netdev-dummy/set-admin-state", f"{self.name}-{LINK}", "up" if up else "down")
        end = time.monotonic() + PATIENCE_S
        while ("LINK_DOWN" in self._port()) == up:
            assert time.monotonic() < end
            time.sleep(0.01)

    def _port(self) -> str:
        told = self.vswitch.ofctl("dump-ports-desc", self.name)
        return told.split(f" {LINK}(")[1].split(f" {VIA}(")[0].replace("PORT_DOWN", "LINK_DOWN")

    @property
    def entries(self) -> list[str]:
        told = self.vswitch.ofctl("dump-flows", self.name, "--no-stats").splitlines()
        return sorted(line for line in told if "actions=" in line)

    def labels(self, table: int) -> str:
        """The one entry of a table for labels."""
        (entry,) = (line for line in self.entries if f"table={table}," in line)
        return entry

    @property
    def groups(self) -> list[str]:
        told = self.vswitch.ofctl("dump-groups", self.name).splitlines()
        return sorted(line.strip() for line in told if "group_id=" in line)


def _mark(packet: bytes) -> int | None:
    return int.from_bytes(packet[14:16]) & 0xFFF if packet[12:14] == b"\x81\x00" else None


@pytest.fixture
def bridge(open_vswitch: OpenVSwitch) -> Iterator[Bridge]:
    made = Bridge(open_vswitch)
    made.use(lambda fabric: fabric.apply(made.name, [FlowOp(OpKind.INSTALL, CONTENT)]))
    yield made
    made.vswitch.vsctl("del-br", made.name)


def test_what_a_switch_is_asked_to_do_is_what_it_says_it_does_and_asked_again_changes_nothing(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        assert await fabric.protection(bridge.name) == NO_PROTECTION
        would = DetourCosts(install=5, modify=1, new_groups=3)
        assert await fabric.look_at_detours(bridge.name, AROUND) == would
        await fabric.protect(bridge.name, AROUND)
        assert await fabric.protection(bridge.name) == AROUND
        before = bridge.entries, bridge.groups
        assert await fabric.look_at_detours(bridge.name, AROUND) == DetourCosts()
        await fabric.protect(bridge.name, AROUND)
        assert (bridge.entries, bridge.groups) == before

    bridge.use(work)
    bridge.use(lambda fabric: fabric.protect(bridge.name, AROUND))  # another controller


def test_content_goes_to_groups_and_reads_as_it_was_asked_for(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.protect(bridge.name, AROUND)
        assert await fabric.read(bridge.name) == (CONTENT,)
        assert any("group:" in line and "output" not in line for line in bridge.entries if "table=1" in line)
        wider = Flow(CONTENT.match, 1000, (Output(HOST), Output(LINK)))
        await fabric.apply(bridge.name, [FlowOp(OpKind.MODIFY, wider)])
        assert await fabric.read(bridge.name) == (wider,)
        await fabric.protect(bridge.name, NO_PROTECTION)
        assert await fabric.read(bridge.name) == (wider,)
        assert bridge.groups == [] and not any("group:" in line for line in bridge.entries)

    bridge.use(work)


def test_a_dead_link_is_gone_around_and_nothing_goes_back_over_it(bridge):
    bridge.use(lambda fabric: fabric.protect(bridge.name, AROUND))
    assert bridge.send(HOST, event()) == {LINK: [None], NEAR: [None]}
    assert bridge.send(VIA, event(IN)) == {NEAR: [None]}  # as if it had come over the link
    assert bridge.send(NEAR, event(PASSING)) == {VIA: [PASSING]}
    assert bridge.send(NEAR, event(IN)) == {}  # it does not come in there
    assert bridge.send(HOST, event(PASSING)) == bridge.send(HOST, event(77)) == {}
    bridge.set_link(up=False)
    assert bridge.send(HOST, event()) == {VIA: [OUT], NEAR: [None]}
    assert bridge.send(VIA, event()) == {VIA: [OUT], NEAR: [None]}  # out of where it came from
    assert bridge.send(VIA, event(IN)) == {NEAR: [None]}
    bridge.set_link(up=True)
    assert bridge.send(HOST, event()) == {LINK: [None], NEAR: [None]}


def test_labels_are_led_around_alike(bridge):
    """A packet for those behind the link, behind the near switch and for the host: the bits stay on the way."""
    to_host = Deliver(HOST, 0x333300000001, Prefix.parse("ff02::f10e:0:1/128"))
    whole = PrefixMatch(Prefix.parse("ff1e::/16"))
    tables = (
        Flow(whole, 1000, (), onward=16),
        Flow(whole, 1001, (Output(LINK),), table=16, onward=17),
        Flow(whole, 1001, (to_host,), table=17, onward=18),
        Flow(whole, 1001, (Output(NEAR),), table=18),
    )

    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, flow) for flow in reversed(tables)])
        costs = await fabric.look_at_detours(bridge.name, AROUND)
        assert costs.modify == 3, "the entry for dz, and two of those for labels"
        await fabric.protect(bridge.name, AROUND)
        assert await fabric.read(bridge.name) == (CONTENT, *tables)
        assert await fabric.look_at_detours(bridge.name, AROUND) == DetourCosts()

    bridge.use(work)
    label = partial(event, to="ff1e:e000::")
    for entry, port in ((bridge.labels(16), LINK), (bridge.labels(18), NEAR)):
        assert f"group:{0xF1050000 + port}" in entry and "output" not in entry
    assert bridge.send(VIA, label()) == {LINK: [None], HOST: [None], NEAR: [None]}
    assert bridge.send(VIA, label(IN)) == {HOST: [None], NEAR: [None]}  # as if it had come over the link
    bridge.set_link(up=False)
    assert bridge.send(VIA, label()) == {VIA: [OUT], HOST: [None], NEAR: [None]}
    assert bridge.send(NEAR, label()) == {VIA: [OUT], HOST: [None]}
    assert bridge.send(VIA, label(IN)) == {HOST: [None], NEAR: [None]}, "nothing goes back over the dead link"
    bridge.use(lambda fabric: fabric.protect(bridge.name, NO_PROTECTION))
    assert not any("group:" in line for line in bridge.entries)


def test_events_of_ipv4_are_led_around_alike(bridge):
    content = Flow(PrefixMatch(Prefix.parse("225.128.0.0/9")), 1000, CONTENT.actions)

    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, content)])
        await fabric.protect(bridge.name, replace(AROUND, family=4))
        assert await fabric.look_at_detours(bridge.name, replace(AROUND, family=4)) == DetourCosts()

    bridge.use(work)
    bridge.set_link(up=False)
    assert bridge.send(HOST, event(family=4)) == {VIA: [OUT], NEAR: [None]}
    assert bridge.send(VIA, event(IN, family=4)) == {NEAR: [None]}
    assert bridge.send(NEAR, event(PASSING, family=4)) == {VIA: [PASSING]}


def test_nothing_gets_around_a_closed_port(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.protect(bridge.name, AROUND)
        bridge.set_link(up=False)
        await fabric.fence(bridge.name, LINK, True)
        shut = AROUND.closed_at({LINK})
        assert await fabric.protection(bridge.name) == shut
        assert bridge.send(HOST, event()) == {NEAR: [None]}
        assert bridge.send(VIA, event(IN)) == {}
        await fabric.protect(bridge.name, AROUND)  # whoever asks did not know
        assert await fabric.protection(bridge.name) == shut
        await fabric.fence(bridge.name, LINK, False)
        await fabric.protect(bridge.name, AROUND)
        assert await fabric.protection(bridge.name) == AROUND

    async def of_another(fabric: OpenFlowFabric) -> None:
        """It fences before it knows of any detours."""
        await fabric.fence(bridge.name, LINK, True)
        assert await fabric.protection(bridge.name) == AROUND.closed_at({LINK})

    bridge.use(work)
    bridge.use(of_another)


def test_what_somebody_has_broken_is_told_and_set_right(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        await fabric.protect(bridge.name, AROUND)
        bridge.vswitch.ofctl("del-flows", bridge.name, "table=2")
        held = await fabric.protection(bridge.name)
        assert held.ways == {} and held.landings == AROUND.landings
        await fabric.protect(bridge.name, AROUND)
        assert await fabric.protection(bridge.name) == AROUND
        bridge.vswitch.ofctl("del-groups", bridge.name)
        assert (await fabric.protection(bridge.name)).links == frozenset()
        await fabric.protect(bridge.name, AROUND)
        await fabric.read(bridge.name)  # its entries went with the groups
        await fabric.apply(bridge.name, [FlowOp(OpKind.INSTALL, CONTENT)])
        assert bridge.send(HOST, event()) == {LINK: [None], NEAR: [None]}

    bridge.use(work)


def test_a_port_beyond_the_last_number_gets_no_detour(bridge):
    async def work(fabric: OpenFlowFabric) -> None:
        with pytest.raises(DetoursRefused, match="port 5000 gets no group; right is a port up to 4095"):
            await fabric.protect(bridge.name, Protection(frozenset({5000})))
        assert await fabric.look_at_detours(bridge.name, Protection(frozenset({5000}))) == DetourCosts()

    bridge.use(work)


@pytest.mark.parametrize("body", [b"\0\x08", b"\0\x04\0\0\0\0\0\0", b"\0\xff\0\0\0\0\0\0"])
def test_a_group_that_does_not_add_up_is_a_peers_mistake(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(groups_in(body))
