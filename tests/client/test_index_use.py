"""The index that a session uses: answers come late and in any order, and the newest that counts is taken."""

from __future__ import annotations

import pytest

from flowsieve.client.index_use import IndexUse
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage
from flowsieve.header.tag import POOLS
from flowsieve.index.dzset import DzSet
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.told_index import ToldIndex
from flowsieve.protocol.welcome import Welcome

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
PLAN = RegularPlan.make(SCHEMA, bits=8)
TAGS = POOLS["ipv6"]


def use(version: int = 0) -> IndexUse:
    return IndexUse(Welcome("h1", PLAN, TAGS[0], "ff02::f10e:0:1", index=version))


def told(version: int, **dz: str) -> object:
    return ToldIndex(version, TAGS[1], PLAN, {id: DzSet.of(text) for id, text in dz.items()}).to_json()


def test_a_newer_index_is_taken_and_an_older_one_passed_over() -> None:
    mine = use()
    taken = mine.take(told(2, a="0"), said=0)
    assert taken is not None and taken.version == mine.version == 2
    assert mine.owed("a") == DzSet.of("0")
    assert mine.take(told(2, a="1"), said=0) is None
    assert mine.take(told(1, a="1"), said=0) is None  # an answer to a call from before
    assert (mine.version, mine.owed("a")) == (2, DzSet.of("0"))


def test_of_a_controller_that_has_forgotten_the_older_index_is_taken() -> None:
    mine = use(5)
    assert mine.take(told(1), said=5) is not None
    assert mine.version == 1


def test_dz_of_a_subscription_count_for_the_index_that_they_are_of() -> None:
    mine = use()
    mine.subscribed("a", {"dz": ["0"]})
    assert mine.owed("a") == DzSet.of("0")
    mine.take(told(1, a="10", b="11"), said=0)  # it knew of b before we did
    mine.subscribed("b", {"dz": ["0"]})
    assert (mine.owed("a"), mine.owed("b")) == (DzSet.of("10"), DzSet.of("11"))
    mine.subscribed("c", {"dz": ["0"], "dz_index": 1})
    assert mine.owed("c") == DzSet.of("0")
    mine.subscribed("d", {"dz": ["0"], "dz_index": 2})
    assert mine.owed("d") is None
    mine.ended("c")
    assert mine.owed("c") is None


@pytest.mark.parametrize("answer", [{}, {"dz": None}, {"dz": ["2"]}, {"dz": [3]}])
def test_an_answer_without_dz_is_told(answer: dict[str, object]) -> None:
    with pytest.raises(BadMessage, match="has no dz"):
        use().subscribed("a", answer)


def test_an_index_of_another_family_of_addresses_is_told() -> None:
    wrong = ToldIndex(1, POOLS["ipv4"][0], PLAN, {}).to_json()
    with pytest.raises(BadMessage, match=r"225\.128\.0\.0/9, of another kind"):
        use().take(wrong, said=0)


def test_an_index_of_another_schema_is_passed_over_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    other = RegularPlan.make(Schema.parse({"price": {"type": "int", "min": 0, "max": 2047}}))
    mine = use()
    for version in (1, 2):
        assert mine.take(ToldIndex(version, TAGS[1], other, {}).to_json(), said=0) is None
    assert mine.version == 0
    assert caplog.text.count("another schema") == 1
