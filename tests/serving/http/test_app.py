"""The controller over real sockets: calls, all that can be looked at, and whatever else is sent there."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from office import SCHEMA, SECONDS, Office, fresh

from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput
from flowsieve.serving.http.app import make_app, taking_calls
from flowsieve.serving.http.http_connection import LONGEST_BODY
from flowsieve.serving.http.server import HttpServer
from flowsieve.serving.metrics.metrics import Metrics

CALL = {"session": "a" * 32, "n": 1, "host": "ann", "op": "sub", "filter": "live"}
VIEWS = (
    "/v1/health",
    "/v1/ready",
    "/v1/status",
    "/v1/topology",
    "/v1/subscriptions",
    "/v1/advertisements",
    "/v1/flows",
    "/v1/verify",
    "/metrics",
    "/openapi.json",
    "/docs",
)


class Place:
    """A handler behind a unix socket, and a client of it."""

    def __init__(self, office: Office, path: Path, http: httpx.AsyncClient) -> None:
        self.office, self.path, self.http = office, path, http

    async def call(self, **fields: Any) -> httpx.Response:
        return await self.http.post("/v1/calls", json=CALL | fields)

    async def bytes(self, sent: bytes) -> bytes:
        """What comes back to bytes on a connection of their own, until it is closed or silent."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        try:
            writer.write(sent)
            writer.write_eof()
            async with asyncio.timeout(5):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[Place]:
    path = folder / "control"
    async with (
        Office(folder).open(**options) as office,
        taking_calls(office.handler, office.dispatcher, [f"unix:{path}"], Metrics()),
        httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(path)), base_url="http://x", timeout=10
        ) as http,
    ):
        yield Place(office, path, http)


