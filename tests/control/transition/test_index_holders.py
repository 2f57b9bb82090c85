"""Who uses which index: nobody is believed to have gone over who has not said so."""

from __future__ import annotations

import asyncio

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.memory.journal import Origin
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.transition.index_holders import IndexHolders

SCHEMA = Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}})
ALL = Filter.parse("True", SCHEMA)
ANN, BOB, CY = "0a" * 16, "0b" * 16, "0c" * 16


def ledger() -> Ledger:
    """Ann publishes, Bob subscribes, Cy does both."""
    made = Ledger()
    for n, (op, id, host, session) in enumerate(
        [
            (Op.ADVERTISE, "a", "ann", ANN),
            (Op.SUBSCRIBE, "b", "bob", BOB),
            (Op.ADVERTISE, "c", "cy", CY),
            (Op.SUBSCRIBE, "d", "cy", CY),
        ],
        1,
    ):
        made.asked(Request(op, id, host, ALL), Origin(session, n))
    return made


def test_until_they_say_so_all_who_may_publish_are_behind() -> None:
    holders = IndexHolders(ledger())
    assert holders.behind(1) == holders.behind(0) == {ANN, CY}
    assert holders.unaware(1) == {ANN, BOB, CY}
    holders.said(ANN, 1)
    holders.said(BOB, 1)
    assert holders.behind(1) == holders.unaware(1) == {CY}
    assert holders.behind(2) == {ANN, CY}
    assert holders.hosts(holders.unaware(2)) == {"ann", "bob", "cy"}
    assert (holders.version_of(ANN), holders.version_of(CY)) == (1, None)


def test_who_holds_nothing_or_is_over_is_waited_for_no_more() -> None:
    book = ledger()
    holders = IndexHolders(book)
    book.asked(Request(Op.UNADVERTISE, "c", "cy"), Origin(CY, 9))
    assert holders.behind(1) == {ANN}
    assert CY in holders.unaware(1)
    holders.said(ANN, 1)
    assert not holders.behind(1)
    holders.ended(ANN)
    assert holders.behind(1) == {
        ANN
    }  # it is known by its session no more, and has still advertised something
    book.asked(Request(Op.UNADVERTISE, "a", "ann"), None)
    assert not holders.behind(1)
    holders.said("0d" * 16, 0)  # of a session that holds nothing
    assert not holders.behind(1)


def test_a_controller_that_restarts_knows_of_nobody() -> None:
    book = ledger()
    before = IndexHolders(book)
    for session in (ANN, BOB, CY):
        before.said(session, 1)
    assert not before.unaware(1)
    assert IndexHolders(book).unaware(1) == {ANN, BOB, CY}


def test_all_are_waited_for_and_no_longer_than_that() -> None:
    async def story() -> None:
        book = ledger()
        holders = IndexHolders(book)
        async with asyncio.timeout(20):
            waiting = asyncio.create_task(holders.reached(1, 1000.0))
            for session in (ANN, CY):
                await asyncio.sleep(0)
                assert not waiting.done()
                holders.said(session, 1)
            assert await waiting == frozenset()
            assert await holders.reached(1, 0) == frozenset()
            assert await holders.reached(2, 0.01) == {ANN, CY}
            waiting = asyncio.create_task(holders.reached(2, 1000.0))
            holders.said(ANN, 2)
            book.asked(Request(Op.UNADVERTISE, "c", "cy"), None)  # of which the holders hear nothing
            assert await waiting == frozenset()

    asyncio.run(story())
