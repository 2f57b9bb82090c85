"""Second copies are told from first ones, with no more memory than there is room for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.client.copies import LEAST, MARKS, Copies, Copy

ANN, BOB, CY = b"ann     ", b"bob     ", b"cy      "

arrivals = st.lists(
    st.tuples(st.sampled_from([ANN, BOB, CY]), st.integers(1, 40), st.sampled_from([b"x", b"y"])),
    max_size=120,
)


@given(arrivals)
def test_with_room_enough_it_is_as_if_all_were_remembered(arrivals: list[tuple[bytes, int, bytes]]) -> None:
    copies, seen = Copies(), set[tuple[bytes, int, bytes]]()
    for publisher, seq, mark in arrivals:
        known = {each[2] for each in seen if each[:2] == (publisher, seq)}
        expected = Copy.SAME if mark in known else Copy.OTHER if known else Copy.FIRST
        assert copies.judge(publisher, seq, mark) is expected
        seen.add((publisher, seq, mark))


@given(arrivals)
def test_whatever_the_room_nothing_is_taken_for_the_first_twice(
    arrivals: list[tuple[bytes, int, bytes]],
) -> None:
    copies, firsts = Copies(remembered=LEAST), set[tuple[bytes, int]]()
    for publisher, seq, mark in arrivals:
        if copies.judge(publisher, seq, mark) is Copy.FIRST:
            assert (publisher, seq) not in firsts
            firsts.add((publisher, seq))
    assert len(copies) <= 3 * LEAST


def test_publishers_share_what_can_be_remembered() -> None:
    copies = Copies(remembered=10 * LEAST)
    for seq in range(1, 100 * LEAST):
        copies.judge(ANN, seq, b"x")
    assert len(copies) == 10 * LEAST
    for seq in range(1, 100 * LEAST):
        copies.judge(ANN, 100 * LEAST + seq, b"x")
        copies.judge(BOB, seq, b"x")
    assert len(copies) == 10 * LEAST
    assert copies.judge(BOB, 95 * LEAST + 1, b"x") is Copy.SAME


def test_a_publisher_that_is_heard_of_stays_when_others_come_and_go() -> None:
    copies = Copies(publishers=3)
    copies.judge(ANN, 1, b"x")
    for n in range(20):
        copies.judge(n.to_bytes(8), 1, b"x")
        assert copies.judge(ANN, 1, b"x") is Copy.SAME
    assert len(copies) == 3


def test_ever_new_marks_of_one_event_take_no_room() -> None:
    copies = Copies()
    told = [copies.judge(ANN, 1, n.to_bytes(8)) for n in range(1000)]
    assert [told.count(each) for each in Copy] == [1, MARKS - 1, 1000 - MARKS]
    assert copies.judge(ANN, 1, (999).to_bytes(8)) is Copy.SAME
