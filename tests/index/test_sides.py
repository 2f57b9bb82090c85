"""Two spaces seen as one, and apart again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.sides import NEW, OLD, cells_of, cells_on, off_side, on_side, side_of

texts = st.text("01", max_size=MAX_LENGTH)
sets = st.lists(texts, max_size=6).map(DzSet.of)


@given(texts, st.sampled_from([OLD, NEW]))
def test_a_cell_is_on_its_side_and_comes_off_as_it_was(text: str, side: int) -> None:
    dz = Dz.parse(text)
    assert side_of(on_side(side, dz)) == side
    assert off_side(on_side(side, dz)) == dz


@given(sets, sets)
def test_parts_of_both_spaces_do_not_mix(old: DzSet, new: DzSet) -> None:
    both = cells_on(OLD, old) | cells_on(NEW, new)
    assert (cells_of(OLD, both), cells_of(NEW, both)) == (old, new)
    assert set(cells_on(NEW, new)) == {on_side(NEW, dz) for dz in new}


def test_all_of_both_is_all_there_is_and_lies_on_no_side() -> None:
    assert cells_on(OLD, WHOLE) | cells_on(NEW, WHOLE) == WHOLE
    assert side_of(Dz(0, 0)) is None
