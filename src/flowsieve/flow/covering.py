"""Which of some filters cover which others: an event that matches the one that is covered matches the other as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.box import Interval
from flowsieve.content.filter import Filter


class Covering:
    """Filters by their canonical texts, and for each the others that cover it; each pair is compared once.

    Of filters that match the same events, though in other boxes, the one whose text comes first covers the others.
    """

    def __init__(self) -> None:
        self.filters: dict[str, Filter] = {}
        self._above: dict[str, set[str]] = {}
        self._spans: dict[str, NDArray[np.float64]] = {}

    def keep(self, filters: Mapping[str, Filter]) -> None:
        """Know these filters, by their texts, and no others."""
        for gone in self.filters.keys() - filters.keys():
            del self.filters[gone], self._above[gone], self._spans[gone]
        for above in self._above.values():
            above.intersection_update(filters)
        new = [text for text in filters if text not in self.filters]
        for text in new:
            self.filters[text], self._above[text] = filters[text], set()
            self._spans[text] = _span(filters[text])
        if new:
            self._compare(new)

    def above(self, text: str) -> Set[str]:
        """The filters that cover one."""
        return self._above[text]

    def widest(self, texts: Iterable[str]) -> frozenset[str]:
        """Some of these filters, as few as it takes: each of the others is covered by one of them."""
        found: set[str] = set()
        # Those that little covers first, so that they are there when something that they cover comes.
        for text in sorted(texts, key=lambda text: (len(self._above[text]), text)):
            if found.isdisjoint(self._above[text]):
                found.add(text)
        return frozenset(found)

    def _compare(self, new: list[str]) -> None:
        """Find what covers the new ones, and what they cover. Few pairs are left whose spans allow for it."""
        texts = list(self.filters)
        spans = np.stack([self._spans[text] for text in texts])
        for text in new:
            own = self._spans[text]
            for at in np.flatnonzero((spans >= own).all(axis=1)).tolist():
                self._relate(texts[at], text)
            for at in np.flatnonzero((spans <= own).all(axis=1)).tolist():
                self._relate(text, texts[at])

    def _relate(self, wide: str, narrow: str) -> None:
        one, other = self.filters[wide], self.filters[narrow]
        if wide != narrow and one.covers(other) and (wide < narrow or not other.covers(one)):
            self._above[narrow].add(wide)


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
