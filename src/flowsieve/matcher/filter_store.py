"""What a host holds of others' filters: a version of the controller's state, taken in page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b

from flowsieve.client.matcher_socket import LabelMatch
from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage
from flowsieve.matcher.filter_index import FilterIndex
from flowsieve.matcher.packed_filters import PackedFilters
from flowsieve.protocol.filter_page import FilterPacking, FilterPage, HeldVersion, Row


class FilterStore:
    """Filters of a version, to match events against; the next version is made beside it where all of it is told anew.

    `held` is what the controller is told; `version` is that of what is matched, None before there is any.
    """

    def __init__(self, schema: Schema) -> None:
        self.held: HeldVersion | None = None
        self.version: int | None = None
        self.set_bits = 0
        self._schema = schema
        self._filters: _Filters | PackedFilters = _Filters(schema)
        self._coming: _Filters | PackedFilters | None = None
        self._packing: FilterPacking | None = None

    def __len__(self) -> int:
        """How many pairs of a filter and a receiver there are."""
        return len(self._filters)

    def take(self, page: FilterPage) -> None:
        """Take in a page that was asked for with what is `held`; BadMessage if it does not go on from there."""
        if page.anew:
            self._coming = self._made(page.packing)
            before = 0
        elif self.held is None or self.held.epoch != page.epoch or page.version < self.held.version:
            raise BadMessage("the controller tells what is new to filters that this host does not hold")
        elif page.packing != self._packing:
            raise BadMessage("the controller packs filters otherwise than before")
        else:
            before = self.held.rows if self._coming is not None else 0
        filters = self._coming if self._coming is not None else self._filters
        try:
            for row in page.remove:
                filters.change(row, -1)
            for row in page.add:
                filters.change(row, 1)
        except KeyError:
            raise BadMessage("the controller takes filters away that this host does not hold") from None
        if page.more:
            self.held = HeldVersion(page.epoch, page.version, before + len(page.add))
            return
        if self._coming is not None:
            self._filters, self._coming = self._coming, None
        self.held, self.version = HeldVersion(page.epoch, page.version), page.version
        self.set_bits = page.set_bits

    def _made(self, packing: FilterPacking | None) -> _Filters | PackedFilters:
        self._packing = packing
        return _Filters(self._schema) if packing is None else PackedFilters(self._schema, packing)

    def warm(self) -> None:
        """Have what matches loaded, so that the first event need not wait for it."""
        filters = _Filters(self._schema)
        filters.change(("True", (0,)), 1)
        lowest = {each.name: each.value("" if each.kind == "string" else each.min) for each in self._schema}
        filters.index.match(lowest)

    def match(self, values: Mapping[str, object]) -> LabelMatch:
        """For whom an event is."""
        return self._filters.match(values)


class _Filters:
    """An index, and how many texts that mean the same each receiver has: what one of them says stays with the last."""

    def __init__(self, schema: Schema) -> None:
        self.index = FilterIndex(schema)
        self._schema = schema
        self._texts: Counter[tuple[bytes, int]] = Counter()

    def __len__(self) -> int:
        return len(self.index)

    def change(self, row: Row, by: int) -> None:
        """Receivers have a filter once more, or once less; KeyError if one of them has none."""
        text, receivers = row
        filter = Filter.parse(text, self._schema)
        name = blake2b(canonical(filter).encode(), digest_size=16).digest()
        for receiver in receivers:
            before = self._texts[name, receiver]
            self._texts[name, receiver] += by
            if by > 0 and not before:
                self.index.add(filter, receiver)
            elif by < 0 and before <= 1:
                del self._texts[name, receiver]
                self.index.remove(filter, receiver)

    def match(self, values: Mapping[str, object]) -> LabelMatch:
        return LabelMatch(self.index.match(values))
