"""Who holds what, and what clients hear that ask again."""

from __future__ import annotations

import json
from functools import partial

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Origin
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger, RequestRecord
from flowsieve.flow.tables.compiler import Side

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
CHEAP = Filter.parse("a < 3", SCHEMA)


def sub(id: str, host: str = "h") -> Request:
    return Request(Op.SUBSCRIBE, id, host, CHEAP)


def unsub(id: str, host: str = "h") -> Request:
    return Request(Op.UNSUBSCRIBE, id, host)


def test_an_interest_belongs_to_whoever_asked_for_it_until_it_ends() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), Origin("ann", 1))
    ledger.asked(Request(Op.ADVERTISE, "x", "h", CHEAP), Origin("bob", 1))
    assert ledger.holder(Side.SUBSCRIBER, "x") == "ann"
    assert ledger.holder(Side.PUBLISHER, "x") == "bob"
    assert ledger.holds("ann") == [sub("x")]
    ledger.asked(unsub("x"), None)
    assert ledger.holder(Side.SUBSCRIBER, "x") is None
    assert ledger.holds("ann") == []
    assert ledger.holder(Side.PUBLISHER, "x") == "bob"


def test_what_nobody_in_particular_asked_for_belongs_to_nobody() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), None)
    assert ledger.holder(Side.SUBSCRIBER, "x") is None
    assert list(ledger.sessions) == []
    ledger.asked(unsub("x"), Origin("ann", 1))
    assert ledger.record("ann", 1) == RequestRecord(unsub("x"))


def test_a_request_that_was_taken_back_says_why_and_holds_nothing() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), Origin("ann", 1))
    ledger.undone(sub("x"), Origin("ann", 1), "refused", "no room")
    assert ledger.record("ann", 1) == RequestRecord(sub("x"), "refused", "no room")
    assert ledger.holds("ann") == []
    assert ledger.holder(Side.SUBSCRIBER, "x") is None


def test_taking_back_a_request_does_not_take_what_another_holds_by_now() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), Origin("ann", 1))
    ledger.asked(unsub("x"), None)
    ledger.asked(sub("x"), Origin("ann", 2))
    ledger.undone(sub("x"), Origin("ann", 1), "failed", "late")
    assert ledger.holds("ann") == [sub("x")]
    assert not ledger.brought(sub("x"), Origin("ann", 1))
    assert ledger.brought(sub("x"), Origin("ann", 2))
    assert not ledger.brought(sub("x"), None)
    assert not ledger.brought(unsub("x"), Origin("ann", 2))


def test_what_was_heard_of_is_forgotten_and_never_asked_again() -> None:
    ledger = Ledger()
    for number in (1, 2, 3):
        ledger.asked(sub(f"x{number}"), Origin("ann", number))
    ledger.answered("ann", 3)
    ledger.answered("ann", 2)
    ledger.answered("nobody", 5)
    assert [ledger.record("ann", n) is None for n in (1, 2, 3)] == [True, True, False]
    assert (ledger.heard("ann"), ledger.heard("nobody")) == (3, 0)
    assert len(ledger.holds("ann")) == 3


def test_a_session_is_forgotten_when_it_holds_nothing() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), Origin("ann", 1))
    ledger.forget("ann")
    assert list(ledger.sessions) == ["ann"]
    ledger.asked(unsub("x"), Origin("ann", 2))
    ledger.forget("ann")
    ledger.forget("ann")
    assert list(ledger.sessions) == []
    assert ledger.record("ann", 1) is None


def test_a_ledger_comes_back_from_json() -> None:
    ledger = Ledger()
    ledger.asked(sub("x"), Origin("ann", 1))
    ledger.asked(sub("y"), Origin("bob", 4))
    ledger.asked(unsub("y"), Origin("bob", 5))
    ledger.undone(sub("z"), Origin("bob", 6), "refused", "no room")
    ledger.answered("bob", 5)
    kept = json.loads(json.dumps(ledger.to_json()))
    back = Ledger.from_json(kept, {(Side.SUBSCRIBER, "x"): sub("x")}, partial(Filter.parse, schema=SCHEMA))
    assert back.to_json() == ledger.to_json()
    assert back.holder(Side.SUBSCRIBER, "x") == "ann"
    assert back.brought(sub("x"), Origin("ann", 1))
    assert back.record("bob", 6) == RequestRecord(sub("z"), "refused", "no room")
    assert back.heard("bob") == 5
    assert (back.host("ann"), back.host("bob"), back.host("cy")) == ("h", "h", None)
