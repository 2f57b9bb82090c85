from __future__ import annotations

import pickle

import numpy as np
import pytest

from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import EMPTY, WHOLE, DzSet, union


def test_siblings_become_their_parent() -> None:
    assert DzSet.of("010", "011", "00").texts() == ["0"]


def test_a_covered_dz_disappears() -> None:
    assert DzSet.of("0101", "01", "11").texts() == ["01", "11"]


def test_a_set_is_made_from_dz_texts_and_iterables_of_them() -> None:
    assert DzSet.of(Dz.parse("01"), "11") == DzSet.of(["11", Dz.parse("01")]) == DzSet([Dz(3, 2), Dz(1, 2)])


def test_the_union_of_two_halves_is_the_whole_space() -> None:
    assert DzSet.of("0") | DzSet.of("10", "11") == WHOLE
    assert WHOLE.texts() == [""]


def test_a_difference_leaves_the_gaps() -> None:
    assert (WHOLE - DzSet.of("0110")).texts() == ["00", "010", "0111", "1"]
    assert DzSet.of("01") - DzSet.of("0") == EMPTY


def test_an_intersection_keeps_the_smaller_cells() -> None:
    assert (DzSet.of("0", "110") & DzSet.of("01", "11")).texts() == ["01", "110"]


def test_a_set_knows_which_cells_lie_in_it() -> None:
    some = DzSet.of("00", "0110")
    assert some.covers(Dz.parse("001"))
    assert not some.covers(Dz.parse("011"))
    assert some.covers_set(DzSet.of("000", "01101"))
    assert not some.covers_set(DzSet.of("000", "1"))
    assert some.overlaps(DzSet.of("011"))
    assert not some.overlaps(DzSet.of("010", "1"))
    assert Dz.parse("00") in some
    assert Dz.parse("001") not in some
    assert "00" not in some


def test_an_empty_set_is_false_and_covers_nothing() -> None:
    assert not EMPTY
    assert len(EMPTY) == 0
    assert not EMPTY.covers(Dz.parse(""))
    assert WHOLE.covers_set(EMPTY)
    assert not EMPTY.overlaps(WHOLE)


def test_equal_sets_have_equal_hashes() -> None:
    assert hash(DzSet.of("00", "01")) == hash(DzSet.of("0"))
    assert len({DzSet.of("00", "01"), DzSet.of("0"), EMPTY}) == 2
    assert DzSet.of("0") != "0"


def test_a_set_cannot_be_changed() -> None:
    some = DzSet.of("01")
    with pytest.raises(ValueError, match="read-only"):
        some.hi[0] = 0
    with pytest.raises(AttributeError):
        some.hi = np.zeros(0, np.uint64)


def test_a_set_survives_pickling() -> None:
    some = DzSet.of("01", "1" * 112)
    assert pickle.loads(pickle.dumps(some)) == some


def test_arrays_are_left_aligned_in_128_bits() -> None:
    some = DzSet.of("1" + "0" * 70 + "1")
    assert (int(some.hi[0]), int(some.lo[0]), int(some.length[0])) == (1 << 63, 1 << (128 - 72), 72)


def test_the_callers_arrays_stay_his() -> None:
    hi, lo, length = np.array([1 << 63], np.uint64), np.zeros(1, np.uint64), np.ones(1, np.int64)
    some = DzSet.from_arrays(hi, lo, length)
    hi[0] = 0
    assert some.texts() == ["1"]


def test_arrays_that_hold_no_dz_are_refused() -> None:
    with pytest.raises(BadInput, match="shape"):
        DzSet.from_arrays([0, 0], [0], [1])
    with pytest.raises(BadInput, match="not 114 bits of 0"):
        DzSet.from_arrays([0], [0], [114])
    with pytest.raises(BadInput, match=r"dz 1 of the arrays.*zeros behind"):
        DzSet.from_arrays([0, 1], [0, 0], [1, 63])


def test_many_dz_are_looked_up_at_once() -> None:
    some = DzSet.of("00", "11")
    hi = np.array([0, 1 << 62, 3 << 62], np.uint64)
    assert some.covers_many(hi, np.zeros(3, np.uint64), 2).tolist() == [True, False, True]


def test_the_share_of_a_set_is_its_volume() -> None:
    assert DzSet.of("0", "101").share == 0.625
    assert EMPTY.share == 0


def test_a_long_set_is_shown_in_short() -> None:
    some = DzSet(Dz(2 * i, 5) for i in range(10))
    assert repr(some).endswith("'01110', … 2 more)")


def test_sets_come_back_from_arrays_that_they_were_written_into_one_after_the_other() -> None:
    sets = [DzSet.of("01", "1"), EMPTY, DzSet.of("0" * 100 + "1"), WHOLE]
    arrays = [np.concatenate([getattr(dz, name) for dz in sets]) for name in ("hi", "lo", "length")]
    assert DzSet.cut(*arrays, [2, 0, 1, 1]) == sets
    with pytest.raises(BadInput, match="add up to 3, and there are 4 dz"):
        DzSet.cut(*arrays, [2, 1])
    with pytest.raises(BadInput, match="none that sets of dz were written into"):
        DzSet.cut(arrays[0], arrays[1], arrays[2] - 1, [2, 0, 1, 1])


def test_the_union_of_many_sets_is_that_of_one_after_the_other() -> None:
    assert union([DzSet.of("00"), DzSet.of("01", "11"), DzSet.of("1")]) == WHOLE
    assert union([EMPTY]) == EMPTY