def play(folder: Path, story: Callable[[Place], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(SECONDS), opened(folder, **options) as place:
            await story(place)

    asyncio.run(whole())


def told(response: httpx.Response, status: int, kind: str) -> str:
    """What an answer says is wrong."""
    assert (response.status_code, response.json()["error"]["kind"]) == (status, kind), response.text
    text: str = response.json()["error"]["text"]
    return text


def test_calls_are_carried_out_once(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        answers = await asyncio.gather(*(place.call() for _ in range(10)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.text for answer in answers}) == 1
        assert answers[0].json()["ok"]["id"] == "ann-1"
        assert place.office.ids == (["ann-1"], [])

    play(tmp_path, story)


def test_what_is_wrong_has_its_status(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        assert "did you mean 'price'" in told(await place.call(filter="prise < 3"), 400, "bad")
        place.office.handler.most = 0
        busy = await place.call(n=2)
        assert told(busy, 503, "busy")
        assert busy.headers["Retry-After"] == "1"
        place.office.handler.most = 9
        assert (await place.call(n=2, op="adv", filter="True")).status_code == 200
        assert told(await place.call(host="bob"), 403, "denied")
        place.office.fabric.disconnect("s2")
        late = await place.call(session="c" * 32, host="bob", deadline=0.05)
        assert "taken back" in told(late, 504, "failed")
        unready = await place.http.get("/v1/ready")
        assert unready.status_code == 503
        assert "s2" in unready.json()["troubles"]
        assert (await place.http.get("/v1/health")).status_code == 200

    play(tmp_path, story)


def test_all_can_be_looked_at(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.call()
        await place.call(session="b" * 32, host="bob", op="adv", filter="price < 500")
        found = {view: await place.http.get(view) for view in VIEWS}
        assert {view: answer.status_code for view, answer in found.items()} == dict.fromkeys(VIEWS, 200)
        for view in VIEWS[:-3]:
            assert found[view].headers["content-type"] == "application/json"
        assert found["/v1/ready"].json() == {"ready": True, "mended": True, "troubles": {}}
        (sub,) = found["/v1/subscriptions"].json()
        assert (sub["id"], sub["host"], sub["filter"]) == ("ann-1", "ann", "live")
        assert found["/v1/advertisements"].json()[0]["id"] == "bob-2"
        assert found["/v1/topology"].json()["hosts"]["cy"] == "s3"
        assert found["/v1/verify"].json()["holds"] is True
        assert {flow["switch"] for flow in found["/v1/flows"].json()} == {"s1", "s2"}
        assert found["/v1/status"].json()["subscriptions"] == 1
        assert "flowsieve_" in found["/metrics"].text
        one = await place.http.get("/v1/flows", params={"switch": "s1"})
        assert {flow["switch"] for flow in one.json()} == {"s1"}
        assert told(await place.http.get("/v1/flows", params={"switch": "s9"}), 400, "bad")

    play(tmp_path, story)


def test_while_a_large_table_is_proved_calls_are_answered(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        prices = (Filter.parse(f"{n % 1000} <= price < {n % 1000 + 9}", SCHEMA) for n in range(6000))
        asked = [
            Request(Op.SUBSCRIBE, f"many-{n}", ("ann", "bob", "cy")[n % 3], wanted)
            for n, wanted in enumerate(prices)
        ]
        everything = Filter.parse("True", SCHEMA)
        asked += [Request(Op.ADVERTISE, f"all-{host}", host, everything) for host in ("ann", "dee")]
        new = fresh(None, None)
        new.step(asked)
        place.office.dispatcher.replace(new)
        await place.office.dispatcher.settled()
        proof, answered = asyncio.create_task(place.http.get("/v1/verify")), 0
        while not proof.done():
            assert (await place.call(n=answered + 1)).status_code == 200
            answered += not proof.done()
        assert (await proof).json()["holds"] is True
        assert answered >= 3

    play(tmp_path, story)


def test_the_description_names_all_that_there_is(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        described = (await place.http.get("/openapi.json")).json()
        paths = described["paths"]
        assert set(paths) == {*VIEWS[:-2], "/v1/calls", "/v1/explain", "/v1/quote"}
        assert all(path in ("/v1/calls", "/v1/explain") or "get" in paths[path] for path in paths)
        example = paths["/v1/calls"]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert set(example) == {"session", "n", "host", "token", "op", "filter"}
        assert described["info"]["title"] == "flowsieve"

    play(tmp_path, story)


def test_a_subscription_has_a_price_before_it_is_made_and_nothing_is_changed(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.call(op="adv", filter="True")
        before = place.office.dispatcher.operations
        priced = (await place.http.get("/v1/quote", params={"host": "cy", "filter": "live"})).json()
        assert priced["fits"] is True
        assert priced["entries"]["s1"] >= 1
        assert place.office.ids == ([], ["ann-1"])
        await place.office.dispatcher.settled()
        assert place.office.dispatcher.operations == before
        for params in ({"host": "cyy", "filter": "live"}, {"host": "cy", "filter": "x"}, {"host": "cy"}):
            assert told(await place.http.get("/v1/quote", params=params), 400, "bad")

    play(tmp_path, story)


def test_the_way_of_an_event_is_explained(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.call(host="bob")
        await place.call(session="b" * 32, op="adv", filter="True")
        asked: dict[str, Any] = {"host": "ann", "event": {"price": 3, "live": True}}
        explained = await place.http.post("/v1/explain", json=asked)
        assert explained.status_code == 200
        assert explained.json()["delivered"] == ["bob"]
        for change in (
            {"host": "anna"},
            {"host": 5},
            {"event": []},
            {"event": {"price": 3}},
            {"event": {"price": 3, "live": True, "more": 1}},
            {"event": {"price": [], "live": True}},
            {"event": {"price": 1e99, "live": True}},
        ):
            assert told(await place.http.post("/v1/explain", json=asked | change), 400, "bad"), change
        raw = b'{"host": "ann", "event": {"price": NaN, "live": true}}'
        assert told(await place.http.post("/v1/explain", content=raw), 400, "bad")

    play(tmp_path, story)


def test_an_id_that_no_text_can_have_is_refused_and_one_in_a_journal_is_shown_escaped(tmp_path: Path) -> None:
    async def before(place: Place) -> None:
        raw = json.dumps(CALL | {"id": "half\ud800"}).encode()  # as an escape, which JSON allows
        assert "surrogate" in told(await place.http.post("/v1/calls", content=raw), 400, "bad")
        assert (await place.http.get("/v1/subscriptions")).json() == []
        request = Request(Op.SUBSCRIBE, "half\ud800", "bob", Filter.parse("live", SCHEMA))
        await place.office.dispatcher.submit(request)  # as a controller took it that did not look
        assert (await place.call(id="whole")).status_code == 200

    async def after(place: Place) -> None:
        ids = [each["id"] for each in (await place.http.get("/v1/subscriptions")).json()]
        assert ids == ["half\\ud800", "whole"]
        await place.call(session="b" * 32, host="cy", op="adv", filter="True")
        asked = {"host": "cy", "event": {"price": 3, "live": True}}
        explained = await place.http.post("/v1/explain", json=asked)
        assert sorted(explained.json()["matches"]) == ["half\\ud800", "whole"]
        assert (await place.http.get("/v1/verify")).json()["holds"] is True

    play(tmp_path, before)
    play(tmp_path, after)


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/explain"])
def test_bodies_that_say_nothing_are_told_so(tmp_path: Path, path: str) -> None:
    async def story(place: Place) -> None:
        for body in (b"", b"{", b"[]", b"5", b"\xff\x00", b"[" * 200_000, b'{"a":' * 200_000):
            assert told(await place.http.post(path, content=body), 400, "bad"), body[:20]
        assert (await place.http.get("/v1/health")).status_code == 200

    play(tmp_path, story)


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/explain"])
def test_a_body_that_is_too_long_is_not_kept(tmp_path: Path, path: str) -> None:
    async def story(place: Place) -> None:
        async def body() -> AsyncIterator[bytes]:
            for _ in range(400):
                yield b" " * 65536

        answer = await place.http.post(path, content=body())
        assert f"{LONGEST_BODY:,} bytes" in told(answer, 400, "bad")
        whole = b'{"x": "' + b"x" * LONGEST_BODY + b'"}'
        assert told(await place.http.post(path, content=whole), 400, "bad")
        assert (await place.call()).status_code == 200

    play(tmp_path, story)


def test_whatever_comes_over_the_socket_it_goes_on(tmp_path: Path) -> None:
    random = Random(1)
    good = b"POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(json.dumps(CALL))

    async def story(place: Place) -> None:
        for _ in range(40):
            assert not (await place.bytes(random.randbytes(random.randint(1, 300)))).startswith(
                b"HTTP/1.1 200"
            )
        for _ in range(60):
            cut = bytearray(good + json.dumps(CALL).encode())
            for _ in range(random.randint(0, 3)):
                cut[random.randrange(len(cut))] = random.randrange(256)
            await place.bytes(bytes(cut[: random.randint(0, len(cut))]))
        assert (await place.http.get("/v1/health")).status_code == 200
        assert len(place.office.ids[0]) <= 60

    play(tmp_path, story)


def test_unknown_places_and_ways_are_told(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        assert (await place.http.get("/v1/nothing")).status_code == 404
        assert (await place.http.get("/v1/calls")).status_code == 405
        assert (await place.http.delete("/v1/subscriptions")).status_code == 405

    play(tmp_path, story)


def test_a_view_is_of_the_state_as_it_is_now(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        await place.call()
        place.office.dispatcher.replace(fresh(None, None))
        assert (await place.http.get("/v1/subscriptions")).json() == []
        assert (await place.http.get("/v1/status")).json()["subscriptions"] == 0

    play(tmp_path, story)


def test_two_controllers_do_not_take_one_socket_but_a_dead_ones_is_taken(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        app = make_app(place.office.handler, place.office.dispatcher)
        with pytest.raises(BadInput, match="another controller listens there"):
            async with HttpServer(app, [f"unix:{place.path}"]):
                pass
        assert (await place.http.get("/v1/health")).status_code == 200
        dead = tmp_path / "dead"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(dead))
        async with (
            HttpServer(app, [f"unix:{dead}"]),
            httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(dead)), base_url="http://x") as http,
        ):
            assert (await http.get("/v1/health")).status_code == 200
        assert not dead.exists()

    play(tmp_path, story)
    assert not (tmp_path / "control").exists()


def test_where_nothing_can_be_taken_it_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    async def story(place: Place) -> None:
        app = make_app(place.office.handler, place.office.dispatcher)
        file, first = tmp_path / "file", tmp_path / "first"
        file.write_text("of somebody")
        for address, why in (
            (f"unix:{file}", "there is a file, and it is no socket"),
            (f"unix:{tmp_path}/no/such/place", "No such file"),
            ("tcp:192.0.2.1:80", "cannot assign"),
        ):
            with pytest.raises(BadInput, match=why):
                async with HttpServer(app, [f"unix:{first}", address]):
                    pass
            assert not first.exists()
        assert file.read_text() == "of somebody"

    play(tmp_path, story)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_tcp_will_do_as_well_and_interests_outlive_the_server(tmp_path: Path, host: str) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with asyncio.timeout(SECONDS), office.open():
            server = HttpServer(make_app(office.handler, office.dispatcher), [f"tcp:{host}:0"])
            async with server, httpx.AsyncClient() as http:
                answer = await http.post(f"http://{host}:{server.port}/v1/calls", json=CALL)
                assert answer.status_code == 200
            assert office.ids == (["ann-1"], [])

    asyncio.run(story())
