"""How long what clients asked for outlives them, also when their operator changes his mind."""

from __future__ import annotations

from flowsieve.serving.leases import Leases


def test_a_session_ends_when_it_is_not_heard_of_for_a_lease() -> None:
    leases = Leases(10)
    leases.renew("ann", now=0)
    leases.renew("bob", now=5)
    assert leases.ended(now=10) == ("ann",)
    leases.renew("ann", now=11)
    assert leases.ended(now=15) == ("bob",)
    leases.end("bob")
    assert leases.ended(now=20.5) == ()


def test_a_shorter_lease_does_not_end_what_was_promised_for_longer() -> None:
    leases = Leases(30)
    leases.renew("ann", now=0)
    leases.seconds = 5
    leases.renew("bob", now=1)
    leases.renew("ann", now=10)
    assert leases.ended(now=6) == ("bob",)
    assert "ann" not in leases.ended(now=29)
    leases.renew("ann", now=29)
    assert "ann" in leases.ended(now=34)


def test_a_longer_lease_holds_from_the_next_word_on() -> None:
    leases = Leases(5)
    leases.renew("ann", now=0)
    leases.seconds = 30
    leases.renew("bob", now=1)
    leases.renew("ann", now=4)
    assert leases.ended(now=33) == ("bob",)
