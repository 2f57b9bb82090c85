"""A controller of switches that are no lab's: they connect to it, and are told apart by their datapath ids alone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from foreign import Foreign, foreign
from hatchery import Hatchery

from flowsieve.errors import Denied
from flowsieve.network.topology import Topology

pytestmark = pytest.mark.real

TREE = Topology.make([("s1", "s2"), ("s3", "s4")], {"h1": "s1", "h2": "s2", "h3": "s3", "h4": "s4"})
Story = Callable[[Foreign], Awaitable[None]]


def play(story: Story, hatchery: Hatchery, network: str | Topology = "ring:4", **knows: Any) -> None:
    async def whole() -> None:
        async with foreign(network, hatchery, **knows) as there:
            await story(there)

    asyncio.run(whole())


@pytest.mark.parametrize(
    "dialled", [frozenset(), frozenset({"s1", "s2"})], ids=["listening", "dialling some"]
)
def test_described_switches_that_connect_deliver_and_are_adopted_after_a_restart(
    hatchery: Hatchery, dialled: frozenset[str]
) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.populate()
        await there.became_ready()
        before = there.tables()
        with there.watched() as watch:
            await there.stop_it(signal.SIGKILL)
            told = await there.start()
            assert told["subscriptions"] > 0
            await there.became_ready()
            assert watch.changes == {}
        assert there.tables() == before
        await there.subscribe("h1", "b < 99")
        assert await there.judge() == 0

    play(story, hatchery, described=True, dialled=dialled)


def test_ports_in_no_order_deliver_and_links_that_fail_are_mended(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.renumber(1)
        there.point()
        await there.start()
        await there.populate()
        async with there.outage():
            there.lab.set_link("s0", "s1", up=False)
            await there.down(["s0", "s1"])
            await there.became_ready()
        async with there.outage():
            there.lab.set_link("s0", "s1", up=True)
            await there.logged("links that are down: 0")
            await there.became_ready()
        assert await there.difference("wrong port") == 0
        await there.judge()

    play(story, hatchery, described=True)


def test_a_network_that_nobody_described_is_found_and_delivers_and_is_known_after_a_restart(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.renumber(2)
        there.point()
        await there.start()
        links = (await there.ask("/v1/topology"))["links"]
        assert sorted(map(sorted, links)) == [["s0", "s1"], ["s0", "s3"], ["s1", "s2"], ["s2", "s3"]]
        await there.speak(*there.lab.topology.hosts)
        await there.populate()
        await there.became_ready()
        for kind in ("link missing", "link unknown", "wrong port", "host elsewhere", "host unknown"):
            assert await there.difference(kind) == 0
        before = there.tables()
        for how in (signal.SIGKILL, signal.SIGTERM):
            with there.watched() as watch:
                await there.stop_it(how)
                await there.start()
                await there.became_ready()
                assert watch.changes == {}
            assert "found: " not in " ".join(each["text"] for each in there.log())
            assert there.tables() == before
        assert await there.judge() == 0

    play(story, hatchery)


def test_links_and_hosts_that_appear_are_taken_in_while_events_flow(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.speak("h1", "h2", "h4")
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        await there.subscribe("h4", "b < 128")  # cut off from h1 so far
        there.add_cable("s2", "s3", (40, 41))
        await there.linked("s2", "s3")
        await there.became_ready()
        await there.speak("h3")
        await there.subscribe("h3", "a < 64")
        await there.subscribe("h4", "a >= 200")
        there.wanted = [each for each in there.wanted if (each.host, each.filter.text) != ("h4", "b < 128")]
        await asyncio.sleep(0.5)  # for events to be published
        with there.watched() as watch:
            await there.stop_it(signal.SIGKILL)
            await there.start()
            await there.became_ready()
            assert watch.changes == {}
        assert await there.judge() == 0
        assert all(each.got for each in there.wanted)

    play(story, hatchery, TREE)


def test_a_switch_that_nobody_named_is_told_of_and_not_served(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.logged("a switch of the datapath id 0000000000000004 connects")
        assert await there.difference("switch unknown") == 1
        assert (await there.ask("/v1/topology"))["switches"] == ["s1", "s2", "s3"]
        assert there.tables()["s4"] == []
        await there.speak("h1", "h2")
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        assert await there.judge() == 0

    play(story, hatchery, TREE, left_out=frozenset({"s4"}))


def test_the_commands_know_a_network_that_is_no_lab(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        path, command = str(there.config), hatchery.run
        assert command("controller", path, "--check").returncode == 0
        there.state.write_text("in the way")
        for option in ("--check", "--json"):
            wrong = command("controller", path, option)
            assert (wrong.returncode, wrong.stdout) == (2, "")
            assert f"the state cannot be kept in {there.state}: {there.state} is no folder" in wrong.stderr
        there.state.unlink()
        there.point()
        await there.start()
        await there.speak("h1")
        told = command("token", path, "h1")
        assert told.stdout.strip() == there.token("h1")
        assert "there is no host 'h9'" in command("token", path, "h9").stderr
        assert "say where it will be, as --at SWITCH:PORT" in command("token", path, "h2").stderr
        topology = there.lab.topology
        at = f"{topology.hosts['h2']}:{topology.port(topology.hosts['h2'], 'h2')}"
        early = command("token", path, "h2", "--at", at).stdout.strip()
        assert await there.hello("h2", early) == "h2"  # as soon as it is found
        taken = command("controller", path)
        assert taken.returncode == 1
        assert "is in use by another controller" in taken.stderr
        beside = command("controller", path, "--dry-run")
        assert beside.returncode == 1
        assert "switches cannot dial us at unix:" in beside.stderr
        await there.became_ready()
        await there.stop_it(signal.SIGTERM)
        dry = command("controller", path, "--dry-run")
        assert dry.returncode == 0, dry.stderr
        assert "nothing would be changed" in dry.stdout

    play(story, hatchery, TREE)


def test_a_switch_that_is_added_to_the_configuration_is_taken_in_while_events_flow(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.speak("h1", "h2")
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        there.add_cable("s2", "s4", (40, 41))
        there.left_out = frozenset()
        there.configure()
        there.signal(signal.SIGHUP)
        await there.logged("the configuration was read again")
        await there.linked("s2", "s4")
        await there.linked("s3", "s4")
        await there.speak("h4", "h3")
        await there.subscribe("h4", "a < 64")
        await there.subscribe("h3", "a >= 64")
        there.configure(more="most_calls = 17", http=False)
        there.signal(signal.SIGHUP)
        await there.logged("the configuration stays as it was")
        await asyncio.sleep(0.5)  # for events to be published
        assert await there.judge() == 0
        assert all(each.got for each in there.wanted)

    play(story, hatchery, TREE, left_out=frozenset({"s4"}))


def test_a_switch_that_is_no_longer_configured_is_forgotten_at_the_next_start(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.speak("h1", "h2")
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        await there.became_ready()
        await there.stop_it(signal.SIGTERM)
        there.left_out = frozenset({"s3", "s4"})
        there.configure()
        with there.watched() as watch:
            await there.start()
            await there.became_ready()
            assert watch.changes == {}
        told = await there.ask("/v1/topology")
        assert (told["switches"], told["links"]) == (["s1", "s2"], [["s1", "s2"]])
        assert await there.judge() == 0

    play(story, hatchery, TREE)


def test_an_application_that_calls_in_band_is_found_by_that(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        assert (await there.ask("/v1/topology"))["hosts"] == {}
        with pytest.raises(Denied, match="another token than that of host 'h1'"):
            await there.hello("h1", "wrong")
        assert (await there.ask("/v1/topology"))["hosts"] == {"h1": "s1"}
        assert await there.hello("h1", there.token("h1")) == "h1"
        with pytest.raises(Denied, match="no port of host 'h2'"):
            await there.hello("h1", there.token("h1"), name="h2")

    play(story, hatchery, TREE)


def test_a_cable_that_is_moved_is_found_at_its_new_ports_once_the_old_link_is_forgotten(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.point()
        await there.start()
        await there.speak("h1", "h2")
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        async with there.outage():
            there.lab.set_link("s1", "s2", up=False)
            await there.down(["s1", "s2"])
            there.signal(signal.SIGHUP)
            await there.logged("forgotten: s1 - s2")
            there.add_cable("s1", "s2", (40, 41))
            await there.linked("s1", "s2")
            await there.became_ready()
        ports = (await there.ask("/v1/topology"))["ports"]
        assert (ports["s1"]["s2"], ports["s2"]["s1"]) == (40, 41)
        there.lab.set_link("s1", "s2", up=True)  # the old one: a second between the same switches
        async with asyncio.timeout(30):
            while await there.difference("link unknown") != 1:
                await asyncio.sleep(0.05)
        await there.subscribe("h2", "a >= 128")
        await asyncio.sleep(0.3)  # for events to be published
        await there.judge()
        assert all(each.got for each in there.wanted)

    play(story, hatchery, TREE)


def test_a_controller_that_is_killed_while_it_takes_in_a_link_goes_on_with_that(hatchery: Hatchery) -> None:
    async def story(there: Foreign) -> None:
        there.renumber(3)
        there.point()
        await there.start()
        await there.speak(*there.lab.topology.hosts)
        await there.publish("h1")
        await there.subscribe("h2", "a < 128")
        there.add_cable("s2", "s3", (40, 41))
        await there.linked("s2", "s3")
        await there.stop_it(signal.SIGKILL)  # tables are under way
        await there.start()
        await there.became_ready()
        assert sorted((await there.ask("/v1/topology"))["links"]) == [
            ["s1", "s2"],
            ["s2", "s3"],
            ["s3", "s4"],
        ]
        there.add_cable("s4", "s1", (50, 51))
        await there.stop_it(signal.SIGKILL)  # nothing of it is written yet, perhaps
        await there.start()
        await there.linked("s1", "s4")
        await there.subscribe("h4", "b < 128")
        await there.subscribe("h3", "b >= 128")
        async with there.outage():
            there.lab.set_link("s1", "s2", up=False)  # the ring is closed: there is another way
            await there.down(["s1", "s2"])
            await there.became_ready()
        await asyncio.sleep(0.3)  # for events to be published
        await there.judge()
        assert all(each.got for each in there.wanted)

    play(story, hatchery, TREE)


def test_ports_that_are_taken_out_of_their_switches_and_put_back_are_done_without_meanwhile(
    hatchery: Hatchery,
) -> None:
    async def story(there: Foreign) -> None:
        there.renumber(4)
        there.point()
        await there.start()
        await there.populate()
        ends = [("s0", "s1"), ("s1", "s0")]
        async with there.outage():
            for switch, other in ends:
                there.vsctl("del-port", there.lab.bridge(switch), there.lab.interface(switch, other))
            await there.down(["s0", "s1"])
            await there.became_ready()
            await there.stop_it(signal.SIGKILL)
            await there.start()
            await there.down(["s0", "s1"])
            await there.became_ready()
        async with there.outage():
            for switch, other in ends:
                end, number = there.lab.interface(switch, other), there.numbers[switch][other]
                there.vsctl(
                    *("add-port", there.lab.bridge(switch), end),
                    *("--", "set", "interface", end, f"ofport_request={number}"),
                )
            await there.logged("links that are down: 0")
            await there.became_ready()
        await there.judge()

    play(story, hatchery, described=True)
