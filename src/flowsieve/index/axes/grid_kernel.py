"""Places of whole columns on an axis; the plain twin of both kernels is `grid.Axis.place`."""

from __future__ import annotations

import numpy as np
from numba import njit

SPLITTER = 134217729.0  # 2^27 + 1: cuts a float in two halves of 26 bits, the product of which is exact


@njit(cache=True, nogil=True)
def int_places(column, low, high, bits, out):
    """Fill in each number's place; the first row without an integer from `low` to `high` (-1: none)."""
    count = high - low + 1
    spare = -1  # bits to drop, where the places of a power of two of values are their top bits
    if count & (count - 1) == 0:
        spare = -bits
        while count >> (spare + bits) > 1:
            spare += 1
    for i in range(len(column)):
        number = column[i]
        if not (low <= number <= high):
            return i
        left = np.int64(number)
        if np.float64(left) != number:
            return i
        left -= low
        if spare >= 0:
            out[i] = np.uint64(left >> spare)
            continue
        # Long division, a bit a step: nothing grows beyond twice the count, whatever `bits` is.
        place = np.int64(0)
        for _ in range(bits):
            left += left
            carry = np.int64(left >= count)
            left -= carry * count
            place += place + carry
        out[i] = np.uint64(place)
    return -1


@njit(cache=True, nogil=True, inline="always")
def exact_product(a, b):
    """a · b as the sum of a float and the error it makes."""
    product = a * b
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True, nogil=True, inline="always")
def exact_difference(a, b):
    """a - b as the sum of a float and the error it makes."""
    difference = a - b
    back = difference - a
    return difference, (a - (difference - back)) - (b + back)


@njit(cache=True, nogil=True)
def float_places(column, low, high, bits, out):
    """Fill in each number's place; the rows where it is not certain; the first outside the range (-1: none).

    The quotient is computed to some 100 bits, as a sum of two floats, which leaves to exact arithmetic only
    the numbers on an edge, or closer to one than that.
    """
    unsure = np.empty(len(column), np.int64)
    n = 0
    width, width_error = exact_difference(high, low)
    tame = 1e-100 < width < 1e100 and max(abs(low), abs(high)) < 1e100
    scale = 2.0**bits
    for i in range(len(column)):
        number = column[i]
        if not (low <= number <= high):
            return unsure[:n], i
        if number == high:
            out[i] = np.uint64((1 << bits) - 1)
            continue
        if tame:
            over, over_error = exact_difference(number, low)
            quotient = over / width
            product, product_error = exact_product(quotient, width)
            rest = ((over - product) - product_error) + (over_error - quotient * width_error)
            place = np.floor(quotient * scale)
            beyond = (quotient * scale - place) + (rest / width) * scale
            if beyond < 0.0:
                place -= 1.0
                beyond += 1.0
            elif beyond >= 1.0:
                place += 1.0
                beyond -= 1.0
            if 1e-9 < beyond < 1.0 - 1e-9 and 0.0 <= place < scale:
                out[i] = np.uint64(place)
                continue
        unsure[n] = i
        n += 1
    return unsure[:n], -1
