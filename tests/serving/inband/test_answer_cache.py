"""Long answers that are kept for a while."""

from __future__ import annotations

from flowsieve.protocol.call_datagram import digest_of
from flowsieve.serving.inband.answer_cache import AnswerCache

PLACE = "s1", 1


def key(n: int) -> tuple[bytes, int]:
    return bytes(16), n


def test_an_answer_is_found_where_it_belongs_and_nowhere_else():
    kept, packed = AnswerCache(), b"answer"
    kept.keep(PLACE, key(1), packed, now=0)
    digest = digest_of(packed)
    assert kept.find(PLACE, key(1), digest, now=1) == packed
    assert kept.find(("s1", 2), key(1), digest, now=1) is None
    assert kept.find(PLACE, key(2), digest, now=1) is None
    assert kept.find(PLACE, key(1), bytes(8), now=1) is None


def test_an_answer_is_kept_for_a_time():
    kept = AnswerCache(seconds=10)
    kept.keep(PLACE, key(1), b"a", now=0)
    assert kept.find(PLACE, key(1), digest_of(b"a"), now=9.9) == b"a"
    assert kept.find(PLACE, key(1), digest_of(b"a"), now=10) is None
    kept.keep(PLACE, key(2), b"b", now=10)
    assert len(kept) == 1


def test_an_answer_that_is_given_again_stays_longer():
    kept = AnswerCache(seconds=10)
    for now in (0, 8):
        kept.keep(PLACE, key(1), b"a", now=now)
    assert kept.find(PLACE, key(1), digest_of(b"a"), now=15) == b"a"
    assert len(kept) == 1


def test_the_oldest_go_where_there_are_too_many_or_too_long_ones():
    kept = AnswerCache(most=3, most_bytes=100)
    for n in range(5):
        kept.keep(PLACE, key(n), b"%d" % n, now=0)
    assert [kept.find(PLACE, key(n), digest_of(b"%d" % n), 1) is not None for n in range(5)] == [
        False
    ] * 2 + [True] * 3
    kept.keep(PLACE, key(9), bytes(99), now=0)
    assert kept.find(PLACE, key(4), digest_of(b"4"), 1) == b"4"
    assert len(kept) == 2
    kept.keep(PLACE, key(10), bytes(101), now=0)
    assert len(kept) == 0
