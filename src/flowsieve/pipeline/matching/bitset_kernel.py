"""Bitsets most of whose words are empty: what several of them share, and counts per bit; compiled.

A row of bits comes with a summary, a bit for each of its words that is not empty. The words that some rows may share
are those in the AND of their summaries; the others are never read. The plain twin is `boxes.BoxTable.matches`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from flowsieve.content.words_kernel import ONE, lowest, popcount

ZERO, WORD = np.uint64(0), np.uint64(64)
NEAR, DEEP = 4, 44  # bits of a count that are added to at once; all bits of it
FULL = (1 << NEAR) - 1


class SparseWords(NamedTuple):
    """The words that are not empty of some sets: those of set i from `start[i]` to before `start[i + 1]`."""

    start: NDArray[np.int64]
    place: NDArray[np.int32]  # which word it is, in rising order within a set
    word: NDArray[np.uint64]

    @classmethod
    def room(cls, sets: int, words: int) -> SparseWords:
        """Room for as many sets of so many words as may come."""
        most = sets * words
        return cls(np.zeros(sets + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.uint64))


class Planes(NamedTuple):
    """64 counts per word, side by side: their lowest bits stand in one word, the next ones in another.

    The nearest planes take a number of sets before they are added to the deep ones.
    """

    near: NDArray[np.uint64]  # a row per word
    waiting: NDArray[np.int64]  # sets in the near planes of each word
    deep: NDArray[np.uint64]

    @classmethod
    def of(cls, bits: int) -> Planes:
        words = (bits + 63) // 64
        return cls(
            np.zeros((words, NEAR), np.uint64), np.zeros(words, np.int64), np.zeros((words, DEEP), np.uint64)
        )


@njit(cache=True, nogil=True)
def summarise(bits):
    """Per row of bits, a bit for each of its words that is not empty."""
    out = np.zeros((bits.shape[0], (bits.shape[1] + 63) // 64), np.uint64)
    for row in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            if bits[row, word]:
                out[row, word >> 6] |= ONE << np.uint64(word & 63)
    return out


@njit(cache=True, nogil=True)
def shared_words(bits, summary, rows, words):
    """Fill in the words that all rows of bits of each event share, `rows` having the numbers of these for each."""
    n, many = ZERO, rows.shape[1]
    for event in range(len(rows)):
        words.start[event] = n
        first = np.uint64(rows[event, 0])
        for part in range(summary.shape[1]):
            left = summary[first, part]
            for k in range(1, many):
                left &= summary[np.uint64(rows[event, k]), part]
            while left:  # places without a sign: no index is taken for one from the end
                place = np.uint64(part) * WORD + popcount((left & (~left + ONE)) - ONE)
                left &= left - ONE
                both = bits[first, place]
                for k in range(1, many):
                    both &= bits[np.uint64(rows[event, k]), place]
                if both:
                    words.place[n], words.word[n] = place, both
                    n += ONE
    words.start[len(rows)] = n


@njit(cache=True, nogil=True)
def list_owners(words, sets, owner, start, out):
    """List the owners of the bits of each set, those of set i from start[i] on; the list, which may grow.

    The bits of one owner follow each other, so that it is listed once.
    """
    n = 0
    for i in range(sets):
        start[i] = n
        last = -1
        for at in range(words.start[i], words.start[i + 1]):
            left = words.word[at]
            while left:
                bit = np.int64(words.place[at]) * 64 + lowest(left)
                left &= left - ONE
                if owner[bit] != last:
                    last = owner[bit]
                    if n == len(out):
                        more = np.empty(2 * len(out) + 1, np.int64)
                        more[:n] = out
                        out = more
                    out[n] = last
                    n += 1
    start[sets] = n
    return out


@njit(cache=True, nogil=True)
def settle_word(planes, place):
    """Add the near planes of a word to its deep ones."""
    carry, plane = ZERO, 0
    while plane < NEAR or carry:
        one = planes.near[place, plane] if plane < NEAR else ZERO
        other = planes.deep[place, plane]
        planes.deep[place, plane] = one ^ other ^ carry
        carry = (one & other) | (carry & (one ^ other))
        plane += 1
    for plane in range(NEAR):
        planes.near[place, plane] = ZERO
    planes.waiting[place] = 0


@njit(cache=True, nogil=True)
def count_words(words, sets, planes):
    """Count, for each bit, the sets that have it."""
    near, waiting = planes.near, planes.waiting
    for at in range(words.start[0], words.start[sets]):
        place, carry = np.uint64(words.place[at]), words.word[at]
        for plane in range(NEAR - 1):
            both = near[place, plane] & carry
            near[place, plane] ^= carry
            carry = both
        near[place, NEAR - 1] ^= carry
        waiting[place] += 1
        if waiting[place] == FULL:
            settle_word(planes, place)


@njit(cache=True, nogil=True)
def count_lacking(words, others, sets, owner, totals):
    """Add, to the total of each bit's owner, the sets that have the bit while the other set has not."""
    for i in range(sets):
        other, end = others.start[i], others.start[i + 1]
        for at in range(words.start[i], words.start[i + 1]):
            while other < end and others.place[other] < words.place[at]:
                other += 1
            left = words.word[at]
            if other < end and others.place[other] == words.place[at]:
                left &= ~others.word[other]
            while left:
                totals[owner[np.int64(words.place[at]) * 64 + lowest(left)]] += 1
                left &= left - ONE


@njit(cache=True, nogil=True)
def drain(planes, owner, totals):
    """Add the count of each bit to the total of its owner, and begin again at nothing."""
    for place in range(len(planes.near)):
        settle_word(planes, place)
        for plane in range(DEEP):
            left = planes.deep[place, plane]
            planes.deep[place, plane] = ZERO
            while left:
                totals[owner[place * 64 + lowest(left)]] += np.int64(1) << plane
                left &= left - ONE
