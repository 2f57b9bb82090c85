"""Clients' requests: served when acknowledged, ended with the connection, and no client disturbs another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flowsieve.client.welcome import Welcome
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.errors import BadInput, SwitchError
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.server import AT_ONCE, LONGEST_LINE, RequestServer
from flowsieve.southbound.embedded import EmbeddedNetwork

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}, "live": {"type": "bool"}})
NETWORK = Topology.make([("s1", "s2")], {"ann": "s1", "bob": "s2", "cy": "s2"})
GROUPS = {"ann": "ff02::f10e:0:1", "bob": "ff02::f10e:0:2"}
SECONDS = 20.0


class Embedded:
    """A controller in this process; `gate` holds back what it acknowledges."""

    def __init__(self, settings: Settings | None = None) -> None:
        plan = RegularPlan.make(SCHEMA, bits=8)
        capacity = settings.capacity if settings else None
        self.tag: Tag = POOLS["ipv6"][0]
        self.state = ControlState(NETWORK, plan, None, settings)
        self.network = EmbeddedNetwork(NETWORK, capacity)
        self.controller = Controller(self.state, self.network, self.tag)
        self.gate = asyncio.Event()
        self.gate.set()
        self.served: list[Request] = []
        self.failing: Exception | None = None

    async def submit(self, request: Request) -> Outcome:
        await self.gate.wait()
        if self.failing is not None:
            raise self.failing
        self.served.append(request)
        return self.controller.submit([request])

    @property
    def ids(self) -> tuple[list[str], list[str]]:
        return sorted(self.state.subscriptions), sorted(self.state.advertisements)


class Peer:
    """A client of bare lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *asks: object) -> None:
        self.writer.write(b"".join(json.dumps(ask).encode() + b"\n" for ask in asks))

    async def hear(self) -> Any:
        line = await self.reader.readline()
        return json.loads(line) if line else None

    async def ask(self, *asks: object) -> Any:
        self.send(*asks)
        return [await self.hear() for _ in asks][-1]

    async def wrong(self, line: bytes) -> tuple[str, str]:
        self.writer.write(line + b"\n")
        answer = await self.hear()
        return answer["error"]["kind"], answer["error"]["text"]

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


HELLO = {"n": 0, "op": "hello", "host": "ann"}


class Place:
    """A server on a socket of its own, and whoever connects."""

    def __init__(self, path: Path, service: Embedded) -> None:
        self.path, self.service = path, service
        self.peers: list[Peer] = []

    async def stranger(self) -> Peer:
        self.peers.append(Peer(*await asyncio.open_unix_connection(str(self.path))))
        return self.peers[-1]

    async def close(self) -> None:
        for peer in self.peers:
            await peer.leave()

    async def peer(self, host: str = "ann") -> Peer:
        peer = await self.stranger()
        await peer.ask(HELLO | {"host": host})
        return peer

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    """Have a story played against a server."""

    def run(story: Callable[[Place], Awaitable[None]], settings: Settings | None = None) -> None:
        async def whole() -> None:
            service, path = Embedded(settings), tmp_path / "control"
            async with asyncio.timeout(SECONDS), RequestServer(service, f"unix:{path}", GROUPS, "eth0"):
                place = Place(path, service)
                try:
                    await story(place)
                finally:
                    await place.close()

        asyncio.run(whole())

    return run


def test_hello_is_answered_by_all_that_a_client_needs(play: Any) -> None:
    async def story(place: Place) -> None:
        answer = await (await place.stranger()).ask(HELLO)
        assert answer["n"] == 0
        welcome = Welcome.parse(answer["ok"])
        state = place.service.state
        assert welcome == Welcome("ann", state.plan, place.service.tag, "ff02::f10e:0:1", "eth0")
        assert welcome.schema == SCHEMA

    play(story)


def test_requests_are_served_and_their_answers_say_what_is_owed(play: Any) -> None:
    async def story(place: Place) -> None:
        ann, bob = await place.peer("ann"), await place.peer("bob")
        made = await ann.ask({"n": 1, "op": "adv", "filter": "price < 500"})
        assert made == {"n": 1, "ok": {"id": "ann-1"}}
        got = await bob.ask({"n": 7, "op": "sub", "filter": "price < 512 and live", "id": "cheap"})
        interest = place.service.state.subscriptions["cheap"]
        assert got == {"n": 7, "ok": {"id": "cheap", "dz": interest.dz.texts()}}
        assert (interest.host, interest.filter.text) == ("bob", "price < 512 and live")
        assert place.service.ids == (["cheap"], ["ann-1"])
        assert await bob.ask({"n": 8, "op": "unsub", "id": "cheap"}) == {"n": 8, "ok": {"id": "cheap"}}
        assert await ann.ask({"n": 9, "op": "unadv", "id": "ann-1"}) == {"n": 9, "ok": {"id": "ann-1"}}
        assert place.service.ids == ([], [])

    play(story)


