"""Losses are counted by stamps: never one too many, and all that a later stamp can show."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client.loss import GAPS, LONGEST, RECENT, LossMeter, Stamper, ladder
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet

BITS = 9
ONE, TWO = b"one     ", b"two     "


class Packet:
    """What a publisher sent: an event, or a digest of what it had sent by then."""

    def __init__(self, publisher: bytes, seq: int, dz: Dz, stamps: Iterable[int], event: bool) -> None:
        self.publisher, self.seq, self.dz, self.event = publisher, seq, dz, event
        self.stamps = tuple(stamps)

    def seen_by(self, meter: LossMeter) -> int:
        return meter.saw(self.publisher, self.seq, self.dz, self.stamps, event=self.event)


class Sender:
    def __init__(self, publisher: bytes = ONE, bits: int = BITS, cells: int = 1 << 14) -> None:
        self.publisher, self.seq, self.stamper = publisher, 0, Stamper(bits, cells)

    def send(self, dz: Dz | str) -> Packet:
        dz = Dz.parse(dz) if isinstance(dz, str) else dz
        self.seq += 1
        return Packet(self.publisher, self.seq, dz, self.stamper.stamp(dz, self.seq), True)

    def digests(self) -> list[Packet]:
        told = self.stamper.digests()
        return [Packet(self.publisher, self.seq, dz, stamps, False) for dz, stamps in told]


def meter(*dz: str, **options: int) -> LossMeter:
    made = LossMeter(**options)
    made.want(DzSet.of(*dz))
    return made


cells = st.integers(0, 2**BITS - 1).map(lambda bits: Dz(bits, BITS))
wanted = st.lists(
    st.integers(0, BITS).flatmap(lambda n: st.integers(0, 2**n - 1).map(lambda b: Dz(b, n))),
    min_size=1,
    max_size=6,
).map(DzSet)


def clustered(sent: list[Dz]) -> list[Dz]:
    """Events fall together in practice; cells that are hit once say little."""
    return [Dz(dz.bits & 0b110011111, BITS) for dz in sent]


@given(
    st.lists(cells, min_size=1, max_size=60), wanted, st.randoms(use_true_random=False), st.integers(1, 40)
)
def test_what_is_counted_was_lost(sent: list[Dz], dz: DzSet, random: Random, room: int) -> None:
    """However few cells the publisher remembers."""
    sender, loss, lost = Sender(cells=room), LossMeter(), 0
    loss.want(dz)
    for each in clustered(sent):
        packet = sender.send(each)
        if dz.covers(each) and random.random() < 0.4:
            lost += 1
        elif dz.covers(each):
            packet.seen_by(loss)
        assert 0 <= loss.lost <= lost
    for digest in sender.digests():
        digest.seen_by(loss)
    assert 0 <= loss.lost <= lost
    assert loss.unchecked == 0


@given(st.lists(cells, min_size=2, max_size=RECENT - 1), wanted, st.randoms(use_true_random=False))
def test_all_that_was_lost_shows_once_the_digests_are_there(
    sent: list[Dz], dz: DzSet, random: Random
) -> None:
    sender, loss, lost = Sender(), LossMeter(), 0
    loss.want(dz)
    sender.send(Dz(0, BITS)).seen_by(loss)
    for each in clustered(sent):
        packet = sender.send(each)
        if dz.covers(each) and random.random() < 0.5:
            lost += 1
        elif dz.covers(each):
            packet.seen_by(loss)
    for digest in sender.digests():
        digest.seen_by(loss)
    assert loss.lost == lost


@given(
    st.lists(st.tuples(st.booleans(), cells), min_size=1, max_size=60),
    wanted,
    st.randoms(use_true_random=False),
    st.integers(1, 8),
)
def test_in_any_order_and_any_number_of_copies_nothing_is_lost_that_came(
    sent: list[tuple[bool, Dz]], dz: DzSet, random: Random, room: int
) -> None:
    senders = (Sender(ONE, cells=room), Sender(TWO))
    packets = [senders[who].send(each) for who, each in sent]
    packets += [digest for sender in senders for digest in sender.digests()]
    packets = [packet for packet in packets if dz.covers(packet.dz)]
    for share in (1.0, 0.6):
        loss = LossMeter()
        loss.want(dz)
        kept = [packet for packet in packets if not packet.event or random.random() < share]
        came = kept + random.choices(kept, k=len(kept) // 2) if kept else []
        random.shuffle(came)
        for packet in came:
            packet.seen_by(loss)
            assert loss.lost >= 0
        assert loss.lost <= len(packets) - len(kept)


@given(
    st.lists(st.tuples(cells, st.none() | wanted), min_size=1, max_size=80),
    wanted,
    st.randoms(use_true_random=False),
)
def test_no_change_of_interests_and_no_forgetting_makes_a_loss_of_what_came_or_was_not_wanted(
    steps: list[tuple[Dz, DzSet | None]], dz: DzSet, random: Random
) -> None:
    sender, loss, lost = Sender(cells=30), LossMeter(cells=20), 0
    loss.want(dz)
    for each, change in steps:
        if change is not None:
            dz = change
            loss.want(dz)
        packet = sender.send(each)
        if dz.covers(each) and random.random() < 0.3:
            lost += 1
        elif dz.covers(each):
            packet.seen_by(loss)
        assert 0 <= loss.lost <= lost


def test_a_gap_is_the_number_lost_and_who_comes_late_takes_his_back() -> None:
    sender, loss = Sender(), meter("01")
    packets = [sender.send("010110110") for _ in range(6)]
    assert [packets[i].seen_by(loss) for i in (0, 4, 2, 2, 5)] == [0, 3, -1, 0, 0]
    assert loss.lost == 2


def test_who_comes_late_takes_his_back_also_when_we_want_something_else_by_then() -> None:
    sender, loss = Sender(), meter("01")
    first, late, third = (sender.send("010110110") for _ in range(3))
    first.seen_by(loss)
    assert third.seen_by(loss) == 1
    loss.want(DzSet.of("11"))
    assert [late.seen_by(loss) for _ in range(2)] == [-1, 0]
    assert loss.lost == 0


def test_events_elsewhere_leave_no_gap() -> None:
    sender, loss = Sender(), meter("01")
    sender.send("010000000").seen_by(loss)
    for _ in range(5):
        sender.send("110000000")
    sender.send("010000000").seen_by(loss)
    assert loss.lost == 0


def test_a_digest_shows_the_loss_of_the_last_events() -> None:
    sender, loss = Sender(), meter("0101")
    sender.send("010100000").seen_by(loss)
    late = [sender.send("010111111") for _ in range(3)]
    (_, before), (newest, _) = sender.digests(), sender.digests()
    assert newest.seen_by(loss) == 3
    assert before.seen_by(loss) == 0
    assert [packet.seen_by(loss) for packet in late] == [-1, -1, -1]
    assert loss.lost == 0


def test_a_count_begun_in_our_time_is_checked_from_its_start() -> None:
    sender, loss = Sender(), meter("0101", "1111")
    sender.send("010100000").seen_by(loss)
    for _ in range(3):
        sender.send("111100000")
    assert sender.send("111100001").seen_by(loss) == 3


def test_a_count_that_was_forgotten_does_not_seem_new() -> None:
    sender, loss = Sender(), meter("0000", "0001", cells=1)
    sender.send("111111111").seen_by(loss)
    for dz in ("000000000", "000000000", "000100000", "000000000", "000100000"):
        sender.send(dz).seen_by(loss)
    assert loss.lost == 0


def test_a_late_packet_does_not_make_older_ones_ours() -> None:
    sender, loss = Sender(), meter("0000")
    sender.send("000000000").seen_by(loss)
    late = sender.send("000000000")
    for _ in range(3):
        sender.send("111100000")  # nobody wants it yet
    sender.send("000000000").seen_by(loss)
    loss.want(DzSet.of("0000", "1111"))
    late.seen_by(loss)
    sender.send("111100000").seen_by(loss)
    assert loss.lost == 0


def test_what_was_sent_before_nobody_claims() -> None:
    sender, loss = Sender(), meter("01")
    for _ in range(3):
        sender.send("010000000")
    sender.send("010000000").seen_by(loss)
    assert loss.lost == 0


def test_where_no_counted_cell_lies_in_the_dz_events_are_unchecked() -> None:
    long = "01" * 30
    sender, loss = Sender(bits=60), meter(long[:50])
    assert ladder(60)[-1] < LONGEST
    sender.send(long).seen_by(loss)
    assert (loss.lost, loss.unchecked) == (0, 1)


def test_ladders_are_short_and_end_with_whole_cells() -> None:
    assert ladder(0) == (0,)
    assert ladder(4) == (0, 4)
    assert ladder(23) == (0, 4, 8, 12, 16, 20, 23)
    assert all(len(ladder(bits)) <= 12 for bits in range(113))
    assert all(ladder(bits)[-1] == bits for bits in range(LONGEST + 1))


def test_memory_is_bounded_on_both_sides() -> None:
    sender, loss = Sender(cells=8), meter("", cells=8, publishers=2)
    random = Random(1)
    for n in range(2000):
        packet = sender.send(Dz(random.getrandbits(BITS), BITS))
        packet.publisher = n.to_bytes(8, "big") if n % 2 else ONE
        packet.seen_by(loss)
    assert max(len(counts) for _, counts in sender.stamper._rungs) <= 8
    assert len(sender.digests()) == RECENT
    assert (len(loss._counts), len(loss._publishers)) == (8, 2)
    other = Sender()
    for _ in range(3 * GAPS):
        other.send("000000000")
        other.send("000000000").seen_by(loss)
    assert max(len(count.gaps) for count in loss._counts.values()) <= GAPS


def test_stamps_of_nonsense_change_nothing_they_should_not() -> None:
    loss = meter("01")
    dz = Dz.parse("010000000")
    assert loss.saw(ONE, 1, dz, ()) == 0
    assert loss.saw(ONE, 1, dz, (0,) * 2 * len(ladder(BITS))) == 0
    assert loss.lost == 0
