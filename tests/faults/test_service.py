"""What an operator, a disk and strangers do to a controller that runs: it says what is wrong, and events flow on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import httpx
import pytest
from burst import bursting
from daemonic import Daemonic, daemonic, ofctl
from hatchery import Hatchery
from traffic import PATIENCE

from flowsieve.client.event_sockets import interface_index, leave_by
from flowsieve.client.session import connect
from flowsieve.control.repair.link_log import link_text
from flowsieve.errors import Denied
from flowsieve.header.address import address_text
from flowsieve.lab.lab_site import site_of
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.serving.config import read_config
from flowsieve.serving.preview import would_change

pytestmark = pytest.mark.real

STRINGS = 300  # of random bytes, to each place
Story = Callable[[Daemonic], Awaitable[None]]


def play(story: Story, hatchery: Hatchery, topology: str = "ring:4") -> None:
    async def whole() -> None:
        async with daemonic(topology, hatchery) as there:
            await story(there)

    asyncio.run(whole())


async def some(there: Daemonic, seed: int, seconds: float = 0.5, clients: int = 3) -> None:
    """A burst of requests, and the look whether the controller holds what it promised."""
    async with bursting(there, random.Random(seed), clients) as burst:
        await asyncio.sleep(seconds)
    await burst.check()


# SIGHUP.


def test_a_configuration_that_is_read_again_changes_no_more_than_it_has_to(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.populate()
        await some(there, 1)
        await there.became_ready()
        with there.watched() as watch:
            there.signal(signal.SIGHUP)
            await there.logged("0 flow operations follow")
            there.configure("lease = 7")
            there.signal(signal.SIGHUP)
            await there.logged("0 flow operations follow", times=2)
            there.config.write_text("[schema\n")
            there.signal(signal.SIGHUP)
            await there.logged("the configuration stays as it was")
            assert watch.changes == {}
        async with connect(f"unix:{there.lab.requests}", "h1", there.token("h1")) as client:
            assert client._welcome.lease == 7
        fullest = max(map(len, there.tables().values()))
        there.configure("lease = 7", capacity=fullest // 2)
        there.signal(signal.SIGHUP)
        await there.logged("flow operations follow", times=3)
        await there.became_ready()
        content = [sum("ff0e" in flow for flow in flows) for flows in there.tables().values()]
        assert max(content) <= fullest // 2
        rows = await there.ask("/v1/subscriptions")
        await there.subscribe("h2", "a < 50")
        assert len(await there.ask("/v1/subscriptions")) == len(rows) + 1
        assert await there.judge() == 0

    play(story, hatchery)


def test_a_shorter_lease_ends_no_client_that_keeps_to_the_one_it_was_promised(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        there.configure("lease = 6")
        await there.start()
        await there.populate()
        held = len(await there.ask("/v1/subscriptions"))
        there.configure("lease = 1")
        there.signal(signal.SIGHUP)
        await there.logged("0 flow operations follow")
        await asyncio.sleep(3.0)  # longer than clients of old have between renewals
        assert len(await there.ask("/v1/subscriptions")) == held
        assert await there.judge() == 0

    play(story, hatchery)


# The disk.


def test_a_torn_journal_costs_nothing_that_was_acknowledged_before_the_tear(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        dice = random.Random(3)
        await there.start()
        await there.populate()
        await some(there, 2)
        await there.stop_it(signal.SIGKILL)
        wal = there.state / "journal.db-wal"
        with wal.open("ab") as file:  # what a power cut may leave behind the last transaction
            file.write(dice.randbytes(dice.randrange(1, 9000)))
        with there.watched() as watch:
            await there.start()
            await there.became_ready()
            assert watch.changes == {}
        await some(there, 3)
        assert await there.judge() == 0

    play(story, hatchery)


def test_a_journal_without_its_end_makes_a_network_that_does_what_the_rest_says(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        async with bursting(there, random.Random(4), 3):
            await asyncio.sleep(0.5)
        before = {row["id"] for row in await there.ask("/v1/subscriptions")}
        await there.stop_it(signal.SIGKILL)
        wal = there.state / "journal.db-wal"
        with wal.open("r+b") as file:
            file.truncate(wal.stat().st_size * 2 // 3)
        await there.start()
        await there.became_ready()
        left = {row["id"] for row in await there.ask("/v1/subscriptions")}
        assert left != before
        assert (await there.ask("/v1/verify"))["holds"]
        await some(there, 5)

    play(story, hatchery)


def test_a_journal_that_is_no_journal_is_refused_and_nothing_is_touched(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await some(there, 6)
        await there.stop_it(signal.SIGTERM)
        journal = there.state / "journal.db"
        journal.write_bytes(random.Random(7).randbytes(journal.stat().st_size))
        with there.watched() as watch:
            done = await asyncio.to_thread(hatchery.run, *there.command("--json"))
            assert done.returncode == 2, done
            assert done.stdout == ""
            assert "is damaged" in done.stderr and "Traceback" not in done.stderr
            assert watch.changes == {}

    play(story, hatchery)


def test_a_full_disk_stops_requests_and_nothing_else(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        there.state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", there.state], check=True)
        try:
            await full_disk(there)
        finally:
            with contextlib.suppress(AssertionError):
                await there.stop_it(signal.SIGKILL)
            subprocess.run(["umount", "-l", there.state], check=True)

    play(story, hatchery)


async def full_disk(there: Daemonic) -> None:
    await there.start()
    await there.populate()
    await some(there, 8)
    ballast = there.state / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    async with bursting(there, random.Random(9), 3) as burst:  # until what is left of old pages is used up
        await there.became_ready(False)
        await asyncio.sleep(0.3)
    await burst.check()
    assert burst.refused and all("disk is full" in text for text in burst.refused), burst.refused
    told = await there.ask("/v1/ready")
    assert "disk is full" in told["troubles"]["journal"]
    a, b = (await there.ask("/v1/topology"))["trees"][0]["edges"][0]
    async with there.outage():  # trees are mended all the same
        there.lab.set_link(a, b, False)
        await there.down([a, b])
        assert (await there.ask("/v1/verify"))["holds"]
    ballast.unlink()
    await some(there, 10)  # the first request finds that there is room
    await there.became_ready()
    await there.stop_it(signal.SIGKILL)
    await there.start()
    await there.down([a, b])
    assert await there.judge() >= 0


# UnknownSwitches.


def test_a_wrong_token_is_told_and_does_nothing(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        for token in ("", "0" * 32, there.token("h2")):
            with pytest.raises(Denied, match="h1"):
                async with connect(f"unix:{there.lab.requests}", "h1", token):
                    pass
        with there.lab.inside("h1"):
            with pytest.raises(Denied, match="token"):
                async with connect("inband:eth0", "h1", there.token("h2")):
                    pass
            with pytest.raises(Denied, match="h2"):  # a right one, at another's port
                async with connect("inband:eth0", "h2", there.token("h2")):
                    pass
            async with connect("inband:eth0", "h1", there.token("h1")) as client:
                await client.subscribe("a < 10")
                assert len(await there.ask("/v1/subscriptions")) == 1
        assert await there.ask("/v1/subscriptions") == []

    play(story, hatchery)


def test_random_bytes_at_every_door_disturb_nobody(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        dice = random.Random(11)
        await there.start()
        await there.populate()
        with there.watched() as watch:
            for where in ("unix", "tcp"):
                for number in range(STRINGS):
                    await knock(there, where, noise(dice, number))
            datagrams(there, [dice.randbytes(dice.randrange(1, 1400)) for _ in range(STRINGS)])
            async with httpx.AsyncClient() as client:
                for text in ("", "{", "[]", "9" * 5000, '{"a":' * 5000, json.dumps({"session": 3, "n": -1})):
                    answer = await client.post(f"http://127.0.0.1:{there.port}/v1/calls", content=text)
                    assert answer.status_code == 400, answer.text
                    assert answer.json()["error"]["kind"] == "bad"
            assert watch.changes == {}
        await some(there, 12)
        await there.became_ready()
        assert not [each for each in there.log() if "trace" in each]
        assert await there.judge() == 0

    play(story, hatchery)


def noise(dice: random.Random, number: int) -> bytes:
    """Random bytes, some of which begin as a request would."""
    heads = (
        b"",
        b"POST /v1/calls HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
        b"GET /v1/",
        b"GET / HTTP/1.1\r\n",
    )
    return heads[number % len(heads)] + dice.randbytes(dice.randrange(1, 300))


async def knock(there: Daemonic, where: str, data: bytes) -> None:
    if where == "unix":
        _, writer = await asyncio.open_unix_connection(there.lab.requests)
    else:
        _, writer = await asyncio.open_connection("127.0.0.1", there.port)
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()


def datagrams(there: Daemonic, strings: list[bytes]) -> None:
    """Send to the address in the network that is the controller's, slowly enough to be handed over."""
    where = address_text(6, CONTROL_ADDRESSES[6].first)
    with there.lab.inside("h1"), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as own:
        index = interface_index("eth0")
        leave_by(own, index, hops=1, loop=False)
        for data in strings:
            own.sendto(data, (where, CONTROL_PORT, 0, index))
            time.sleep(0.001)


