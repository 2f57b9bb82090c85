"""Which of some filters cover which others: an event that matches the one that is covered matches the other as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Interval
from flowsieve.content.filter import Filter

_ROOM = 16  # rows of spans to begin with


class Covering:
    """Filters by their canonical texts, and for each the others that cover it; each pair is compared once.

    Of filters that match the same events, though in other boxes, the one whose text comes first covers the others.
    What covers a cover of a filter covers it too, also where comparing the two would be too much work: so that of
    those that nothing else covers one covers it, whichever filters are there.
    """

    def __init__(self) -> None:
        self.filters: dict[str, Filter] = {}
        self._above: dict[str, frozenset[str]] = {}
        self._below: dict[str, set[str]] = {}
        self._rows: dict[str, int] = {}  # of the spans
        self._texts: list[str | None] = []
        self._spans: NDArray[np.float64] | None = None
        self._free: list[int] = []

    def add(self, text: str, filter: Filter) -> None:
        """Know a filter by its text."""
        if text in self.filters:
            return
        own = _span(filter)
        wider, narrower = self._candidates(own)
        self.filters[text] = filter
        above = _closed(self._above, (each for each in wider if self._related(each, text)))
        # Where work is bounded one may seem to be on both sides; of two above each other none would be left.
        below = _closed(self._below, (each for each in narrower if self._related(text, each))) - above
        self._above[text], self._below[text] = above, set(below)
        for each in below:
            self._above[each] |= above | {text}
        for each in above:
            self._below[each] |= below | {text}
        self._keep_span(text, own)

    def discard(self, text: str) -> None:
        """Know a filter no longer."""
        if text not in self.filters:
            return
        for each in self._below.pop(text):
            self._above[each] -= {text}
        for each in self._above.pop(text):
            self._below[each].discard(text)
        del self.filters[text]
        row = self._rows.pop(text)
        self._texts[row] = None
        self._free.append(row)

    def above(self, text: str) -> frozenset[str]:
        """The filters that cover one."""
        return self._above[text]

    def below(self, text: str) -> Set[str]:
        """The filters that one covers."""
        return self._below[text]

    def _related(self, wide: str, narrow: str) -> bool:
        one, other = self.filters[wide], self.filters[narrow]
        return one.covers(other) and (wide < narrow or not other.covers(one))

    # Few pairs are left whose spans allow for it.

    def _candidates(self, own: NDArray[np.float64]) -> tuple[list[str], list[str]]:
        if self._spans is None:
            return [], []
        spans = self._spans[: len(self._texts)]
        rows = ((spans >= own).all(axis=1), (spans <= own).all(axis=1))
        wider, narrower = (
            [text for at in np.flatnonzero(some).tolist() if (text := self._texts[at]) is not None]
            for some in rows
        )
        return wider, narrower

    def _keep_span(self, text: str, own: NDArray[np.float64]) -> None:
        if self._spans is None:
            self._spans = np.zeros((_ROOM, len(own)))
        elif not self._free and len(self._texts) == len(self._spans):
            self._spans = np.concatenate([self._spans, np.zeros_like(self._spans)])
        if self._free:
            row = self._free.pop()
            self._texts[row] = text
        else:
            row = len(self._texts)
            self._texts.append(text)
        self._rows[text], self._spans[row] = row, own


def _closed(relation: Mapping[str, Iterable[str]], texts: Iterable[str]) -> frozenset[str]:
    """Texts, and all that are related to them."""
    some = frozenset(texts)
    return some.union(*(relation[each] for each in some))


def _span(filter: Filter) -> NDArray[np.float64]:
    """How far a filter reaches along each attribute of numbers, downwards and upwards: of two, the one that covers
    the other reaches no less far."""
    reach: list[float] = []
    for constraints in zip(*filter.boxes, strict=True):
        ranges = [each for each in constraints if isinstance(each, Interval)]
        reach += (
            [-min(each.low for each in ranges), max(each.high for each in ranges)] if ranges else [0.0, 0.0]
        )
    return np.array(reach, np.float64)
