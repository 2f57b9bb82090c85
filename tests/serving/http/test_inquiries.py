"""Questions without a token, on real sockets: who asks much delays neither hosts, nor others, nor the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import thread_time
from typing import Any

import httpx
import pytest
from office import SECONDS, Office, until

from flowsieve.serving.http import inquiries, views
from flowsieve.serving.http.app import taking_calls

CALL = {"session": "a" * 32, "n": 1, "host": "ann", "op": "sub", "filter": "live"}
WORK_SECONDS = 0.03
MANY = 30  # questions of one address: no more than its share


class Place:
    """A controller at a TCP port and at the operator's socket; `asked` counts the quotes that it has worked out."""

    def __init__(self, office: Office, port: int, path: Path, stack: AsyncExitStack) -> None:
        self.office, self._port, self._path, self._stack = office, port, path, stack
        self.asked: list[str] = []

    async def tcp(self, address: str = "127.0.0.1") -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=None)
        made = httpx.AsyncHTTPTransport(local_address=address, limits=limits)
        return await self._client(made, f"http://127.0.0.1:{self._port}")

    async def operator(self) -> httpx.AsyncClient:
        return await self._client(httpx.AsyncHTTPTransport(uds=str(self._path)), "http://x")

    async def _client(self, transport: httpx.AsyncHTTPTransport, url: str) -> httpx.AsyncClient:
        client = httpx.AsyncClient(transport=transport, base_url=url, timeout=SECONDS)
        return await self._stack.enter_async_context(client)

    def crowd(self, client: httpx.AsyncClient, count: int) -> list[asyncio.Task[httpx.Response]]:
        """So many who ask at a time."""
        return [asyncio.create_task(quote(client)) for _ in range(count)]


async def quote(client: httpx.AsyncClient, host: str = "cy") -> httpx.Response:
    return await client.get("/v1/quote", params={"host": host, "filter": "live"})


@asynccontextmanager
async def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    real, path, office = views.quote, folder / "http", Office(folder)

    def slow(dispatcher: Any, host: str, *about: str) -> Any:
        place.asked.append(host)
        end = thread_time() + WORK_SECONDS
        while thread_time() < end:
            pass
        return real(dispatcher, host, *about)

    monkeypatch.setattr(views, "quote", slow)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(office.open())
        addresses = ["tcp:127.0.0.1:0", f"unix:{path}"]
        served = taking_calls(office.handler, office.dispatcher, addresses)
        place = Place(office, (await stack.enter_async_context(served)).port, path, stack)
        yield place


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, story: Callable[[Place], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(3 * SECONDS), opened(folder, monkeypatch) as place:
            await story(place)

    asyncio.run(whole())


def test_a_subscription_does_not_wait_for_all_who_ask_what_one_would_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(place: Place) -> None:
        client = await place.tcp()
        crowd = place.crowd(client, MANY)
        await until(lambda: bool(place.asked))
        answer = await client.post("/v1/calls", json=CALL)
        assert answer.status_code == 200
        assert len(place.asked) < MANY // 2, "the call has waited for most of the questions"
        assert (await crowd[0]).json()["fits"] is True
        for task in crowd:
            task.cancel()

    play(tmp_path, monkeypatch, story)


def test_one_who_asks_much_is_told_to_come_later_and_others_take_turns_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inquiries, "REFUSED_SECONDS", 0.0)
    monkeypatch.setattr(inquiries, "MOST_WAITING", 16)

    async def story(place: Place) -> None:
        crowd = place.crowd(await place.tcp(), MANY)
        await until(lambda: sum(each.done() for each in crowd) >= MANY - 8)
        refused = [task.result() for task in crowd if task.done() and task.result().status_code != 200]
        assert {(each.status_code, each.headers["Retry-After"]) for each in refused} == {(503, "1")}
        assert "too many questions" in refused[0].json()["error"]["text"]
        other, operator = await place.tcp("127.0.0.9"), await place.operator()
        (await other.get("/v1/health")).raise_for_status()
        before = len(place.asked)
        answers = await asyncio.gather(quote(other, "bob"), quote(operator, "ann"))
        assert [each.status_code for each in answers] == [200, 200]
        since = place.asked[before:]
        assert since.index("bob") <= 3 and since.index("ann") <= 3, since
        for task in crowd:
            task.cancel()

    play(tmp_path, monkeypatch, story)


def test_a_wrong_question_is_no_reason_to_keep_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(place: Place) -> None:
        client = await place.tcp()
        for _ in range(10):
            assert (await quote(client, "nobody")).status_code == 400
        assert (await quote(client)).status_code == 200

    play(tmp_path, monkeypatch, story)
