"""Bits of dz and of port sets, for the compiled kernels.

A dz is left-aligned in two 64-bit words (hi, lo). A port set is a row of 64-bit words, port 0 the lowest bit
of the first. The twins are `index.dz.Dz` and Python's `frozenset`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ONE = np.uint64(1)
ZERO = np.uint64(0)


@njit(cache=True, inline="always")
def bit_at(hi, lo, depth):
    """The bit that chooses between the children of a node at this depth."""
    if depth < 64:
        return np.int64((hi >> np.uint64(63 - depth)) & ONE)
    return np.int64((lo >> np.uint64(127 - depth)) & ONE)


@njit(cache=True, inline="always")
def bit_words(depth):
    """The words in which only the bit at this depth is set."""
    if depth < 64:
        return ONE << np.uint64(63 - depth), ZERO
    return ZERO, ONE << np.uint64(127 - depth)


@njit(cache=True)
def cut(hi, lo, length):
    """The first `length` bits; the rest cleared."""
    if length <= 0:
        return ZERO, ZERO
    if length < 64:
        return hi >> np.uint64(64 - length) << np.uint64(64 - length), ZERO
    if length == 64:
        return hi, ZERO
    if length < 128:
        return hi, lo >> np.uint64(128 - length) << np.uint64(128 - length)
    return hi, lo


@njit(cache=True, inline="always")
def differs(hi, lo, length):
    """Whether any of the first `length` bits is set: of the exclusive or of two dz, whether they differ there."""
    if length <= 0:
        return False
    if length <= 64:
        return hi >> np.uint64(64 - length) != ZERO
    return hi != ZERO or lo >> np.uint64(128 - length) != ZERO


@njit(cache=True, inline="always")
def has_port(row, port):
    return (row[port >> 6] >> np.uint64(port & 63)) & ONE != ZERO


@njit(cache=True, inline="always")
def flip_port(row, port):
    row[port >> 6] ^= ONE << np.uint64(port & 63)


@njit(cache=True)
def lowest_bit(word):
    """The position of the lowest bit that is set; the word is not zero."""
    at = 0
    if word & np.uint64(0xFFFFFFFF) == ZERO:
        word >>= np.uint64(32)
        at += 32
    if word & np.uint64(0xFFFF) == ZERO:
        word >>= np.uint64(16)
        at += 16
    if word & np.uint64(0xFF) == ZERO:
        word >>= np.uint64(8)
        at += 8
    if word & np.uint64(0xF) == ZERO:
        word >>= np.uint64(4)
        at += 4
    if word & np.uint64(3) == ZERO:
        word >>= np.uint64(2)
        at += 2
    if word & ONE == ZERO:
        at += 1
    return at


NONE = -2
SEVERAL = -1


@njit(cache=True)
def only_port(row):
    """The port of a set of one; NONE of an empty set, SEVERAL of a larger one."""
    found = NONE
    for w in range(row.shape[0]):
        word = row[w]
        if word != ZERO:
            if found != NONE or word & (word - ONE) != ZERO:
                return SEVERAL
            found = (w << 6) + lowest_bit(word)
    return found


@njit(cache=True)
def only_port_of(matrix, row, first, words):
    """`only_port` of the set in these words of a matrix's row; a view of them would cost more than the answer."""
    found = NONE
    for w in range(words):
        word = matrix[row, first + w]
        if word != ZERO:
            if found != NONE or word & (word - ONE) != ZERO:
                return SEVERAL
            found = (w << 6) + lowest_bit(word)
    return found


@njit(cache=True, inline="always")
def same(left, right):
    for w in range(left.shape[0]):
        if left[w] != right[w]:
            return False
    return True


@njit(cache=True)
def count_ports(row):
    n = 0
    for w in range(row.shape[0]):
        word = row[w]
        while word != ZERO:
            word &= word - ONE
            n += 1
    return n


@njit(cache=True)
def grown(array, size):
    """A copy of a vector with room for at least `size` items."""
    bigger = np.zeros(max(size, array.shape[0] * 2), array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(cache=True)
def grown_rows(array, rows):
    """A copy of a matrix with room for at least `rows` rows."""
    bigger = np.zeros((max(rows, array.shape[0] * 2), array.shape[1]), array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(cache=True)
def with_room(array, rows):
    """A matrix itself, if it has so many rows, or else a copy that has."""
    if rows <= array.shape[0]:
        return array
    return grown_rows(array, rows)