# What the log tells.

LLDP_FLOOD = """
import socket, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
frame = bytes.fromhex("0180c200000e" "020000000bad" "88cc") + bytes(60)
end = time.monotonic() + 60
while time.monotonic() < end:
    for _ in range(10):
        wire.send(frame)
    time.sleep(0.005)
"""


def test_the_log_has_a_plain_line_for_each_thing_that_an_operator_would_ask_about(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        lab = there.lab
        first = lab.topology.links[0]
        link = link_text(lab.topology, frozenset((first.a, first.b)))
        there.configure("lease = 2")
        await there.start()
        for switch in lab.topology.switches:
            await there.logged(f"switch {switch} is connected for the first time")
        await there.logged(f"the controller of lab {lab.name} is at work: 4 of 4 switches")
        await there.populate()
        await there.became_ready()
        await there.logged("host h1: session")
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(lab.requests))) as client:
            call = {"session": "ab" * 16, "n": 1, "host": "h1", "token": there.token("h1"), "op": "sub"}
            await client.post("http://x/v1/calls", json=call | {"filter": "a < 9"}, timeout=60)
        await there.logged("host h1: session abababab has fallen silent and is over, with 1 subscriptions")
        lab.set_link(first.a, first.b, up=False)
        await there.logged(f"link {link} is down")
        lab.set_link(first.a, first.b, up=True)
        await there.logged(f"link {link} is up again")
        ofctl(lab, lab.topology.switches[1], "del-flows")
        await there.logged("operations (somebody has changed its table)")
        for fall in (2, 3):
            for up, word in ((False, "down"), (True, "up again")):
                lab.set_link(first.a, first.b, up=up)
                await there.logged(f"link {link} is {word}", times=fall)
        await there.logged(f"link {link} comes and goes, and is left out")
        assert [first.a, first.b] in map(sorted, (await there.ask("/v1/status"))["suppressed"])
        shown = await asyncio.to_thread(hatchery.run, "status", "--lab", lab.name)
        assert f"left out since they come and go: {first.a} - {first.b}" in shown.stdout, shown
        switch = lab.topology.hosts["h0"]
        port = lab.topology.port(switch, "h0")
        flood = lab.exec("h0", [sys.executable, "-c", LLDP_FLOOD])
        try:
            await there.logged(f"port {port} of switch {switch} floods: ")
            (told,) = (await there.ask("/v1/status"))["floods"]
            assert (told["switch"], told["port"]) == (switch, port) and told["frames"] > 10
        finally:
            flood.kill()
            flood.wait(10)
        lab.restart_vswitchd()
        await there.logged("is gone: ", times=4)
        await there.logged("is connected again, after ", times=4)
        await there.became_ready()
        await there.stop_it(signal.SIGTERM)
        told = [each["text"] for each in there.log()]
        assert told[-1] == f"the controller of lab {lab.name} ends; switches go on with what they hold"
        assert len(told) < 200, told

    play(story, hatchery)


