"""Configurators in this process, behind lines that carry the bytes of orders and answers; each works when it is let.

They decide for a state as those of a live dispatcher do: what is asked for comes back later, as changes that are
applied to `tables` and checked on the way.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from flowsieve.control.partitions.configurator import Configurator
from flowsieve.control.partitions.decided_elsewhere import Interests
from flowsieve.control.partitions.orders import (
    Answer,
    Begin,
    Key,
    Order,
    Ping,
    Take,
    answer_from_bytes,
    answer_to_bytes,
    order_from_bytes,
    order_to_bytes,
)
from flowsieve.control.partitions.pool import ConfiguratorPool
from flowsieve.control.partitions.wire import SIZE, length_of
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side, Tables
from flowsieve.index.dz import Dz
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap


@dataclass(eq=False)
class Line:
    """A configurator, what it was sent and has not read, and what it has answered and nobody has heard."""

    name: str
    configurator: Configurator = field(default_factory=Configurator)
    orders: deque[bytes] = field(default_factory=deque)
    answers: deque[bytes] = field(default_factory=deque)
    owed: deque[Order] = field(default_factory=deque)  # what nobody has heard an answer to

    def send(self, serial: int, order: Order) -> None:
        self.orders.append(order_to_bytes(serial, order))
        self.owed.append(order)

    def work(self) -> None:
        """Handle the next order."""
        serial, order = order_from_bytes(_body(self.orders.popleft()))
        self.answers.append(answer_to_bytes(serial, self.configurator.handle(order)))

    def hear(self) -> tuple[int, Answer]:
        self.owed.popleft()
        return answer_from_bytes(_body(self.answers.popleft()))


class Staff:
    """Those who decide in the place of a state (`Deciders`), and the tables of switches that follow at once."""

    def __init__(self, tables: Tables = Tables.OVERLAY, slice_size: int = 500, roomy: bool = True) -> None:
        self.pool = ConfiguratorPool(slice_size)
        self.lines: dict[str, Line] = {}
        self.tables: dict[str, dict[Dz, Ports]] = {}
        self.undecided: set[Key] = set()  # what was asked for, and nobody was told that it is decided
        self._asked: Counter[Key] = Counter()  # and how often nobody was
        self.refused: list[Key] = []  # since somebody looked
        self.capacity: dict[str, int] = {}  # of switches; no table has more entries
        self.smaller: dict[str, int] = {}  # of those that turned out to have less than was thought
        self._heard: set[str] = set()  # those of them of which everybody has heard
        self._kind, self._roomy = tables, roomy  # whether there is room for the coarsest tables at least
        self._names = count(1)
        self._last: dict[Dz, tuple[str | None, int]] = {}  # who owned what, under which number

    # What a state asks.

    def begin(
        self, topology: Topology, trees: TreeMap, room: Mapping[str, int], interests: Interests
    ) -> None:
        self.capacity, self.smaller = (dict(room), {}) if self._roomy else ({}, dict(room))
        self._heard.clear()
        numbers = {dz: number for dz, (_, number) in self.pool.owners.items()}
        above = max(numbers.values(), default=0)
        self.pool.begin(Begin(topology, trees, self._kind, room or None), interests)
        for line in self.lines.values():
            line.owed = deque(Ping() for _ in line.owed)  # answers to these mean nothing any more
        self._last = {dz: (None, numbers.get(dz, above)) for dz, _ in trees}
        self.flush()

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> Mapping[str, list[Change]]:
        listed = list(parts)
        keys = [(side, interest.id) for _, side, interest in listed]
        self.undecided.update(keys)
        self._asked.update(keys)
        self.pool.take(listed)
        self.flush()
        return {}

    def rewire(self, trees: TreeMap) -> Mapping[str, list[Change]]:
        self.pool.rewire(trees)
        self.flush()
        return {}

    def bound(self, switch: str, room: int | None) -> Mapping[str, list[Change]]:
        self.capacity.pop(switch, None)
        self.smaller.pop(switch, None)
        self._heard.discard(switch)
        if room is not None:
            self.smaller[switch] = room
        self.pool.bound(switch, room)
        self.flush()
        return {}

    def table(self, switch: str) -> dict[Dz, Ports]:
        return self.pool.aim(switch)

    def size(self, switch: str) -> int:
        return self.pool.size(switch)

    def waste(self) -> dict[str, float]:
        return self.pool.waste

    # Who is there.

    def join(self) -> str:
        """One more configurator; it owns what nobody does."""
        name = f"c{next(self._names)}"
        self.lines[name] = Line(name)
        self.pool.joined(name)
        self.pool.assign()
        self.flush()
        return name

    def leave(self, name: str) -> None:
        """A configurator is gone, with all that it was sent and has answered."""
        del self.lines[name]
        self.pool.left(name)
        self.flush()

    def hear(self, name: str) -> None:
        """Have the oldest answer of a configurator arrive."""
        serial, answer = self.lines[name].hear()
        self.pool.answered(name, serial, answer)
        self.flush()

    def settle(self) -> None:
        """Let all work until nothing is to be done."""
        while busy := [line for line in self.lines.values() if line.orders or line.answers]:
            for line in busy:
                while line.orders:
                    line.work()
                while line.answers:
                    self.hear(line.name)

    # What comes of it.

    def flush(self) -> None:
        """Carry the orders, and have tables and those who wait follow."""
        for name, serial, order in self.pool.orders():
            if name in self.lines:
                self.lines[name].send(serial, order)
        for switch, changes in self.pool.changes().items():
            self._apply(switch, changes)
        for key, why in self.pool.decided():
            self._check_decided(key)
            if why is not None:
                self.refused.append(key)
        self._check_owners()
        self._check_room()

    def _check_room(self) -> None:
        """No table has more entries than its switch has room for, at any moment."""
        for switch, most in self.capacity.items():
            assert len(self.tables.get(switch, ())) <= most, (switch, len(self.tables[switch]), most)

        if not any(line.owed for line in self.lines.values()) and self.pool.ready:
            self._heard = set(self.smaller)
            for switch in self.smaller:
                self._check_coarsest(switch)

    def _check_coarsest(self, switch: str) -> None:
        """Where a table has more entries than there is room for, there is none with fewer for what is in force."""
        size = len(self.tables.get(switch, ()))
        assert size <= max(self.smaller[switch], self.coarsest(switch)), (switch, size, self.smaller[switch])

    def coarsest(self, switch: str) -> int:
        """How many entries a table has at least: one for each partition of which something is there."""
        there = self.tables.get(switch, {})
        return sum(any(partition.covers(dz) for dz in there) for partition in self.pool.partitions)

    def _check_decided(self, key: Key) -> None:
        """Nobody is told twice what was asked once, nor before all of it is decided."""
        self._asked[key] -= 1
        assert self._asked[key] >= 0, key
        self.undecided.discard(key)
        waiting = [part for each in self.pool.partitions.values() for _, part in each.queue]
        for line in self.lines.values():
            waiting += [part for order in line.owed if isinstance(order, Take) for part in order.parts]
        assert key not in {part.key for part in waiting}, key

    def _apply(self, switch: str, changes: list[Change]) -> None:
        table = self.tables.setdefault(switch, {})
        before = len(table)
        assert len({change.dz for change in changes}) == len(changes), changes
        for change in changes:
            assert table.get(change.dz) == change.old, (switch, change)
            assert change.new != change.old, (switch, change)
            if change.new is None:
                del table[change.dz]
            else:
                table[change.dz] = change.new
        if switch in self._heard and len(table) > max(before, self.smaller[switch]):
            self._check_coarsest(switch)

    def _check_owners(self) -> None:
        """One owns a partition at a time, and the next one under a higher number."""
        owners = self.pool.owners
        for dz, (owner, number) in owners.items():
            before, last = self._last.get(dz, (None, 0))
            assert number > last or (number == last and owner in (before, None)), (dz, owner, number)
            for name, line in self.lines.items():
                held = line.configurator.numbers.get(dz, 0)
                assert held < number or (held == number and name == owner), (dz, name)
        self._last = owners


def _body(message: bytes) -> bytes:
    assert length_of(message[:SIZE]) == len(message) - SIZE
    return message[SIZE:]
