from __future__ import annotations

import pickle

import pytest

from flowsieve.errors import BadInput
from flowsieve.index.dz import WHOLE_SPACE, Dz


def test_a_shorter_dz_covers_its_extensions() -> None:
    assert Dz.parse("01").covers(Dz.parse("0110"))
    assert Dz.parse("01").covers(Dz.parse("01"))
    assert not Dz.parse("01").covers(Dz.parse("0"))
    assert not Dz.parse("01").covers(Dz.parse("0010"))


def test_two_dz_overlap_if_one_covers_the_other() -> None:
    assert Dz.parse("0110").overlaps(Dz.parse("01"))
    assert not Dz.parse("00").overlaps(Dz.parse("01"))


def test_the_empty_dz_is_the_whole_space() -> None:
    assert Dz.parse("") == WHOLE_SPACE
    assert str(WHOLE_SPACE) == ""
    assert WHOLE_SPACE.covers(Dz(0, 112))
    assert WHOLE_SPACE.parent is None
    assert WHOLE_SPACE.sibling is None


def test_a_dz_has_a_parent_a_sibling_and_two_children() -> None:
    dz = Dz.parse("0110")
    assert str(dz.parent) == "011"
    assert str(dz.sibling) == "0111"
    assert [str(child) for child in dz.children] == ["01100", "01101"]


def test_leading_zeros_count() -> None:
    assert Dz.parse("001") != Dz.parse("01")
    assert str(Dz.parse("001")) == "001"


def test_dz_sort_as_their_texts_do() -> None:
    texts = ["", "0", "00", "0000", "01", "0110", "1", "10", "11"]
    assert [str(dz) for dz in sorted(map(Dz.parse, reversed(texts)))] == texts


def test_a_dz_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Dz.parse("0101"))) == Dz.parse("0101")


@pytest.mark.parametrize(("bits", "length"), [(0, -1), (0, 114), (4, 2), (-1, 3)])
def test_a_number_that_does_not_fit_its_length_is_refused(bits: int, length: int) -> None:
    with pytest.raises(BadInput):
        Dz(bits, length)


def test_a_text_that_is_no_dz_is_refused_with_an_example() -> None:
    with pytest.raises(BadInput, match=r"'01x1' is no dz.*'0110'"):
        Dz.parse("01x1")
    with pytest.raises(BadInput, match="112"):
        Dz.parse("0" * 114)
