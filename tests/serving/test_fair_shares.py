"""Fair shares: whatever others take, and for how long, there is something left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.serving.fair_shares import FairShares


@pytest.mark.parametrize("greedy", [1, 2, 5, 20])
def test_those_who_take_all_they_can_come_to_equal_shares_and_leave_one(greedy: int) -> None:
    shares, names = FairShares(420), [f"host {n}" for n in range(greedy)]
    for _ in range(420):
        for name in names:
            if shares.of(name):
                shares.give_back(name)
        for name in names:
            while shares.take(name):
                pass
    fair = 420 // (greedy + 1)
    assert all(abs(shares.of(name) - fair) <= greedy for name in names)
    assert shares.take("newcomer", fair // 2)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "cy", None]), st.booleans(), st.integers(1, 9))),
)
def test_it_is_never_more_than_there_is_and_all_of_it_comes_back(
    whole: int, steps: list[tuple[str | None, bool, int]]
) -> None:
    shares, held = FairShares(whole), []
    for who, takes, amount in steps:
        if takes:
            room = shares.room(who, amount)
            assert shares.take(who, amount) is room
            if room:
                held.append((who, amount))
        elif held:
            shares.give_back(*held.pop())
        assert shares.taken == sum(amount for _, amount in held) <= whole
        for name in ("ann", "bob", "cy"):
            assert shares.of(name) == sum(amount for who, amount in held if who == name)
            if shares.fullness(name) >= 1 and shares.taken < whole:
                assert not shares.room(name)
    for each in held:
        shares.give_back(*each)
    assert (shares.taken, shares._of) == (0, {})