# Others on the same switches.


def test_entries_of_others_that_catch_events_are_told_by_whoever_is_asked(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.populate()
        await there.became_ready()
        async with there.outage():
            for switch in ("s0", "s2"):
                ofctl(there.lab, switch, "add-flow", flow="priority=3000,ipv6,ipv6_dst=ff00::/8,actions=drop")
            await there.logged("an entry of others comes before ours", times=2)
            told = await there.became_ready(False)
            assert set(told["troubles"]) == {"s0", "s2"}
            verdict = await there.ask("/v1/verify")
            assert verdict["holds"] is False and verdict["false_negatives"] > 0, verdict
            assert "an entry of others: table=0 priority=3000" in verdict["witness"]["where"]
            status = await there.ask("/v1/status")
            assert set(status["others"]) == {"s0", "s2"}
            await there.stop_it(signal.SIGKILL)
            await there.start()
            assert set((await there.became_ready(False))["troubles"]) == {"s0", "s2"}
            for switch in ("s0", "s2"):
                assert "priority=3000" in ofctl(there.lab, switch, "dump-flows")  # it is not ours to remove
                ofctl(there.lab, switch, "--strict", "del-flows", flow="priority=3000,ipv6,ipv6_dst=ff00::/8")
            await there.became_ready()
        await there.judge()

    play(story, hatchery)


# Looking without touching.


def holdings(there: Daemonic) -> Counter[str]:
    """How many entries, service entries and meters the switches hold, and ports that are closed."""
    counts: Counter[str] = Counter()
    for switch in there.lab.topology.switches:
        flows = [line for line in ofctl(there.lab, switch, "dump-flows").splitlines() if "actions=" in line]
        content = sum("table=1," in flow for flow in flows)
        counts["service"] += len(flows) - content
        counts["entries"] += content
        counts["meters"] += len(re.findall(r"meter=\d+", ofctl(there.lab, switch, "dump-meters")))
        counts["ports"] += ofctl(there.lab, switch, "dump-ports-desc").count("NO_FWD")
    return counts


def test_a_dry_run_counts_all_that_a_start_changes_in_switches_that_are_new_or_were_changed(
    hatchery: Hatchery,
) -> None:
    async def foretold(there: Daemonic) -> Counter[str]:
        config = read_config(there.config)
        changes = await would_change(config, site_of(config, there.lab))
        return sum(map(Counter, changes.values()), Counter())

    async def began(there: Daemonic) -> tuple[Counter[str], Counter[str]]:
        before = holdings(there)
        await there.start()
        await there.became_ready()
        async with asyncio.timeout(PATIENCE):
            while not (await there.ask("/v1/status"))["failover"]["settled"]:
                await asyncio.sleep(0.02)
        after = holdings(there)
        await there.stop_it(signal.SIGTERM)
        return before, after

    def holds(told: Counter[str], before: Counter[str], after: Counter[str]) -> bool:
        def net(more: str, less: str) -> int:
            return told[more] - told[less]

        closed, opened = told["port_close"], told["port_open"]
        return (
            after["entries"] - before["entries"] == net("install", "remove")
            and after["service"] - before["service"] == net("service_install", "service_remove")
            and after["meters"] - before["meters"] == net("meter_add", "meter_remove")
            # One end of a link will do: the other is closed if it is there at that moment.
            and closed / 2 <= after["ports"] - before["ports"] + opened <= closed
        )

    async def story(there: Daemonic) -> None:
        fresh = await foretold(there)
        assert fresh["service_install"] > fresh["meter_add"] > 0 and fresh["install"] == 0
        assert holds(fresh, *await began(there))
        assert not await foretold(there)
        await there.start()
        await there.populate()
        await there.became_ready()
        await there.stop_it(signal.SIGKILL)
        assert not await foretold(there)
        link = there.lab.topology.links[0]
        there.lab.set_link(link.a, link.b, up=False)
        other = there.lab.topology.switches[2]
        ofctl(there.lab, other, "del-flows")
        told = await foretold(there)
        assert told["port_close"] > 0 and told["service_install"] > 0 and told["install"] > 0
        assert holds(told, *await began(there))
        there.lab.set_link(link.a, link.b, up=True)
        told = await foretold(there)
        assert told["port_open"] > 0 and told["port_close"] == 0
        assert holds(told, *await began(there))

    play(story, hatchery)


def test_a_dry_run_says_what_a_start_would_change(hatchery: Hatchery) -> None:
    async def story(there: Daemonic) -> None:
        await there.start()
        await there.populate()
        await there.became_ready()
        with there.watched() as watch:
            done = await asyncio.to_thread(hatchery.run, *there.command("--dry-run"))
            assert (done.returncode, done.stdout) == (0, "nothing would be changed\n"), done
            await there.stop_it(signal.SIGKILL)
            assert watch.changes == {}
            switch, flow = next(
                (switch, flow)
                for switch, flows in there.tables().items()
                for flow in flows
                if "table=1" in flow
            )
            match = flow.split(" actions=")[0].split(", ", 1)[1].replace(" ", "")  # without its cookie
            ofctl(there.lab, switch, "--strict", "del-flows", flow=match)
            done = await asyncio.to_thread(hatchery.run, *there.command("--dry-run", "--json"))
            assert json.loads(done.stdout) == {"changes": {switch: {"install": 1}}}, done
            assert list(watch.changes) == [switch] and len(watch.changes[switch]) == 1
            await there.start()
            await there.became_ready()
            assert len(watch.changes[switch]) == 2 and len(watch.changes) == 1

    play(story, hatchery)
