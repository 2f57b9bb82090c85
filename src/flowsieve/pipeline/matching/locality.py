"""An order of boxes in which those that share events stand side by side.

Bitsets have a bit per box, 64 to a word. Where the boxes of a word lie close together, most events are in none of them,
and their words are passed over unread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORD = 64


def near_order(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers of boxes (a row each, a column per dimension), halved again and again until a word holds a part.

    Each part is cut along the dimension in which its boxes differ most, measured by how wide they are.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        middle, width = (np.nan_to_num(line / 2, posinf=0.0, neginf=0.0) for line in (low + high, high - low))
    done: list[NDArray[np.int64]] = []
    waiting = [np.arange(len(low))]
    while waiting:
        part = waiting.pop()
        if len(part) <= WORD or not low.shape[1]:
            done.append(part)
            continue
        dimension = _most_apart(middle[part], width[part])
        part = part[np.argsort(middle[part, dimension], kind="stable")]
        half = (len(part) + WORD - 1) // WORD // 2 * WORD
        waiting += [part[half:], part[:half]]
    return np.concatenate(done)


def _most_apart(middle: NDArray[np.float64], width: NDArray[np.float64]) -> int:
    least, most = np.quantile(middle, (0.1, 0.9), axis=0)
    spread, mean = most / 2 - least / 2, (width / len(width)).sum(axis=0)
    whole = spread / 2 + mean / 2
    return int(np.argmax(np.divide(spread, whole, out=np.zeros_like(spread), where=whole > 0)))
