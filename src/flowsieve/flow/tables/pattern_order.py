"""Entries for patterns in the place of others, in an order in which no packet is lost on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.header.bloom import BloomLabels


@dataclass(frozen=True, slots=True)
class Exchange:
    """The entries of a port, by their bits, that come and that go."""

    new: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)

    @classmethod
    def between(cls, before: set[int], after: set[int]) -> Exchange:
        return cls(after - before, before - after)

    @property
    def growth(self) -> int:
        return len(self.new) - len(self.gone)


Steps = Iterator[tuple[OpKind, int]]
Where = TypeVar("Where")


def in_order(exchanges: Mapping[Where, Exchange]) -> Iterator[tuple[Where, OpKind, int]]:
    """The operations of exchanges at some ports, in an order in which nothing is lost: what stands for others comes
    before they go. There is never more than one entry more than before or after."""
    for part in (_useless, _merging, _narrowing, _added):
        for where, exchange in exchanges.items():
            yield from ((where, kind, bits) for kind, bits in part(exchange))


def ordered(
    ops: Sequence[FlowOp], labels: BloomLabels, size: int = 0, room: int | None = None
) -> list[FlowOp]:
    """Operations on a switch that holds `size` entries, in an order in which nothing is lost, if there is `room`.

    With room all that is new comes before anything goes. Else patterns are exchanged in order, which is enough between
    tables that follow each other; where ports have other tables than before, and that has no room either, what goes
    goes first. A batch is made at once where switches can.
    """
    if room is None or _peak(ops) + size <= room:
        return list(ops)
    found = _around_patterns(ops, labels)
    if _peak(found) + size > room:
        found.sort(key=_growth)
    return found


def _peak(ops: Iterable[FlowOp]) -> int:
    """How many entries more there are while operations are made, at most."""
    return max(accumulate(map(_growth, ops)), default=0)


def _growth(op: FlowOp) -> int:
    return (op.kind is OpKind.INSTALL) - (op.kind is OpKind.REMOVE)


def _around_patterns(ops: Iterable[FlowOp], labels: BloomLabels) -> list[FlowOp]:
    """The exchanges of patterns in their order, a table having those of one port, and all else around them."""
    exchanges: dict[int, Exchange] = {}
    patterns: dict[tuple[int, int], FlowOp] = {}
    first, last = list[FlowOp](), list[FlowOp]()
    for op in ops:
        bits = labels.pattern_of(op.flow.match) if op.flow.actions else None
        if bits is not None and op.kind is not OpKind.MODIFY:
            exchange = exchanges.setdefault(op.flow.table, Exchange())
            (exchange.new if op.kind is OpKind.INSTALL else exchange.gone).add(bits)
            patterns[op.flow.table, bits] = op
        else:
            (last if op.kind is OpKind.REMOVE else first).append(op)
    return [*first, *(patterns[table, bits] for table, _, bits in in_order(exchanges)), *last]


# The parts of an exchange.


def _useless(exchange: Exchange) -> Steps:
    """What goes and has to do with nothing that comes: nobody needs it, or something that stays stands for it."""
    for bits in sorted(exchange.gone):
        if not any_within(exchange.new, bits) and not stands_for(bits, exchange.new):
            yield OpKind.REMOVE, bits


def _merging(exchange: Exchange) -> Steps:
    """What comes and stands for some that go, each followed by those."""
    left = set(exchange.gone)
    for bits in sorted(exchange.new):
        if stands_for(bits, exchange.gone):
            yield OpKind.INSTALL, bits
            over = [each for each in left if not bits & ~each]
            left.difference_update(over)
            yield from ((OpKind.REMOVE, each) for each in sorted(over))


def _narrowing(exchange: Exchange) -> Steps:
    """What goes and stood for some that come, each preceded by those."""
    left = {bits for bits in exchange.new if not stands_for(bits, exchange.gone)}
    for bits in sorted(exchange.gone):
        narrower = [each for each in exchange.new if not bits & ~each]
        if narrower and not any_within(exchange.new, bits):
            yield from ((OpKind.INSTALL, each) for each in sorted(left.intersection(narrower)))
            left.difference_update(narrower)
            yield OpKind.REMOVE, bits


def _added(exchange: Exchange) -> Steps:
    """What comes and has to do with nothing that goes."""
    for bits in sorted(exchange.new):
        if not stands_for(bits, exchange.gone) and not any_within(exchange.gone, bits):
            yield OpKind.INSTALL, bits


def stands_for(bits: int, others: Iterable[int]) -> bool:
    """Whether an entry that asks for these bits sends what one of others does."""
    return any(not bits & ~each for each in others)


def any_within(some: Iterable[int], bits: int) -> bool:
    """Whether one of some entries sends what has these bits."""
    return any(not each & ~bits for each in some)
