"""The storage of a compiler's tries: lists of arrays, empty at first.

It is made here since Numba compiles anew, in every process, what Python does with a typed container. The plain twin is
`store_kernel.make_store` itself, run by Python.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.typed import List

from flowsieve.flow.tables.spread_kernel import Q_COLUMNS
from flowsieve.flow.tables.table_kernel import C_PORTS

ROOM = 1024  # rows, before an array has to grow


@njit(cache=True)
def make_store(tries, hosts, words):
    """`sets`, `links`, `flags`, `work` and `counts`, as spread_kernel, table_kernel and interest_kernel have them."""
    room = ROOM + 2 * tries
    sets = List([np.zeros((room, words), np.uint64) for _ in range(4)])
    links = List([np.full(room, -1, np.int32), np.zeros(ROOM, np.int32)])
    flags = List([np.zeros(room, np.uint8)])
    work = List(
        [
            np.zeros((ROOM, Q_COLUMNS), np.uint64),
            np.zeros((ROOM // 4, 4 + words), np.uint64),
            np.zeros((ROOM, C_PORTS + 2 * words), np.uint64),
        ]
    )
    counted = ROOM + 4 * hosts
    counts = List([np.full(counted, -1, np.int32), np.zeros(ROOM, np.int32), np.zeros(counted, np.int32)])
    return sets, links, flags, work, counts
