"""Numbers that outlive a controller, and what they say about other controllers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.memory.kept_claim import HALF, KeptClaim, later
from flowsieve.errors import BadJournal, JournalError


def above(claim: KeptClaim, number: int | None) -> int:
    return asyncio.run(claim.above(number))


def test_numbers_grow_from_one_start_to_the_next_and_stay_in_between(tmp_path: Path) -> None:
    numbers: list[int] = []
    for _ in range(3):
        claim = KeptClaim(tmp_path / "claim")
        numbers += [above(claim, None), above(claim, numbers[-1] if numbers else None)]
    assert numbers[::2] == numbers[1::2]
    assert all(later(new, old) for old, new in zip(numbers[::2], numbers[2::2], strict=False))
    assert len({number % HALF for number in numbers}) == 1


def test_a_number_is_written_before_it_is_used(tmp_path: Path) -> None:
    used = above(KeptClaim(tmp_path / "claim"), None)
    assert KeptClaim(tmp_path / "claim").number == used


def test_a_start_that_claimed_nothing_leaves_no_trace(tmp_path: Path) -> None:
    known = above(KeptClaim(tmp_path / "claim"), None)
    KeptClaim(tmp_path / "claim")
    assert KeptClaim(tmp_path / "claim").number == known


def test_a_switch_of_ours_is_taken_and_one_of_another_is_not_unless_it_is_taken_over(tmp_path: Path) -> None:
    theirs = above(KeptClaim(tmp_path / "a"), None)
    ours = above(KeptClaim(tmp_path / "b"), None)
    assert KeptClaim(tmp_path / "b").covers(ours)
    assert not KeptClaim(tmp_path / "b").covers(theirs)
    assert not KeptClaim(tmp_path / "b").covers(5)  # a controller of another make
    assert KeptClaim(tmp_path / "b", take_over=True).covers(theirs)


def test_whoever_was_taken_over_from_stands_by_and_takes_back_only_when_told(tmp_path: Path) -> None:
    a, b = KeptClaim(tmp_path / "a"), KeptClaim(tmp_path / "b", take_over=True)
    old = above(a, None)
    new = above(b, old)
    assert later(new, old)
    assert not a.covers(new)
    assert not KeptClaim(tmp_path / "a").covers(new)
    again = KeptClaim(tmp_path / "a", take_over=True)
    back = above(again, new)
    assert later(back, new)
    assert not b.covers(back), "it was told to take over from the first, not to fight it"
    assert not KeptClaim(tmp_path / "b").covers(back)


@pytest.mark.parametrize("restarts", [0, 3])
def test_a_switch_that_was_away_when_it_was_taken_over_is_ours_after_a_restart(
    tmp_path: Path, restarts: int
) -> None:
    there = above(KeptClaim(tmp_path / "a"), None)
    away = [above(KeptClaim(tmp_path / "a"), None) for _ in range(4)][
        -1
    ]  # the first switch missed some starts
    taken = above(KeptClaim(tmp_path / "b", take_over=True), there)
    for _ in range(restarts):
        taken = above(KeptClaim(tmp_path / "b"), taken)
    later_on = KeptClaim(tmp_path / "b")
    assert later_on.covers(away)
    assert later(above(later_on, away), away)


def test_a_folder_brought_back_from_a_copy_claims_above_what_it_claimed_before(tmp_path: Path) -> None:
    first = above(KeptClaim(tmp_path / "claim"), None)
    copy = (tmp_path / "claim").read_text()
    for _ in range(3):
        last = above(KeptClaim(tmp_path / "claim"), first)
    (tmp_path / "claim").write_text(copy)
    claim = KeptClaim(tmp_path / "claim")
    assert claim.covers(last)
    assert later(above(claim, last), last)


def test_a_copy_of_a_folder_shuts_the_first_one_out_for_good(tmp_path: Path) -> None:
    one = KeptClaim(tmp_path / "one")
    (tmp_path / "two").write_text((tmp_path / "one").read_text())
    number = above(one, None)
    assert not one.covers(above(KeptClaim(tmp_path / "two"), number))


@given(st.integers(0, HALF**2 - 2))
def test_whatever_a_switch_holds_a_take_over_is_later(
    tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    claim = KeptClaim(tmp_path_factory.mktemp("claim") / "claim", take_over=True)
    assert claim.covers(number)
    claimed = above(claim, number)
    assert later(claimed, number)
    assert claim.covers(claimed) and claim.covers(number)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"controller": "x", "term": 1, "overtaken": []}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "claim").write_text(text)
    with pytest.raises(BadJournal, match="is damaged"):
        KeptClaim(tmp_path / "claim")


def test_where_it_cannot_be_written_the_last_number_is_used_again_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    last = above(KeptClaim(folder / "claim"), None)
    blocked = folder / "claim-new"
    blocked.mkdir()  # as root, a folder's rights keep nobody out
    assert above(KeptClaim(folder / "claim"), last) == last
    with pytest.raises(JournalError, match="cannot be written"):
        above(KeptClaim(folder / "claim", take_over=True), last + 5 * HALF + 1)
    blocked.rmdir()
    assert later(above(KeptClaim(folder / "claim"), last), last)
    assert os.listdir(folder) == ["claim"]  # noqa: PTH208
