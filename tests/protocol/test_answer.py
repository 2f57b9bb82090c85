"""Answers: an error keeps its kind and its words on the way to a client."""

from __future__ import annotations

import pytest

from flowsieve import errors
from flowsieve.protocol.answer import (
    KINDS,
    answer_of,
    error_of,
    is_answer,
    kind_in,
    kind_of,
    outcome,
    refusal,
)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_arrives_as_what_it_was(kind: str) -> None:
    answer = answer_of(error_of(kind, "no"))
    assert answer == refusal(kind, "no")
    assert (is_answer(answer), kind_in(answer)) == (True, kind)
    with pytest.raises(KINDS[kind], match="no") as found:
        outcome(answer)
    assert type(found.value) is KINDS[kind]


def test_finer_errors_are_of_the_kind_of_their_parents() -> None:
    assert kind_of(errors.OtherVersion(client=2, controller=1)) == "bad"
    assert kind_of(errors.TableFull(switch="s1", needed=2, capacity=1)) == "refused"
    assert kind_of(errors.Unacknowledged(switch="s1", reason="it is away")) == "failed"


def test_a_kind_that_is_not_known_is_an_error_all_the_same() -> None:
    with pytest.raises(errors.FlowsieveError, match="moon"):
        outcome(refusal("lunar", "the moon is full"))


def test_what_went_well_is_handed_over() -> None:
    assert outcome({"ok": {"id": "h1-1"}}) == {"id": "h1-1"}
    assert kind_in({"ok": {}}) is None


@pytest.mark.parametrize("found", [None, [], {}, {"ok": 3}, {"error": "no"}, {"okay": {}}, "ok"])
def test_what_says_neither_yes_nor_no_is_no_answer(found: object) -> None:
    assert not is_answer(found)
