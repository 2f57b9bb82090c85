"""The packets to be expected where labels are Bloom filters: those of a sample of events, or of what is wanted.

People subscribe to what happens: without a sample, the middles of filters are the best guess at events.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from flowsieve.content.box import Box, Interval
from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.flow.capacity.pattern_merging import PacketSample
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.interest import Interest
from flowsieve.flow.shares import Shares
from flowsieve.header.bloom import BloomLabels

MOST_EVENTS = 400


def packets_expected(
    schema: Schema,
    held: HeldFilters,
    advertisements: Collection[Interest],
    labels: BloomLabels,
    copies: Shares,
    sample: EventBatch | None = None,
) -> PacketSample:
    """The packets of so many events at most, each sent by any publisher that has advertised it."""
    events = _evenly(_middles(schema, held) if sample is None else sample)
    publishers = tuple(sorted({each.endpoint for each in advertisements}))
    senders = np.zeros((len(events), len(publishers)), np.bool_)
    for each in advertisements:
        for offer in each.filters:
            senders[:, publishers.index(each.endpoint)] |= offer.matches_batch(events)
    bits: list[int] = []
    rows: list[int] = []
    for row, matched in enumerate(held.matched_batch(events)):
        texts = [held.texts[at] for at in np.flatnonzero(matched)]
        for share in copies.shared_out(texts, held):
            bits.append(labels.bits_of(map(labels.pattern, share)))
            rows.append(row)
    return PacketSample.of(labels.m, bits, publishers, senders[np.array(rows, np.int64)])


def _evenly(events: EventBatch) -> EventBatch:
    step = max(1, -(-len(events) // MOST_EVENTS))
    return events.take(np.arange(0, len(events), step))


def _middles(schema: Schema, held: HeldFilters) -> EventBatch:
    """An event for each of some filters, where there is one in the middle of its first box."""
    step = max(1, -(-len(held) // MOST_EVENTS))
    boxes = [held[text].filter.boxes[0] for text in held.texts[::step]]
    rows = [_middle(schema, box) for box in boxes]
    columns = {
        attribute.name: np.array([row[at] for row in rows], object if attribute.kind == "string" else float)
        for at, attribute in enumerate(schema)
    }
    empty = np.full(len(rows), "", dtype=object)
    return EventBatch(schema, empty, empty, columns)


def _middle(schema: Schema, box: Box) -> list[float | str]:
    found: list[float | str] = []
    for attribute, each in zip(schema, box, strict=True):
        if isinstance(each, Interval):
            middle = each.low / 2 + each.high / 2  # the sum may be beyond the largest float
            found.append(middle if attribute.kind == "float" else float(int(middle)))
        else:
            found.append(each.low if each.equals is None else each.equals)
    return found
