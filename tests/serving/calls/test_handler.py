"""Clients' calls: carried out once, answered when acknowledged, and no client disturbs another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy import SWITCH, Network, Weather
from office import ENCODING, GROUPS, NETWORK, SCHEMA, SECONDS, Client, Office, play, run, told, until

from flowsieve.client.control_session import ControlConnection
from flowsieve.control.request import Op
from flowsieve.header.frame import parse
from flowsieve.protocol.call_datagram import Part, decode, unpack_answer
from flowsieve.protocol.limits import LONGEST_LEASE
from flowsieve.protocol.version import VERSION
from flowsieve.protocol.welcome import Welcome
from flowsieve.serving.calls import handler as handler_module
from flowsieve.serving.calls import sessions as sessions_module
from flowsieve.serving.calls.handler import AT_ONCE
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.southbound.fabric import PuntedPacket


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler_module, "TICK_SECONDS", 0.01)


def entries(office: Office) -> int:
    """How many entries the journal got from the controller that is at work."""
    return office.dispatcher.scribe.since_snapshot - office.before


# Calls and their answers.


def test_hello_is_answered_by_all_that_a_client_needs(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        welcome = Welcome.parse(await office.client().ok(1, "hello"))
        plan = office.dispatcher.state.plan
        assert welcome == Welcome("ann", plan, ENCODING.tag, GROUPS["ann"], "eth0", 30.0)
        assert welcome.schema == SCHEMA
        assert entries(office) == 0

    play(tmp_path, story)


def test_hello_of_another_version_is_told_and_begins_no_session(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        kind, text = await office.client().wrong(1, "hello", version=1)
        assert kind == "bad"
        assert "the client speaks version 1 of flowsieve's protocol and the controller version 2" in text
        assert len(office.handler.leases) == 0
        await office.client().ok(1, "hello", version=2)

    play(tmp_path, story)


@pytest.mark.parametrize("lease", [5.0, 301.0, LONGEST_LEASE])
def test_a_session_is_renewed_in_band_whatever_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lease: float
) -> None:
    monkeypatch.setattr("flowsieve.client.control_session.RENEWALS", lease / 0.01)

    async def story(office: Office) -> None:
        network = Network(office.handler, Weather(), hosts={1: "ann"})
        connection = ControlConnection(network.transport(1), "ann")
        assert (await connection.ask("hello"))["lease"] == lease
        await connection.ask("sub", filter="live")
        connection.held, before = 1, network.server.counters.answered
        connection.keep(lease)
        await until(lambda: network.server.counters.answered > before + 2)
        assert not connection.lost.done()
        await connection.close()
        assert office.ids == ([], [])

    play(tmp_path, story, lease=lease)


def test_an_id_that_no_text_can_have_is_refused_in_band_too(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        network = Network(office.handler, Weather(), hosts={1: "ann"})
        asked = {**office.client().about, "n": 1, "op": "sub", "filter": "live", "id": "half\ud800"}
        packed = msgpack.packb([VERSION, 0, asked], unicode_errors="surrogatepass")
        network.server.heard(PuntedPacket(SWITCH, 1, network.frame(1, packed)))
        await until(lambda: bool(network.sent))
        part = decode(parse(network.sent[0]).payload)
        assert isinstance(part, Part)
        assert "id = 'half\\ud800'; it is a text without" in told(unpack_answer(part.chunk))[1]
        assert office.ids == ([], [])

    play(tmp_path, story)


def test_requests_are_served_and_their_answers_say_what_is_owed(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann, bob = office.client("ann", 1), office.client("bob", 2)
        assert await ann.ok(1, "adv", filter="price < 500") == {"id": "ann-1"}
        got = await bob.ok(7, "sub", filter="price < 512 and live", id="cheap")
        interest = office.dispatcher.state.subscriptions["cheap"]
        assert got == {"id": "cheap", "dz": interest.dz.texts()}
        assert (interest.endpoint, interest.filter.text) == ("bob", "price < 512 and live")
        assert office.ids == (["cheap"], ["ann-1"])
        assert (await bob.ok(8, "renew"))["holds"] == 1
        assert await bob.ok(9, "unsub", id="cheap") == {"id": "cheap"}
        assert await ann.ok(2, "unadv", id="ann-1") == {"id": "ann-1"}
        assert office.ids == ([], [])

    play(tmp_path, story)


def test_an_answer_comes_after_the_acknowledgement_and_others_need_not_wait(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 1).ok(1, "adv", filter="True")
        office.fabric.disconnect("s3")
        waiting = asyncio.create_task(office.client("cy", 3).ok(1, "sub", filter="live"))
        await office.client("bob", 2).ok(1, "sub", filter="live")
        assert not waiting.done()
        office.fabric.connect("s3")
        assert (await waiting)["id"] == "cy-3"

    play(tmp_path, story)


def test_nonsense_gets_an_error_and_changes_nothing(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        good: dict[str, Any] = {"session": "a" * 32, "n": 1, "host": "ann", "op": "sub", "filter": "live"}
        for change, wrong in (
            ({"session": "A" * 32}, "32 random digits"),
            ({"session": None}, "a call has a session"),
            ({"n": 0}, "n = 0; it is a whole number from 1"),
            ({"n": True}, "n = True"),
            ({"n": 1 << 63}, "n = 9223372036854775808"),
            ({"n": 1.0}, "n = 1.0"),
            ({"op": "subscribe"}, "there is no op 'subscribe'; right is one of hello, adv, sub"),
            ({"op": {}}, "op = {}"),
            ({"op": "sub" * 99}, "1 to 200 characters"),
            ({"host": "anna"}, "no host 'anna'; did you mean 'ann'"),
            ({"host": "dee"}, "no group of its own"),
            ({"host": "\ud800"}, "host = '\\ud800'; it is a text without halves of surrogate pairs"),
            ({"token": "\ud800"}, "token = '\\ud800'"),
            ({"op": "\ud800"}, "op = '\\ud800'"),
            ({"session": "\ud800"}, "session = '\\ud800'"),
            ({"id": "a\ud800b"}, "id = 'a\\ud800b'; it is a text without halves of surrogate pairs"),
            ({"op": "unsub", "id": "\udfff"}, "id = '\\udfff'"),
            ({"filter": None}, "sub has a filter"),
            ({"filter": "prise < 5"}, "did you mean 'price'"),
            ({"filter": "(" * 10_000}, "too many nested parentheses"),
            ({"filter": "price < " + "9" * 5000}, ""),
            ({"filter": "price < 5\x00"}, ""),
            ({"filter": "price == '\ud800'"}, ""),
            ({"filter": "x" * (1 << 20) + "x"}, "1 to 1,048,576 characters"),
            ({"id": ""}, "id = ''; it is a text of 1 to 200"),
            ({"answered": -1}, "answered = -1"),
            ({"deadline": 0}, "deadline = 0; it is a number of seconds up to 300"),
            ({"deadline": float("nan")}, "deadline = nan"),
            ({"deadline": float("inf")}, "deadline = inf"),
            ({"stats": []}, "stats = []"),
            ({"stage": -1}, "stage = -1"),
            ({"stage": None}, "stage = None"),
            ({"checks": 1}, "checks = 1; it is true or false"),
            ({"op": "unsub"}, "nothing of the id None"),
            ({"op": "unsub", "id": "x"}, "nothing of the id 'x' that unsub could end"),
        ):
            kind, text = told(await office.handler.call({**good, **change}))
            assert (kind, wrong in text) == ("bad", True), (str(change)[:80], kind, text[:200])
            good["n"] += 1
        for message in ([], None, "sub", 5):
            assert told(await office.handler.call(message))[0] == "bad"  # type: ignore[arg-type]
        assert entries(office) == 0
        assert "ok" in await office.handler.call(good)

    play(tmp_path, story)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(
    [
        "session",
        "n",
        "host",
        "token",
        "op",
        "id",
        "filter",
        "answered",
        "deadline",
        "stats",
        "version",
        "stage",
    ]
)


@settings(max_examples=300)
@given(st.dictionaries(fields, values, max_size=4))
def test_whatever_a_call_says_it_gets_an_answer(shared_office: SharedOffice, change: dict[str, Any]) -> None:
    good = {"session": "b" * 32, "n": 1, "host": "ann", "token": "x", "op": "renew"}
    answer = shared_office.call({**good, **change})
    assert "ok" in answer or told(answer)[0] in ("bad", "denied", "busy")


class SharedOffice:
    """A handler for many calls that change nothing."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._opened = Office(folder).open(tokens=Tokens(b"s" * 32, NETWORK))
        self._office = self.loop.run_until_complete(self._opened.__aenter__())

    def call(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.loop.run_until_complete(self._office.handler.call(message))

    def close(self) -> None:
        self.loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self.loop.close()


@pytest.fixture(scope="module")
def shared_office(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = SharedOffice(tmp_path_factory.mktemp("office"))
    yield made
    made.close()


def test_a_refusal_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 1).ok(1, "adv", filter="True")
        bob = office.client("bob", 2)
        kind, text = await bob.wrong(1, "sub", filter="live")
        assert (kind, "has room for 0" in text) == ("refused", True)
        assert await bob.wrong(1, "sub", filter="live") == (kind, text)
        assert office.ids == ([], ["ann-1"])
        assert (await bob.ok(2, "renew"))["holds"] == 0

    play(tmp_path, story, capacity=0)


def test_what_is_not_acknowledged_in_time_is_taken_back(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 1).ok(1, "adv", filter="True")
        office.fabric.disconnect("s2", "somebody pulled the plug")
        bob = office.client("bob", 2)
        kind, text = await bob.wrong(1, "sub", filter="live", deadline=0.05)
        assert (kind, "somebody pulled the plug" in text) == ("failed", True)
        assert office.ids == ([], ["ann-1"])

    play(tmp_path, story)


def test_a_bug_below_is_told_as_such_and_not_what_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(office: Office) -> None:
        def broken(requests: object) -> None:
            raise ZeroDivisionError("a bug")

        ann = office.client()
        with monkeypatch.context() as broke:
            broke.setattr(office.dispatcher.state, "step", broken)
            kind, text = await ann.wrong(1, "sub", filter="live")
        assert (kind, "a bug" in text) == ("failed", False)
        assert "a bug" in caplog.text
        await ann.ok(2, "sub", filter="live")

    play(tmp_path, story)


# Once.


def test_a_call_that_comes_again_is_carried_out_once_and_answered_alike(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        at_once = await asyncio.gather(*(ann.ask(1, "sub", filter="live") for _ in range(20)))
        later = [await ann.ask(1, "sub", filter="live") for _ in range(3)]
        assert all(answer == at_once[0] for answer in at_once + later)
        assert office.ids == (["ann-1"], [])
        first = await ann.ask(2, "unsub", id="ann-1")
        assert await ann.ask(2, "unsub", id="ann-1") == first
        assert entries(office) == 2

    play(tmp_path, story)


def test_a_client_that_does_not_wait_finds_its_request_served(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 1).ok(1, "adv", filter="True")
        office.fabric.disconnect("s2")
        bob = office.client("bob", 2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await bob.ask(1, "sub", filter="live")
        office.fabric.connect("s2")
        assert (await bob.ok(1, "sub", filter="live"))["id"] == "bob-2"
        assert entries(office) == 2

    play(tmp_path, story)


def test_a_restarted_controller_gives_the_answers_that_the_one_before_gave(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        calls: list[tuple[int, str, dict[str, str]]] = [
            (1, "sub", {"filter": "live"}),
            (2, "adv", {"filter": "price < 9", "id": "mine"}),
            (3, "sub", {"filter": "price < 9"}),
            (4, "unsub", {"id": "ann-2"}),
            (5, "unsub", {"id": "ann-2"}),
        ]
        async with office.open():
            first = [await office.client().ask(n, op, **fields) for n, op, fields in calls]
            assert ["ok" in answer for answer in first] == [True] * 4 + [False]
            ids = office.ids
        for _ in range(2):
            async with office.open():
                ann = office.client()
                again = await asyncio.gather(*(ann.ask(n, op, **more) for n, op, more in calls * 3))
                assert again[:2] == first[:2]
                assert again[2] == {"ok": {"id": "ann-2"}}  # of what has ended nothing is owed
                assert again[3:5] == first[3:]
                assert again == again[:5] * 3
                assert office.ids == ids == (["ann-1"], ["mine"])
                assert entries(office) == 0
                assert (await ann.ok(9, "renew"))["holds"] == 2

    run(story)


def test_who_was_refused_or_failed_before_a_restart_hears_it_again(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path, capacity=0)
        calls: list[dict[str, Any]] = [{"filter": "live"}, {"filter": "price < 3", "deadline": 0.02}]
        async with office.open():
            await office.client("ann", 1).ok(1, "adv", filter="True")
            first = [await office.client("bob", 2).ask(n, "sub", **more) for n, more in enumerate(calls, 1)]
        async with office.open():
            again = [await office.client("bob", 2).ask(n, "sub", **more) for n, more in enumerate(calls, 1)]
            assert again == first
            assert "error" in first[0]
            assert entries(office) == 0

    run(story)


def test_a_call_cut_short_by_a_restart_is_answered_when_its_switches_have_followed(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with office.open():
            await office.client("ann", 1).ok(1, "adv", filter="True")
            office.fabric.disconnect("s2")
            cut = asyncio.create_task(office.client("bob", 2).ask(1, "sub", filter="live"))
            await until(lambda: "bob-2" in office.dispatcher.state.subscriptions)
        cut.cancel()
        async with office.open(away="s2"):
            bob = office.client("bob", 2)
            waiting = asyncio.create_task(bob.ok(1, "sub", filter="live"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            office.fabric.connect("s2")
            assert (await waiting)["id"] == "bob-2"
            assert entries(office) == 0

    run(story)


def test_a_call_cut_short_that_is_not_served_after_the_restart_either_is_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with office.open():
            await office.client("ann", 1).ok(1, "adv", filter="True")
            office.fabric.disconnect("s2")
            cut = asyncio.create_task(office.client("bob", 2).ask(1, "sub", filter="live"))
            await until(lambda: "bob-2" in office.dispatcher.state.subscriptions)
        cut.cancel()
        async with office.open(away="s2"):
            bob = office.client("bob", 2)
            kind, text = await bob.wrong(1, "sub", filter="live", deadline=0.05)
            assert (kind, "taken back" in text) == ("failed", True)
            assert office.ids == ([], ["ann-1"])
            assert (await bob.ok(2, "renew"))["holds"] == 0
        async with office.open():
            assert await office.client("bob", 2).wrong(1, "sub", filter="live") == (kind, text)

    run(story)


def test_what_was_answered_is_forgotten_and_not_carried_out_again(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        for n in range(1, 101):
            await ann.ok(n, "sub", filter=f"price == {n}", answered=n)
        client = office.handler._sessions.find(ann.session)
        assert client is not None
        assert list(client.answers) == [100]
        assert office.dispatcher.ledger.record(ann.session, 99) is None
        kind, text = await ann.wrong(50, "sub", filter="price == 50")
        assert (kind, text) == ("bad", "call 50 was answered, and you said so")
        assert entries(office) == 100

    play(tmp_path, story)


# Who may.


def test_only_who_has_a_hosts_token_calls_for_it(tmp_path: Path) -> None:
    tokens = Tokens(b"s" * 32, NETWORK)

    async def story(office: Office) -> None:
        ann = office.client()
        for token in ("", "x", "ä", tokens.of("bob")):
            kind, text = await ann.wrong(1, "sub", filter="live", token=token)
            assert (kind, "that of host 'ann'" in text) == ("denied", True)
        assert len(office.handler.leases) == 0
        await ann.ok(1, "sub", filter="live", token=tokens.of("ann"))

    play(tmp_path, story, tokens=tokens)


def test_a_call_from_another_hosts_port_is_denied(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        call = {"session": "a" * 32, "n": 1, "host": "ann", "op": "hello", "version": VERSION}
        assert told(await office.handler.call(call, "bob"))[0] == "denied"
        assert "ok" in await office.handler.call(call, "ann")

    play(tmp_path, story)


def test_a_session_is_of_one_host_also_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with office.open():
            await office.client("ann", 1).ok(1, "sub", filter="live")
            assert (await office.client("bob", 1).wrong(2, "bye"))[0] == "denied"
        async with office.open():
            assert (await office.client("bob", 1).wrong(2, "bye"))[0] == "denied"
            assert office.ids == (["ann-1"], [])

    run(story)


def test_ids_are_unique_and_only_their_own_client_ends_them(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann, bob, also_ann = office.client("ann", 1), office.client("bob", 2), office.client("ann", 3)
        await ann.ok(1, "sub", filter="live", id="mine")
        assert await bob.wrong(1, "sub", filter="live", id="mine") == (
            "bad",
            "the id 'mine' of this sub is in use already",
        )
        for client, op in ((bob, "unsub"), (also_ann, "unsub"), (ann, "unadv")):
            assert (await client.wrong(9, op, id="mine"))[0] == "bad"
        assert await ann.ok(2, "adv", filter="live") == {"id": "ann-1"}
        assert office.ids == (["mine"], ["ann-1"])

    play(tmp_path, story)


def test_ids_that_the_controller_gives_are_new_also_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with office.open():
            await office.client().ok(1, "sub", filter="live", id="ann-2")
            made = [(await office.client().ok(n, "sub", filter="live"))["id"] for n in (2, 3)]
            assert made == ["ann-1", "ann-3"]
        async with office.open():
            assert (await office.client().ok(4, "sub", filter="live"))["id"] == "ann-4"

    run(story)


# Too much.


def test_who_asks_too_much_at_once_is_told_to_wait_and_nothing_is_done(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("bob", 2).ok(1, "adv", filter="True")
        office.fabric.disconnect("s1")
        ann, more = office.client("ann", 1), office.client("ann", 3)
        many = [asyncio.create_task(ann.ask(n, "sub", filter=f"price == {n}")) for n in range(1, AT_ONCE + 2)]
        await until(lambda: any(task.done() for task in many))
        assert [told(task.result())[0] for task in many if task.done()] == ["busy"]
        others = [asyncio.create_task(more.ask(n, "sub", filter="live")) for n in range(1, 13)]
        await until(lambda: sum(task.done() for task in others) == 2)
        assert office.handler.under_way == AT_ONCE + 10
        await office.client("bob", 2).ok(2, "renew")  # the other half is for others
        office.fabric.connect("s1")
        await asyncio.gather(*many, *others)
        await ann.ok(AT_ONCE + 1, "sub", filter="price < 9")
        assert len(office.ids[0]) == AT_ONCE + 11

    play(tmp_path, story, most=2 * (AT_ONCE + 10))


def test_a_host_whose_switch_is_away_leaves_room_for_all_others(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("bob", 1).ok(1, "adv", filter="True")
        office.fabric.disconnect("s1")
        clients = [office.client("ann", name) for name in range(10, 30)]
        asked = [
            asyncio.create_task(client.ask(n, "sub", filter=f"price == {n}"))
            for client in clients
            for n in (1, 2, 3)
        ]
        await until(lambda: sum(task.done() for task in asked) == 60 - 16)
        assert {told(task.result())[0] for task in asked if task.done()} == {"busy"}
        assert office.handler.under_way == 16
        for name in range(40, 60):  # many sessions of one host change nothing for others
            assert (await office.client("cy", name).ok(1, "sub", filter="live"))["id"]
        office.fabric.connect("s1")
        answers = await asyncio.gather(*asked)
        assert sum("ok" in answer for answer in answers) == 16
        await clients[-1].ok(4, "sub", filter="live")

    play(tmp_path, story, most=32)


def test_the_operators_deadline_holds_whatever_a_client_would_wait(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 2).ok(1, "adv", filter="True")
        office.fabric.disconnect("s2")
        bob = office.client("bob", 1)
        for n, (asked, within) in enumerate(((300, 0.2), (None, 0.2), (0.02, 0.02)), 1):
            async with asyncio.timeout(10):
                kind, text = await bob.wrong(n, "sub", filter="live", deadline=asked)
            assert (kind, f"within {within:g} s" in text) == ("failed", True), text

    play(tmp_path, story, patience=0.2)


def test_what_cannot_be_ended_by_a_mistake_of_ours_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(office: Office) -> None:
        await office.client("ann", 1).ok(1, "sub", filter="live")
        submit, failures = office.dispatcher.submit, iter("xx")

        async def failing(*request: Any, **options: Any) -> Any:
            if next(failures, None):
                raise RuntimeError("a mistake")
            return await submit(*request, **options)

        monkeypatch.setattr(office.dispatcher, "submit", failing)
        await until(lambda: office.ids == ([], []))

    play(tmp_path, story, lease=0.1)
    assert "RuntimeError: a mistake" in caplog.text and "Traceback" in caplog.text


def test_a_client_that_hears_no_answer_has_to_say_so_some_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MOST_UNHEARD", 5)

    async def story(office: Office) -> None:
        ann = office.client()
        for n in range(1, 6):
            await ann.ok(n, "sub", filter="live")
        assert (await ann.wrong(6, "sub", filter="live"))[0] == "busy"
        await ann.ok(5, "sub", filter="live")
        await ann.ok(6, "sub", filter="live", answered=3)

    play(tmp_path, story)


def test_sessions_without_number_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(office: Office) -> None:
        office.handler._sessions = sessions_module.ClientSessions(most=50, most_of_a_host=40)
        kinds = [(await office.client("ann", n).ask(1, "hello")).keys() for n in range(60)]
        assert [list(keys) for keys in kinds] == [["ok"]] * 40 + [["error"]] * 20
        await office.client("bob", 99).ok(1, "sub", filter="live")
        assert (await office.client("ann", 41).wrong(1, "hello"))[0] == "busy"
        await until(lambda: len(office.handler._sessions) == 0)
        assert len(office.handler.leases) == 0
        assert list(office.dispatcher.ledger.sessions) == []
        assert office.ids == ([], [])
        await office.client("ann", 41).ok(1, "hello")

    play(tmp_path, story, lease=0.3)


# Leases.


def test_what_a_client_asked_for_ends_when_it_is_not_heard_of_and_nothing_else_does(tmp_path: Path) -> None:
    seen = Seen()

    async def story(office: Office) -> None:
        gone, stays = office.client("ann", 1), office.client("ann", 2)
        for n, op in enumerate(("sub", "adv", "sub"), 1):
            await gone.ok(n, op, filter="live")
        await stays.ok(1, "sub", filter="live", id="stays")
        for n in range(2, 500):
            await stays.ok(n, "renew")
            await asyncio.sleep(0.01)
            if office.ids == (["stays"], []):
                break
        assert office.ids == (["stays"], [])
        await until(lambda: seen.left == [gone.session])
        assert (await gone.ok(9, "renew"))["holds"] == 0
        assert (await stays.ok(500, "renew"))["holds"] == 1

    play(tmp_path, story, lease=0.15, observer=seen)


class Seen:
    """Whatever an observer hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.reports: list[tuple[str, Mapping[str, int]]] = []
        self.left: list[str] = []

    def asked(self, op: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < SECONDS
        self.calls.append((op, outcome))

    def client_reported(self, session: str, stats: Mapping[str, int]) -> None:
        self.reports.append((session, stats))

    def client_left(self, session: str) -> None:
        self.left.append(session)


def test_an_observer_hears_of_every_call(tmp_path: Path) -> None:
    seen = Seen()

    async def story(office: Office) -> None:
        ann = office.client()
        await ann.ok(1, "sub", filter="live")
        await ann.ok(2, "renew", stats={"sent": 3})
        await ann.wrong(3, "sub", filter="nothing")
        await office.handler.call({})
        assert seen.calls == [("sub", "ok"), ("renew", "ok"), ("sub", "bad"), ("unknown", "bad")]
        assert seen.reports == [(ann.session, {"sent": 3})]

    play(tmp_path, story, observer=seen)


def test_a_session_lives_while_a_call_of_it_is_under_way_and_no_longer(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("bob", 2).ok(1, "adv", filter="True")
        office.fabric.disconnect("s1")
        start = time.monotonic()
        waiting = asyncio.create_task(office.client().ok(1, "sub", filter="live"))
        while time.monotonic() < start + 0.2:
            await office.client("bob", 2).ok(2, "renew")
            await asyncio.sleep(0.01)
        assert "ann-2" in office.ids[0]
        office.fabric.connect("s1")
        assert (await waiting)["id"] == "ann-2"
        await until(lambda: office.ids == ([], []))
        await until(lambda: len(office.handler._sessions) == 0)

    play(tmp_path, story, lease=0.05)


def test_bye_ends_all_that_a_client_holds_and_what_comes_late_is_not_carried_out(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        await office.client("ann", 2).ok(1, "sub", filter="live", id="stays")
        for n, op in enumerate(("adv", "sub", "sub"), 1):
            await ann.ok(n, op, filter="live")
        said: list[Op] = []
        submit = office.dispatcher.submit

        async def watched(request: Any, *more: Any, **options: Any) -> Any:
            said.append(request.op)
            return await submit(request, *more, **options)

        office.dispatcher.submit = watched  # type: ignore[method-assign]
        assert (await ann.ok(9, "bye"))["holds"] == 0
        assert said == [Op.UNSUBSCRIBE] * 2 + [Op.UNADVERTISE]
        assert office.ids == (["stays"], [])
        assert (await ann.wrong(2, "sub", filter="live"))[0] == "bad"
        assert (await ann.wrong(8, "sub", filter="live"))[0] == "bad"
        assert (await ann.ok(9, "bye"))["holds"] == 0
        assert office.ids == (["stays"], [])

    play(tmp_path, story)


def test_after_a_restart_clients_have_a_lease_to_be_heard_of_again(tmp_path: Path) -> None:
    async def story() -> None:
        office = Office(tmp_path)
        async with office.open():
            await office.client("ann", 1).ok(1, "sub", filter="live")
            await office.client("bob", 2).ok(1, "sub", filter="live")
        async with office.open(lease=0.2):
            assert office.ids == (["ann-1", "bob-2"], [])
            for n in range(2, 500):
                assert (await office.client("ann", 1).ok(n, "renew"))["holds"] == 1
                await asyncio.sleep(0.01)
                if office.ids == (["ann-1"], []):
                    break
            assert office.ids == (["ann-1"], [])

    run(story)


def test_where_nothing_can_be_written_what_a_client_left_is_ended_later(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        await ann.ok(1, "sub", filter="live")
        journal: Any = office.dispatcher.scribe._journal
        journal._database.execute("PRAGMA query_only = 1")
        kind, text = await ann.wrong(2, "sub", filter="live")
        assert (kind, "journal" in text) == ("failed", True)
        assert office.ids == (["ann-1"], [])
        await asyncio.sleep(0.1)
        assert office.ids == (["ann-1"], [])
        journal._database.execute("PRAGMA query_only = 0")
        await until(lambda: office.ids == ([], []))
        await until(lambda: len(office.handler._sessions) == 0)

    play(tmp_path, story, lease=0.02)


def test_many_clients_that_leave_at_once_do_not_wait_for_one_whose_switch_is_away(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        await office.client("bob", 2).ok(1, "adv", filter="True")
        await office.client("cy", 3).ok(1, "sub", filter="price < 100")
        for n in range(10, 30):
            await Client(office, "ann", f"{n:032x}").ok(1, "sub", filter="live")
        office.fabric.disconnect("s3")
        await until(lambda: not office.ids[0], seconds=4)

    play(tmp_path, story, lease=0.3)


def test_a_controller_that_stands_by_answers_busy_and_ends_nobody(tmp_path: Path) -> None:
    standing_by: list[str] = []

    async def story(office: Office) -> None:
        client = office.client()
        await client.ok(1, "sub", filter="True")
        standing_by.append("another controller holds s1")
        assert await client.wrong(2, "sub", filter="True") == (
            "busy",
            "this controller stands by: another controller holds s1",
        )
        await asyncio.sleep(1.5)  # for longer than a lease
        assert len(office.ids[0]) == 1
        standing_by.clear()
        await until(lambda: not office.ids[0])

    why = lambda: standing_by[0] if standing_by else None  # noqa: E731
    play(tmp_path, story, lease=1.0, standing_by=why)
