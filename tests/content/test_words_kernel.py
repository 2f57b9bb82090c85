"""Compiled words and segments do as Python's own integers and `bisect` do."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from flowsieve.content.words_kernel import lowest, popcount, segment_of


@njit
def counted(word):
    return popcount(word)


@given(st.integers(1, 2**64 - 1))
def test_bits_of_a_word_are_counted_and_the_lowest_is_found(word: int) -> None:
    assert counted(np.uint64(word)) == word.bit_count()
    assert lowest(np.uint64(word)) == (word & -word).bit_length() - 1


@given(st.lists(st.integers(0, 9)).map(sorted), st.integers(-1, 10), st.data())
def test_a_segment_is_as_many_edges_as_are_not_above(
    edges: list[int], value: int, data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(edges)))
    end = data.draw(st.integers(begin, len(edges)))
    found = segment_of(np.array(edges, np.float64), begin, end, float(value))
    assert found == bisect_right(edges[begin:end], value)
