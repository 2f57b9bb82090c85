"""Words of 64 bits and places on a line, for all kernels that match; compiled.

The plain twins, of Python's own integers and `bisect`, are in `tests/content/test_words_kernel.py`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

ONE = np.uint64(1)


@intrinsic
def popcount(typing_context, word):
    """How many bits of a word are set."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(builder.bitcast(arguments[0], ir.IntType(64)))

    return types.uint64(types.uint64), build


@njit(cache=True, nogil=True)
def lowest(word):
    """The number of the lowest bit that is set."""
    return np.int64(popcount((word & (~word + ONE)) - ONE))


@njit(cache=True, nogil=True)
def segment_of(edges, begin, end, value):
    """The segment of a value: how many of edges[begin:end] are not above it."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - begin
