"""Sessions hear of another index with the answer to any call, and what is told with it is of now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from office import ENCODING, SCHEMA, Office, play

from flowsieve.content.filter import Filter
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.told_index import ToldIndex
from flowsieve.protocol.welcome import Welcome
from flowsieve.testing.indexed_dispatcher import IndexedDispatcher

PLAN = RegularPlan.make(SCHEMA, bits=4, dimensions=["live", "price"])
NEW = ServedIndex(1, POOLS["ipv6"][1], PLAN)


def go_over(office: Office, index: ServedIndex = NEW) -> None:
    assert isinstance(office.dispatcher, IndexedDispatcher)
    office.dispatcher.served = index


def cover(text: str) -> list[str]:
    return PLAN.cover(Filter.parse(text, SCHEMA), 0).texts()


def test_the_welcome_has_the_index_of_now(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        first = Welcome.parse(await office.client().ok(1, "hello"))
        assert (first.index, first.tag) == (0, ENCODING.tag)
        go_over(office)
        then = Welcome.parse(await office.client(name=2).ok(1, "hello"))
        assert (then.index, then.tag, then.plan) == (1, NEW.tag, PLAN)

    play(tmp_path, story)


def test_who_says_another_index_is_told_that_of_now_whatever_it_asks(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        await ann.ok(1, "hello")
        id = (await ann.ok(2, "sub", filter="price < 512", index=0))["id"]
        await ann.ok(3, "adv", filter="live", index=0)
        go_over(office)
        for n, op, fields in (
            (4, "renew", {}),
            (5, "adv", {"filter": "not live"}),
            (6, "unadv", {"id": "none of its"}),
        ):
            answer = await ann.ask(n, op, index=0, **fields)
            if "error" in answer:
                continue
            index = ToldIndex.parse(answer["ok"]["index"], SCHEMA)
            assert (index.version, index.tag, index.plan) == (1, NEW.tag, PLAN)
            assert {each: dz.texts() for each, dz in index.dz.items()} == {id: cover("price < 512")}
        assert "index" not in await ann.ok(7, "renew", index=1)
        assert "index" in await ann.ok(8, "renew", index=2)  # of a controller that has forgotten something

    play(tmp_path, story)


def test_who_never_says_an_index_is_told_none(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        old = office.client()
        await old.ok(1, "hello")
        await old.ok(2, "adv", filter="live")
        go_over(office)
        assert "index" not in await old.ok(3, "renew")
        assert office.dispatcher.holders.behind(1) == {old.session}

    play(tmp_path, story)


def test_an_answer_that_is_told_again_has_the_dz_of_now(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        await ann.ok(1, "hello")
        first = await ann.ok(2, "sub", filter="price < 512", index=0)
        assert "dz_index" not in first
        go_over(office)
        again = await ann.ok(2, "sub", filter="price < 512", index=1)
        assert (again["id"], again["dz"], again["dz_index"]) == (first["id"], cover("price < 512"), 1)
        assert "index" not in again
        behind = await ann.ok(2, "sub", filter="price < 512", index=0)
        assert behind["dz"] == cover("price < 512") and behind["index"]["dz"] == {first["id"]: behind["dz"]}

    play(tmp_path, story)


def test_it_is_known_who_uses_which_until_the_session_is_over(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann, bob = office.client(), office.client("bob", 2)
        holders = office.dispatcher.holders
        for client in (ann, bob):
            await client.ok(1, "hello", index=7)  # which nobody can have before the welcome
            await client.ok(2, "adv", filter="live", index=0)
        assert holders.behind(0) == frozenset()
        go_over(office)
        assert holders.behind(1) == {ann.session, bob.session}
        await ann.ok(3, "renew", index=1)
        assert holders.behind(1) == {bob.session}
        await bob.ok(3, "bye", index=0)
        assert holders.behind(1) == frozenset()

    play(tmp_path, story)


def test_an_index_that_is_none_changes_nothing(tmp_path: Path) -> None:
    async def story(office: Office) -> None:
        ann = office.client()
        await ann.ok(1, "hello")
        wrong: Any
        for n, wrong in enumerate((-1, True, "1", 1.5, None, [1], 1 << 70), 2):
            kind, text = await ann.wrong(n, "adv", filter="live", index=wrong)
            assert kind == "bad" and text.startswith("index = ")
        assert office.ids == ([], [])
        assert office.dispatcher.holders.version_of(ann.session) is None

    play(tmp_path, story)
