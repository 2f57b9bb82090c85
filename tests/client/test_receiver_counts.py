"""Publishers count per receiver, and a receiver finds out what did not come."""

from __future__ import annotations

import random

from flowsieve.client.receiver_counts import ReceiverCounts, ReceiverMeter

P = b"p" * 8


def test_counts_are_told_per_receiver_to_those_who_were_sent_something() -> None:
    counts = ReceiverCounts()
    assert counts.sent(0b101) == 0b101
    assert counts.sent(0b001) == 0
    assert counts.sent(0b011) == 0b010
    assert dict(counts.digests()) == {0b001: 3, 0b100: 1, 0b010: 1}
    assert list(counts.digests()) == []
    counts.sent(0b100)
    assert list(counts.digests()) == [(0b100, 2)]


def test_what_did_not_come_between_two_digests_is_lost_until_it_comes_late() -> None:
    meter = ReceiverMeter()
    meter.event(P, 1)
    assert meter.unchecked == 1
    meter.digest(P, 1, 1)
    for seq in (2, 5, 9):
        meter.event(P, seq)
    meter.digest(P, 9, 6)  # of those after the first, 5 were for us
    assert (meter.lost, meter.unchecked) == (2, 1)
    meter.event(P, 4)
    assert meter.lost == 1
    meter.event(P, 12)
    meter.digest(P, 9, 6)
    meter.digest(P, 12, 7)
    assert meter.lost == 1


def test_in_any_order_what_is_lost_is_what_never_came() -> None:
    dice = random.Random(5)
    for _ in range(200):
        counts, meter = ReceiverCounts(), ReceiverMeter()
        under_way: list[tuple[str, int, int]] = []
        dropped = 0
        counts.sent(1)
        meter.event(P, 1)
        meter.digest(P, 1, 1)
        for seq in range(2, 60):
            wanted = dice.random() < 0.5
            counts.sent(1 if wanted else 2)
            if wanted and dice.random() < 0.2:
                dropped += 1
            elif wanted:
                under_way.append(("event", seq, 0))
            if dice.random() < 0.1:
                under_way += [("digest", seq, count) for to, count in counts.digests() if to == 1]
        under_way += [("digest", 60, count) for to, count in counts.digests() if to == 1]
        last = max((n for _, n, _ in under_way), default=0)
        for at in range(len(under_way) - 1):  # neighbours overtake each other
            if dice.random() < 0.3:
                under_way[at], under_way[at + 1] = under_way[at + 1], under_way[at]
        for what, seq, count in under_way:
            meter.event(P, seq) if what == "event" else meter.digest(P, seq, count)
        if under_way and under_way[-1][0] == "digest" and under_way[-1][1] == last:
            assert meter.lost == dropped


def test_what_is_remembered_is_bounded() -> None:
    meter = ReceiverMeter()
    for n in range(5000):
        meter.event(n.to_bytes(8), 1)
    assert len(meter._publishers) == 4096