def test_an_answer_comes_after_the_acknowledgement_and_others_need_not_wait(play: Any) -> None:
    async def story(place: Place) -> None:
        ann, bob = await place.peer("ann"), await place.stranger()
        place.service.gate.clear()
        ann.send({"n": 1, "op": "sub", "filter": "live"})
        assert "ok" in await bob.ask(HELLO | {"host": "bob"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ann.hear()
        place.service.gate.set()
        assert (await ann.hear())["n"] == 1

    play(story)


def test_many_requests_at_once_are_all_answered(play: Any) -> None:
    async def story(place: Place) -> None:
        ann = await place.peer()
        asks = [{"n": n, "op": "sub", "filter": f"price > {n}"} for n in range(3 * AT_ONCE)]
        ann.send(*asks)
        answers = [await ann.hear() for _ in asks]
        assert sorted(answer["n"] for answer in answers) == list(range(3 * AT_ONCE))
        assert len({answer["ok"]["id"] for answer in answers}) == 3 * AT_ONCE

    play(story)


@pytest.mark.parametrize("polite", [True, False])
def test_what_a_client_asked_for_ends_with_it_and_nothing_else_does(play: Any, polite: bool) -> None:
    async def story(place: Place) -> None:
        ann, also_ann = await place.peer(), await place.peer()
        for n, op in enumerate(("sub", "adv", "sub")):
            await ann.ask({"n": n, "op": op, "filter": "live"})
        await also_ann.ask({"n": 1, "op": "sub", "filter": "live", "id": "stays"})
        if polite:
            assert await ann.ask({"n": 9, "op": "bye"}) == {"n": 9, "ok": {}}
            assert place.service.ids == (["stays"], [])
            assert await ann.hear() is None
        else:
            await ann.leave()
            await place.until(lambda: place.service.ids == (["stays"], []))
        assert [request.op for request in place.service.served[-3:]] == [Op.UNSUBSCRIBE] * 2 + [
            Op.UNADVERTISE
        ]

    play(story)


def test_a_request_under_way_when_its_client_goes_is_ended_too(play: Any) -> None:
    async def story(place: Place) -> None:
        ann = await place.peer()
        place.service.gate.clear()
        ann.send({"n": 1, "op": "sub", "filter": "live"})
        await ann.leave()
        place.service.gate.set()
        await place.until(lambda: [request.op.value for request in place.service.served] == ["sub", "unsub"])
        assert place.service.ids == ([], [])

    play(story)


def test_nonsense_gets_an_error_and_the_connection_goes_on(play: Any) -> None:
    async def story(place: Place) -> None:
        ann = await place.peer()
        for line, wrong in (
            (b"{", "a line that is no JSON"),
            (b"\xff\x00", "a line that is no JSON"),
            (b"[" * 200_000, "a line that is no JSON"),
            (b"[]", "a request is an object"),
            (b'{"op": "sub"}', "a whole number n"),
            (b'{"n": 1, "op": "subscribe"}', "there is no op 'subscribe'"),
            (b'{"n": 1, "op": {}}', "there is no op {}"),
            (b'{"n": 1, "op": "hello", "host": "bob"}', "hello was said already"),
            (b'{"n": 1, "op": "sub"}', "the filter of sub is a text"),
            (b'{"n": 1, "op": "sub", "filter": "prise < 5"}', "did you mean 'price'"),
            (b'{"n": 1, "op": "sub", "filter": "live", "id": ""}', "an id is a text of 1 to 200"),
            (b'{"n": 1, "op": "unsub"}', "nothing of the id None"),
            (b'{"n": 1, "op": "unsub", "id": "x"}', "nothing of the id 'x' that unsub could end"),
        ):
            kind, text = await ann.wrong(line)
            assert (kind, wrong in text) == ("bad", True), (line[:60], text)
        assert "ok" in await ann.ask({"n": 2, "op": "sub", "filter": "live"})

    play(story)


def test_ids_are_unique_and_only_their_own_client_ends_them(play: Any) -> None:
    async def story(place: Place) -> None:
        ann, bob = await place.peer("ann"), await place.peer("bob")
        await ann.ask({"n": 1, "op": "sub", "filter": "live", "id": "mine"})
        kind, text = await bob.wrong(b'{"n": 1, "op": "sub", "filter": "live", "id": "mine"}')
        assert (kind, text) == ("bad", "the id 'mine' of this sub is in use already")
        assert (await bob.wrong(b'{"n": 1, "op": "unsub", "id": "mine"}'))[0] == "bad"
        assert (await ann.wrong(b'{"n": 1, "op": "unadv", "id": "mine"}'))[0] == "bad"
        assert (await ann.ask({"n": 1, "op": "adv", "filter": "live"}))["ok"] == {"id": "ann-1"}
        assert place.service.ids == (["mine"], ["ann-1"])

    play(story)


def test_hello_comes_first_and_names_a_host(play: Any) -> None:
    async def story(place: Place) -> None:
        peer = await place.stranger()
        assert "say hello first" in (await peer.wrong(b'{"n": 1, "op": "sub", "filter": "live"}'))[1]
        assert (
            "no host 'anna'; did you mean 'ann'"
            in (await peer.wrong(b'{"n": 1, "op": "hello", "host": "anna"}'))[1]
        )
        assert "no host None" in (await peer.wrong(b'{"n": 1, "op": "hello"}'))[1]
        assert "no group of its own" in (await peer.wrong(b'{"n": 1, "op": "hello", "host": "cy"}'))[1]
        assert "ok" in await peer.ask(HELLO)

    play(story)


def test_a_line_without_end_ends_its_connection_alone(play: Any) -> None:
    async def story(place: Place) -> None:
        ann, bob = await place.peer("ann"), await place.peer("bob")
        await ann.ask({"n": 1, "op": "sub", "filter": "live"})
        kind, text = await ann.wrong(b"x" * (LONGEST_LINE + 1))
        assert (kind, "more than 1,048,576 bytes" in text) == ("bad", True)
        await place.until(lambda: place.service.ids == ([], []))
        assert "ok" in await bob.ask({"n": 1, "op": "sub", "filter": "live"})

    play(story)


def test_a_refusal_says_why_and_leaves_nothing(play: Any) -> None:
    async def story(place: Place) -> None:
        ann, bob = await place.peer("ann"), await place.peer("bob")
        await ann.ask({"n": 1, "op": "adv", "filter": "True"})
        kind, text = await bob.wrong(b'{"n": 2, "op": "sub", "filter": "live"}')
        assert (kind, "has room for 0" in text) == ("refused", True)
        assert place.service.ids == ([], ["ann-1"])

    play(story, Settings(capacity=0))


def test_what_fails_below_is_told_as_such(play: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def story(place: Place) -> None:
        ann = await place.peer()
        place.service.failing = SwitchError("switch s1 is away")
        assert await ann.wrong(b'{"n": 1, "op": "sub", "filter": "live"}') == ("failed", "switch s1 is away")
        place.service.failing = ZeroDivisionError("a bug")
        kind, text = await ann.wrong(b'{"n": 1, "op": "sub", "filter": "live"}')
        assert (kind, "a bug" in text) == ("failed", False)
        assert "a bug" in caplog.text
        place.service.failing = None
        assert "ok" in await ann.ask({"n": 1, "op": "sub", "filter": "live"})

    play(story)


def test_two_controllers_do_not_take_one_socket_but_a_dead_ones_is_taken(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "control"
        address = f"unix:{path}"
        async with RequestServer(Embedded(), address, GROUPS):
            with pytest.raises(BadInput, match="another controller takes them there"):
                async with RequestServer(Embedded(), address, GROUPS):
                    pass
        assert not path.exists()
        server = await asyncio.start_unix_server(lambda *_: None, str(path))
        server.close()
        await server.wait_closed()
        assert path.exists()
        async with RequestServer(Embedded(), address, GROUPS):
            peer = Peer(*await asyncio.open_unix_connection(str(path)))
            assert "ok" in await peer.ask(HELLO)
            await peer.leave()
        with pytest.raises(BadInput, match="clients cannot be taken at"):
            async with RequestServer(Embedded(), f"unix:{tmp_path}/no/such/place", GROUPS):
                pass

    asyncio.run(story())


def test_tcp_will_do_as_well_and_interests_outlive_the_server() -> None:
    async def story() -> None:
        service = Embedded()
        async with RequestServer(service, "tcp:127.0.0.1:0", GROUPS) as server:
            peer = Peer(*await asyncio.open_connection("127.0.0.1", server.port))
            assert "ok" in await peer.ask(HELLO, {"n": 1, "op": "sub", "filter": "live"})
        assert await peer.hear() is None
        await peer.leave()
        assert service.ids == (["ann-1"], [])

    asyncio.run(story())
