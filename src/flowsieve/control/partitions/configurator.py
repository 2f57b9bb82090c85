"""A configurator: decides on the tables of the partitions that it owns, order by order. It touches no switch.

What it decides is a function of the interests in its partitions, the trees and the room that it was given; so another
that is given the same decides the same, and takes over without having spoken to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from flowsieve.control.partitions.orders import (
    Answer,
    Begin,
    Bound,
    Disown,
    Key,
    Order,
    Own,
    Ping,
    RequestPart,
    Rewire,
    Take,
    answer_from_bytes,
    answer_to_bytes,
    order_from_bytes,
    order_to_bytes,
)
from flowsieve.control.partitions.table_rows import Rows, net, no_rows, rows_from, within
from flowsieve.control.partitions.wire import SIZE
from flowsieve.control.request import broad_first
from flowsieve.errors import BadInput, TableFull
from flowsieve.flow.capacity.fitted import FittedTables
from flowsieve.flow.capacity.weights import Weights
from flowsieve.flow.diff import Change
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.flow.tables.table_kernel import C_TRIE
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import WHOLE
from flowsieve.network.generators import line
from flowsieve.network.tree import TreeMap, center_tree

WEIGHED_ANEW = 10  # weights are found anew once interests are more or fewer by one in so many


class Configurator:
    """`handle` orders one after the other. Before `Begin` it owns nothing, and there is nothing to decide."""

    def __init__(self) -> None:
        self.numbers: dict[Dz, int] = {}  # of the partitions that it owns
        self._held: dict[Dz, dict[Key, RequestPart]] = {}
        self._events: Rows | None = None  # where events are expected to fall
        self._weighed = 0  # interests that there were when weights were found
        self._tables: FittedTables | None = None
        self._fitted = False  # whether there were bounds: then tables are not always what the compiler has
        self._switch: dict[str, int] = {}

    def handle(self, order: Order) -> Answer:
        """Do what an order says; what tables change by it."""
        match order:
            case Ping():
                return Answer(self._nothing())
            case Begin():
                return self._begin(order)
            case Own():
                return self._own(order)
            case Disown(partition):
                return self._disown(partition)
            case Take(numbers, parts):
                return self._take(numbers, parts)
            case Rewire(trees):
                self._at_work.rewire(trees)
                return self._answer(self._updated_anyway())
            case Bound(room):
                self._bound(room)
                return self._answer(self._updated_anyway())

    @property
    def _at_work(self) -> FittedTables:
        if self._tables is None:
            raise BadInput("a configurator has to be told of the network first")
        return self._tables

    def _begin(self, order: Begin) -> Answer:
        compiler = Compiler(order.topology, order.trees, order.tables)
        self._tables = FittedTables(compiler, order.room)
        self._fitted = self._tables.bounded
        self._events, self._weighed = order.events, 0
        self._switch = {name: number for number, name in enumerate(order.topology.switches)}
        self.numbers, self._held = {}, {}
        return Answer(self._nothing())

    def _own(self, order: Own) -> Answer:
        for partition in order.numbers:
            if partition in self.numbers:
                raise BadInput(f"partition {str(partition)!r} is owned already")
        before = self._at_work.compiler.visits
        self.numbers |= order.numbers
        self._held |= {partition: {} for partition in order.numbers}
        for part in order.parts:
            self._held[part.partition][part.key] = part
        self._at_work.add([(_interest(part), part.side) for part in order.parts])
        self._bound(order.room)
        self._weigh()
        return self._answer(self._updated_anyway(), before)

    def _bound(self, room: Mapping[str, int | None]) -> None:
        for switch, entries in room.items():
            self._at_work.bound(switch, entries)
            self._fitted |= entries is not None

    def _disown(self, partition: Dz) -> Answer:
        """What goes from the tables goes over to the next owner: it is not told. The room that it took goes as well."""
        if partition not in self.numbers:
            return Answer(self._nothing())
        tables = self._at_work
        given = {
            switch: sum(map(partition.covers, tables.table(switch))) if room else 0
            for switch, room in tables.capacity.items()
        }
        for switch, entries in given.items():
            tables.bound(switch, max(0, tables.capacity[switch] - entries))
        del self.numbers[partition]
        for part in self._held.pop(partition).values():
            tables.change(_interest(part), part.side, adding=False)
        rows = self._updated_anyway()
        return replace(self._answer(rows[~within(rows, partition)]), given=given)

    def _take(self, numbers: Mapping[Dz, int], parts: Sequence[RequestPart]) -> Answer:
        for partition, number in numbers.items():
            if self.numbers.get(partition) != number:
                raise BadInput(f"partition {str(partition)!r} is not owned under the number {number}")
        before = self._at_work.compiler.visits
        done = [self._count(part) for part in parts]
        self._weigh()
        try:
            return self._answer(self._updated(), before)
        except TableFull:
            for part, was in zip(reversed(parts), reversed(done), strict=True):
                self._uncount(part, was)
        return self._one_by_one(parts, before)

    def _one_by_one(self, parts: Sequence[RequestPart], before: int) -> Answer:
        """Serve what there is room for; removals succeed even over capacity."""
        changes = [self._updated_anyway()]  # tables as they were before
        refused: dict[int, str] = {}
        short: dict[str, int] = {}  # what switches would need for what is refused
        for at in broad_first([(part.adding, part.side) for part in parts], lambda at: parts[at].dz.share):
            part = parts[at]
            was = self._count(part)
            try:
                changes.append(self._updated())
            except TableFull as reason:
                if part.adding:
                    refused[at] = str(reason)
                    short[reason.switch] = max(reason.needed, short.get(reason.switch, 0))
                    self._uncount(part, was)
                changes.append(self._updated_anyway())
        answer = self._answer(net(np.concatenate(changes)), before, refused)
        needs = {switch: max(need, short.get(switch, 0)) for switch, need in answer.needs.items()}
        return replace(answer, needs=needs)

    def _count(self, part: RequestPart) -> RequestPart | None:
        """Take up a part, or end it; what was there in its place. What is not there is not ended: it was refused."""
        held = self._held[part.partition]
        was = held.get(part.key)
        if part.adding:
            assert was is None, part
            held[part.key] = part
            self._at_work.change(_interest(part), part.side, adding=True)
        elif was is not None:
            del held[part.key]
            self._at_work.change(_interest(was), part.side, adding=False)
        return was

    def _uncount(self, part: RequestPart, was: RequestPart | None) -> None:
        held = self._held[part.partition]
        if part.adding:
            del held[part.key]
            self._at_work.change(_interest(part), part.side, adding=False)
        elif was is not None:
            held[part.key] = was
            self._at_work.change(_interest(was), part.side, adding=True)

    # What changes.

    def _updated(self, anyway: bool = False) -> Rows:
        """The net difference since the last one; TableFull where not even the coarsest table fits."""
        tables = self._at_work
        if not self._fitted:
            update = tables.compiler.update()
            rows = update.rows.copy()
            rows[:, C_TRIE] //= np.uint64(update.partitions)
            return rows
        return self._rows_from(tables.update(anyway))

    def _updated_anyway(self) -> Rows:
        """The same; a switch with no room for the coarsest table is to have that one, and nobody else is troubled.

        Its bound stays: more is not asked of it, so what comes to it is refused.
        """
        return self._updated(anyway=True)

    def _rows_from(self, changes: dict[str, list[Change]]) -> Rows:
        return rows_from(changes, self._switch, self._words)

    def _nothing(self) -> Rows:
        return no_rows(self._words)

    @property
    def _words(self) -> int:
        return 1 if self._tables is None else self._tables.compiler.words

    def _answer(self, rows: Rows, before: int | None = None, refused: dict[int, str] | None = None) -> Answer:
        tables = self._at_work
        compiler = tables.compiler
        needs = {switch: compiler.entries(switch) for switch in self._switch} if tables.bounded else {}
        visits = 0 if before is None else compiler.visits - before
        return Answer(rows, refused or {}, needs, tables.waste(), visits)

    def _weigh(self) -> None:
        """Now and then, if room is bounded, see where to expect events: subscriptions hint at it."""
        tables = self._at_work
        if not tables.bounded:
            return
        there = sum(map(len, self._held.values()))
        if abs(there - self._weighed) * WEIGHED_ANEW > self._weighed:
            self._weighed = there
            subscribed = [
                part.dz
                for held in self._held.values()
                for part in held.values()
                if part.side is Side.SUBSCRIBER
            ]
            tables.weights = Weights.of_events(subscribed, self._events)


def _interest(part: RequestPart) -> Interest:
    return Interest(part.id, part.endpoint, None, part.dz)


def decide_once(room: int | None = None) -> None:
    """Go once through all that a configurator does, so that its kernels are there before somebody waits for them."""
    network = line(2)
    first, second = network.hosts
    entries = None if room is None else dict.fromkeys(network.switches, room)
    some, trees = Configurator(), TreeMap.single(center_tree(network))
    for order in (
        Begin(network, trees, room=entries),
        Own({WHOLE_SPACE: 1}, [RequestPart(True, Side.PUBLISHER, "p", first, WHOLE_SPACE, WHOLE)]),
        Take({WHOLE_SPACE: 1}, [RequestPart(True, Side.SUBSCRIBER, "s", second, WHOLE_SPACE, WHOLE)]),
        Rewire(trees),
        Take({WHOLE_SPACE: 1}, [RequestPart(False, Side.SUBSCRIBER, "s", second, WHOLE_SPACE, WHOLE)]),
        Disown(WHOLE_SPACE),
    ):
        serial, sent = order_from_bytes(order_to_bytes(1, order)[SIZE:])
        answer_from_bytes(answer_to_bytes(serial, some.handle(sent))[SIZE:])
