"""Which configurator owns which partition, what waits for it, and what they have decided; it performs nothing.

Whoever runs it tells it who `joined` and `left`, what has to be decided (`take`, `rewire`, `begin`) and what was
`answered`; it then sends the orders that are due (`orders`), has the tables follow the changes (`changes`), and tells
those who wait that what they asked for is decided (`decided`).

What keeps it right: a partition has one owner at a time, under a number that grows with each; what an owner decides
counts only while the partition is its own. Interests that it has answered for are `held`, all others wait in a queue;
so a new owner is given what is held and then what waits, in their order, and nothing is lost, repeated or passed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from flowsieve.control.partitions.assignment import taken_over
from flowsieve.control.partitions.division import Division
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
)
from flowsieve.control.partitions.room_shares import RoomShares
from flowsieve.control.partitions.table_rows import (
    Rows,
    TableAims,
    changes_of,
    difference,
    installed,
    net,
    no_rows,
    places,
    renumbered,
    words_of,
)
from flowsieve.errors import BadInput
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side, words_for
from flowsieve.flow.tables.table_kernel import C_PORTS, C_TRIE
from flowsieve.index.dz import Dz
from flowsieve.network.tree import TreeMap

SLICE = 500  # parts that are decided as one difference
AT_ONCE = 2  # slices that a configurator has before it, so that it never waits for the next
HELD_WEIGHT = 0.01  # of an interest that is in force, beside a request that comes, in what a partition weighs


@dataclass(slots=True, eq=False)
class _Partition:
    """One partition: who decides on it, what is in force, what waits, and what its tables should be."""

    dz: Dz
    number: int = 0
    owner: str | None = None
    ready: bool = False  # whether the owner has taken it up
    going_to: str | None = None  # who gets it once nothing of it is under way
    under_way: int = 0
    held: dict[Key, RequestPart] = field(default_factory=dict)
    queue: deque[tuple[int, RequestPart]] = field(default_factory=deque)
    room: dict[str, int] = field(default_factory=dict)  # that goes with it, until its new owner has it
    taken: float = 0.0  # requests of late
    spanned: float = 0.0  # those of them that cover it wholly

    @property
    def weight(self) -> float:
        return self.taken + HELD_WEIGHT * (1 + len(self.held))


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    serial: int
    order: Order
    units: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _Member:
    """A configurator, and what it was sent and has not answered, in its order."""

    name: str
    sent: deque[_Sent] = field(default_factory=deque)
    slices: int = 0
    waiting: dict[Dz, None] = field(default_factory=dict)  # its partitions in which something waits
    serials: count[int] = field(default_factory=lambda: count(1))
    answered: int = 0  # parts
    visits: int = 0


class ConfiguratorPool:
    """Partitions, and configurators that own them; see above."""

    def __init__(self, slice_size: int = SLICE) -> None:
        self.partitions: dict[Dz, _Partition] = {}
        self.migrations = 0
        self.stale = 0  # changes that came from others than the owner
        self.trees: TreeMap | None = None
        self._slice = slice_size
        self._members: dict[str, _Member] = {}
        self._network: Begin | None = None
        self._division = Division.even(1)
        self._switches: tuple[str, ...] = ()
        self._number: dict[str, int] = {}
        self._shares = RoomShares({})
        self._units = count(1)
        self._open: dict[int, None] = {}  # what is not decided yet, the oldest first
        self._last = self._rewired = 0
        self._parts_left: dict[Key, int] = {}  # of requests
        self._refused: dict[Key, str] = {}
        self._tried_again: set[Key] = set()
        self._retry: set[Dz] = set()  # partitions in which something waits for more room
        self._giving: dict[str, list[_Partition]] = {}  # partitions that wait for room where they go to
        self._lowering: set[str] = set()  # who has yet to make do with less
        self._raises: dict[str, dict[str, int]] = {}  # who gets more then
        self._leaving: set[Dz] = set()  # partitions that their owners have yet to give up
        self._anew = False  # whether a switch turned out to have other room
        self._planned: set[tuple[Dz, int]] = set()  # the partitions, by number, that this is made for
        self._aims = TableAims()
        self._before: Rows | None = None  # the aims of before, until all partitions are taken up anew
        self._orders: list[tuple[str, int, Order]] = []
        self._changes: list[Rows] = []
        self._decided: list[tuple[Key, str | None]] = []
        self._held_back: list[tuple[Key, str | None]] = []  # decided while all begins anew

    # What has to be decided.

    def begin(
        self,
        network: Begin,
        interests: Iterable[tuple[Side, Interest]],
        numbers: Mapping[Dz, int] | None = None,
        *,
        assign: bool = True,
    ) -> None:
        """Decide for this network, with all that is in force there; what was asked for before is part of that.

        `numbers` are those that partitions had under others before. With `assign`, those who are there own them.
        """
        before = self._aims.rows() if self._before is None else self._before
        numbered = {name: number for number, name in enumerate(network.topology.switches)}
        numbers = numbers or {dz: each.number for dz, each in self.partitions.items()}
        above = max(numbers.values(), default=0)
        loads = {dz: each.taken for dz, each in self.partitions.items()}
        self._network, self.trees = network, network.trees
        self._division = Division(tuple(dz for dz, _ in network.trees))
        self._shares = RoomShares(network.room or {})
        words = words_for(network.topology)
        stay = {old: numbered[name] for old, name in enumerate(self._switches) if name in numbered}
        self._before, self._aims = renumbered(before, stay, words), TableAims(words)
        self._switches, self._number = network.topology.switches, numbered
        self.partitions = {
            dz: _Partition(dz, numbers.get(dz, above), taken=loads.get(dz, 0.0))
            for dz in self._division.partitions
        }
        for side, interest in interests:
            for dz, cut in self._division.cut(interest.dz):
                part = RequestPart(True, side, interest.id, interest.endpoint, dz, cut)
                self.partitions[dz].held[part.key] = part
        for key in self._parts_left:  # they are in force, or ended, as all that was asked for
            self._tell(key)
        self._parts_left.clear()
        self._open.clear()
        self._refused.clear()
        self._tried_again.clear()
        self._retry.clear()
        self._giving, self._lowering, self._raises = {}, set(), {}
        self._leaving.clear()
        for member in self._members.values():
            member.waiting.clear()
            for at, sent in enumerate(member.sent):  # what is answered to these counts no more
                member.sent[at] = _Sent(sent.serial, Ping(), ())
            member.slices = 0
        names = list(self._members)
        for name in names:
            self._send_begin(name)
        if assign:
            self.assign()

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> None:
        """Interests come and go, in this order."""
        touched: dict[str, None] = {}
        for adding, side, interest in parts:
            key = (side, interest.id)
            cuts = self._division.cut(interest.dz)
            if not cuts:
                self._tell(key)
                continue
            self._parts_left[key] = self._parts_left.get(key, 0) + len(cuts)
            for dz, cut in cuts:
                partition = self.partitions[dz]
                part = RequestPart(adding, side, interest.id, interest.endpoint, dz, cut)
                partition.queue.append((self._unit(), part))
                partition.taken += 1
                partition.spanned += cut.length[0] == dz.length
                if partition.owner is not None:
                    self._members[partition.owner].waiting[dz] = None
                    touched[partition.owner] = None
        for name in touched:
            self._pump(name)

    def rewire(self, trees: TreeMap) -> None:
        """The trees of the same partitions are others."""
        assert self._network is not None
        self.trees = trees
        network = self._network
        self._network = Begin(network.topology, trees, network.tables, network.room, network.events)
        for name in self._members:
            self._send(name, Rewire(trees), (self._unit(),))
        self._rewired = self._last

    def bound(self, switch: str, room: int | None) -> None:
        """At a switch there is room for so many entries in all; None for any number."""
        if room is None:
            self._shares.lift(switch)
            for name in self._members:
                self._send(name, Bound({switch: None}), (self._unit(),))
        else:
            self._shares.room[switch] = room
            self._share_out(anew=True)

    # Who decides.

    def joined(self, name: str) -> None:
        """A configurator is there; it owns nothing until partitions are assigned."""
        assert name not in self._members, name
        self._members[name] = _Member(name)
        if self._network is not None:
            self._send_begin(name)

    def left(self, name: str) -> None:
        """A configurator is gone, or does not count any more: what it was at is done by others."""
        member = self._members.pop(name)
        back: dict[Dz, list[tuple[int, RequestPart]]] = {}
        for sent in member.sent:
            if isinstance(sent.order, Take):
                for unit, part in zip(sent.units, sent.order.parts, strict=True):
                    back.setdefault(part.partition, []).append((unit, part))
            else:
                self._close(sent.units)
        for partition in self.partitions.values():
            if partition.owner == name:
                self._leaving.discard(partition.dz)
                partition.room = partition.room or self._entries(partition.dz)
                partition.owner, partition.ready, partition.under_way = None, False, 0
                partition.queue.extendleft(reversed(back.get(partition.dz, [])))
            if partition.going_to == name:
                partition.going_to = None
                self._await(partition)
        self._shares.left(name)
        for partition in self._giving.pop(name, ()):
            partition.owner = None
        self._raises.pop(name, None)
        self._lowering.discard(name)
        if self._members:
            self.assign()

    def assign(self) -> None:
        """Give partitions that nobody owns to those who have least to do."""
        if not self._members:
            return
        owners = {dz: each.owner or "" for dz, each in self.partitions.items()}
        to = taken_over(owners, self.weights, list(self._members))
        for dz, name in to.items():
            if self.partitions[dz].owner is None:
                self._give(self.partitions[dz], name)
        self._share_out()

    def level(self, name: str) -> None:
        """Let a configurator that came late own as much as the others, by what partitions weigh."""
        weights = self.weights
        loads = dict.fromkeys(self._members, 0.0)
        for dz, each in self.partitions.items():
            if (owner := each.going_to or each.owner) is not None:
                loads[owner] += weights[dz]
        fair = sum(loads.values()) / len(loads)
        for giver in sorted(loads, key=lambda name: -loads[name]):
            own = [dz for dz, each in self.partitions.items() if each.owner == giver and not each.going_to]
            for dz in sorted(own, key=lambda dz: -weights[dz]):
                gap = min(loads[giver] - fair, fair - loads[name])
                if giver != name and weights[dz] <= gap:
                    loads[giver] -= weights[dz]
                    loads[name] += weights[dz]
                    self.migrate(dz, name)

    def migrate(self, dz: Dz, name: str) -> None:
        """Have a partition owned by another, once what is under way there is decided; only that one waits."""
        partition = self.partitions[dz]
        if name not in self._members:
            raise BadInput(f"there is no configurator {name!r}")
        if partition.owner == name or partition.owner is None or not partition.ready:
            return
        partition.going_to = name
        self._go(partition)
        self._share_out()

    def ping(self, name: str) -> None:
        """Have a configurator say that it is there, unless it owes an answer anyway."""
        if not self._members[name].sent:
            self._send(name, Ping(), ())

    # What they have decided.

    def answered(self, name: str, serial: int, answer: Answer) -> None:
        """A configurator answers the oldest order that it has not answered yet."""
        member = self._members[name]
        if not member.sent or member.sent[0].serial != serial:
            raise BadInput(f"configurator {name} answers what it was not asked ({serial})")
        sent = member.sent.popleft()
        if isinstance(sent.order, Ping):
            return
        self._check(name, answer)
        member.visits += answer.visits
        if answer.needs:
            self._shares.need(name, answer.needs, answer.waste)
        match sent.order:
            case Own(numbers=numbers):
                self._taken_up(name, numbers, answer.rows)
            case Take():
                member.slices -= 1
                self._follow(name, answer.rows)
                self._served(member, sent, sent.order, answer.refused)
            case Disown(partition=dz):
                self._follow(name, answer.rows)
                self._given_up(name, dz, answer.given)
            case _:
                self._follow(name, answer.rows)
        if not isinstance(sent.order, Take):
            self._close(sent.units)
        if isinstance(sent.order, Bound) and name in self._lowering:
            self._lowering.discard(name)
            if self._planned == self._given:
                self._raise()
            else:  # more is to be handed over by now
                self._share_out()
        if answer.needs or self._giving:  # a partition may have waited for this answer, to go over to another
            self._share_out()
        if name in self._members:
            self._pump(name)

    def _check(self, name: str, answer: Answer) -> None:
        """Raise where an answer is about no tables of this network."""
        rows, columns = answer.rows, C_PORTS + 2 * self._aims.words
        fits = rows.dtype == np.uint64 and rows.ndim == 2 and rows.shape[1] == columns
        if not fits or (len(rows) and int(rows[:, C_TRIE].max()) >= len(self._switches)):
            raise BadInput(f"configurator {name} answers what is about no tables of this network")
        if not self._number.keys() >= answer.needs.keys():
            raise BadInput(f"configurator {name} needs room at a switch that is not there")

    def orders(self) -> list[tuple[str, int, Order]]:
        """What is to be sent, to whom, under which number; each is told once."""
        found, self._orders = self._orders, []
        return found

    def changes(self) -> dict[str, list[Change]]:
        """What tables have to change by; each is told once."""
        return changes_of(self.change_rows(), self._switches)

    def change_rows(self) -> Rows:
        """The same as rows."""
        found, self._changes = self._changes, []
        if len(found) == 1:
            return found[0]
        return net(np.concatenate((no_rows(self._aims.words), *found)))

    def decided(self) -> list[tuple[Key, str | None]]:
        """The requests that are decided, and why one was refused; each is told once."""
        found, self._decided = self._decided, []
        return found

    # What there is to know.

    @property
    def known(self) -> bool:
        """Whether it is known what tables should be: each partition was taken up since all began."""
        return self._before is None and self._network is not None

    @property
    def ready(self) -> bool:
        """Whether every partition is owned, and its tables are known."""
        return self.known and all(each.ready for each in self.partitions.values())

    @property
    def idle(self) -> bool:
        """Whether all that was asked for is decided."""
        return not self._open and self.ready

    @property
    def undecided(self) -> int:
        """How many parts and other orders are not decided yet."""
        return len(self._open)

    @property
    def ticket(self) -> int:
        """A number for all that was asked for so far."""
        return self._last

    def passed(self, ticket: int) -> bool:
        """Whether all that was asked for up to there is decided."""
        return self.ready and (not self._open or next(iter(self._open)) > ticket)

    @property
    def rewiring(self) -> bool:
        """Whether tables for the trees of now are yet to be decided."""
        return not self.passed(self._rewired)

    def aim(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, as far as it is decided."""
        return self._known_aims.of(self._number[switch], self._switches)

    def size(self, switch: str) -> int:
        return self._known_aims.size(self._number[switch])

    @property
    def _known_aims(self) -> TableAims:
        if self._before is None:
            return self._aims
        found = TableAims(words_of(self._before))
        found.add(self._before)
        return found

    @property
    def waste(self) -> dict[str, float]:
        """The unwanted copies per event that each coarsened table is expected to send."""
        return self._shares.waste

    @property
    def members(self) -> list[str]:
        return list(self._members)

    @property
    def owners(self) -> dict[Dz, tuple[str | None, int]]:
        """Who owns each partition, and under which number."""
        return {dz: (each.owner, each.number) for dz, each in self.partitions.items()}

    @property
    def queues(self) -> dict[str, dict[Dz, int]]:
        """How many parts wait for each configurator, or are under way, by partition."""
        found: dict[str, dict[Dz, int]] = {name: {} for name in self._members}
        for dz, each in self.partitions.items():
            if each.owner is not None:
                found[each.owner][dz] = len(each.queue) + each.under_way
        return found

    @property
    def weights(self) -> dict[Dz, float]:
        """What each partition weighs: requests of late, and a little for what is in force."""
        return {dz: each.weight for dz, each in self.partitions.items()}

    @property
    def requests(self) -> dict[Dz, float]:
        """How many requests of late have a part in each partition."""
        return {dz: each.taken for dz, each in self.partitions.items()}

    @property
    def spanning(self) -> dict[Dz, float]:
        """How many of them cover it wholly: each costs an entry in every partition that it covers."""
        return {dz: each.spanned for dz, each in self.partitions.items()}

    def work(self, name: str) -> tuple[int, int]:
        """How many parts a configurator has decided on, and how many regions it visited for that."""
        return self._members[name].answered, self._members[name].visits

    def oldest(self, name: str) -> tuple[int, Order] | None:
        """The order that a configurator owes an answer to, and its number."""
        sent = self._members[name].sent
        return (sent[0].serial, sent[0].order) if sent else None

    def fade(self, share: float) -> None:
        """Have requests count for less as time goes by."""
        for partition in self.partitions.values():
            partition.taken *= share
            partition.spanned *= share

    # Orders.

    def _send(self, name: str, order: Order, units: tuple[int, ...]) -> None:
        member = self._members[name]
        serial = next(member.serials)
        member.sent.append(_Sent(serial, order, units))
        self._orders.append((name, serial, order))

    def _send_begin(self, name: str) -> None:
        network = self._network
        assert network is not None and self.trees is not None
        none = dict.fromkeys(self._shares.room, 0)  # until it owns something
        self._shares.grant(name, none)
        room = none if self._shares.room else None
        self._send(name, Begin(network.topology, self.trees, network.tables, room, network.events), ())

    def _give(self, partition: _Partition, name: str) -> None:
        """Have a partition owned by a configurator, as soon as there is room for it."""
        partition.number += 1
        partition.owner, partition.ready, partition.going_to = name, False, None
        self._giving.setdefault(name, []).append(partition)

    def _go(self, partition: _Partition) -> None:
        """Let a partition go over to another configurator if nothing of it is under way."""
        if partition.going_to is None or partition.under_way or not partition.ready:
            return
        assert partition.owner is not None, "somebody has taken it up"
        partition.ready = False
        self._leaving.add(partition.dz)
        self._members[partition.owner].waiting.pop(partition.dz, None)
        self._send(partition.owner, Disown(partition.dz), (self._unit(),))

    def _given_up(self, name: str, dz: Dz, room: Mapping[str, int]) -> None:
        """A configurator has given a partition up, with the room that it took."""
        share = self._shares.of(name)
        self._shares.grant(name, {switch: share[switch] - entries for switch, entries in room.items()})
        self._leaving.discard(dz)
        partition = self.partitions[dz]
        partition.room, partition.owner = dict(room), None
        if partition.going_to is not None:
            self.migrations += 1
            self._give(partition, partition.going_to)
            self._share_out()
        else:
            self.assign()  # who was to have it is gone

    def _pump(self, name: str) -> None:
        """Send a configurator what waits for it, in slices."""
        member = self._members[name]
        while member.slices < AT_ONCE and member.waiting:
            numbers: dict[Dz, int] = {}
            parts: list[RequestPart] = []
            units: list[int] = []
            for dz in list(member.waiting):
                partition = self.partitions[dz]
                waits = not partition.ready or partition.going_to is not None or dz in self._retry
                if waits or partition.owner != name:
                    del member.waiting[dz]  # it comes back when it is ready
                    continue
                queue = partition.queue
                while queue and len(parts) < self._slice:
                    unit, part = queue.popleft()
                    parts.append(part)
                    units.append(unit)
                    partition.under_way += 1
                    numbers[dz] = partition.number
                if queue:
                    break
                del member.waiting[dz]
            if parts:
                member.slices += 1
                self._send(name, Take(numbers, parts), tuple(units))

    def _await(self, partition: _Partition) -> None:
        """What waits in a partition may be sent to its owner."""
        if partition.queue and partition.owner is not None:
            self._members[partition.owner].waiting[partition.dz] = None
            self._pump(partition.owner)

    # Room.

    def _share_out(self, anew: bool = False) -> None:
        """Have partitions given to those who get them, and room shared out anew where that pays, or has to be."""
        self._anew |= anew
        if self._lowering or self._leaving or not self._members:
            return  # first things first
        if self._shares.room:
            owned, taken = self._owned()
            first = any(not each.room for some in self._giving.values() for each in some)
            if self._owning:  # nobody knows yet what is needed there
                if first:
                    return
            elif self._anew or first or self._shares.tight(owned, taken):
                self._anew = False
                self._arrange(self._shares.targets(owned, self._coming(), taken))
        self._raise()

    @property
    def _owning(self) -> bool:
        """Whether partitions are being taken up."""
        return any(isinstance(sent.order, Own) for member in self._members.values() for sent in member.sent)

    def _owned(self) -> tuple[dict[str, int], dict[str, int]]:
        """In how many of their partitions configurators have something; and the room that others bring with them."""
        owned = dict.fromkeys(self._members, 0)
        for partition in self.partitions.values():
            if partition.owner is not None and (partition.held or partition.queue or partition.under_way):
                owned[partition.owner] += 1
        taken: dict[str, int] = {}
        for partition in (each for some in self._giving.values() for each in some):
            for switch, entries in partition.room.items():
                taken[switch] = taken.get(switch, 0) + entries
        return owned, taken

    def _entries(self, dz: Dz) -> dict[str, int]:
        """How many entries of a partition there are at each switch whose room is bounded; none while all begins."""
        if not self._shares.room or self._before is not None:
            return {}
        rows = self._aims.rows()
        found = rows[self._in([dz], rows)][:, C_TRIE].astype(np.int64)
        sizes = np.bincount(found, minlength=len(self._switches)).tolist()
        return {switch: sizes[self._number[switch]] for switch in self._shares.room}

    def _coming(self) -> dict[str, dict[str, int]]:
        """A guess at the entries of partitions that bring no room, by whom they are given to and switch."""
        found: dict[str, dict[str, int]] = {}
        for name, partitions in self._giving.items():
            held = sum(len(partition.held) for partition in partitions if not partition.room)
            found[name] = dict.fromkeys(self._shares.room, held)
        return found

    @property
    def _given(self) -> set[tuple[Dz, int]]:
        return {(partition.dz, partition.number) for some in self._giving.values() for partition in some}

    def _arrange(self, targets: Mapping[str, Mapping[str, int]]) -> None:
        self._raises, self._planned = {}, self._given
        for name, room in targets.items():
            has = self._shares.of(name)
            less = {switch: entries for switch, entries in room.items() if entries < has.get(switch, 0)}
            more = {switch: entries for switch, entries in room.items() if entries > has.get(switch, 0)}
            if less:
                self._shares.grant(name, less)
                self._lowering.add(name)
                self._send(name, Bound(less), (self._unit(),))
            if more:
                self._raises[name] = more

    def _raise(self) -> None:
        """Once all who had to have made do with less: hand out what is free, and the partitions that waited for it."""
        if self._lowering or self._leaving:
            return
        raises, self._raises = self._raises, {}
        giving, self._giving = self._giving, {}
        for name in raises.keys() | giving.keys():
            room = dict(raises.get(name, {}))
            share = self._shares.of(name)
            for partition in giving.get(name, ()):
                for switch, entries in partition.room.items():
                    room[switch] = room.get(switch, share.get(switch, 0)) + entries
            self._shares.grant(name, room)
            if name in giving:
                numbers = {partition.dz: partition.number for partition in giving[name]}
                parts = [part for partition in giving[name] for part in partition.held.values()]
                self._send(name, Own(numbers, parts, room), (self._unit(),))
            else:
                self._send(name, Bound(room), (self._unit(),))
        retry, self._retry = self._retry, set()
        for dz in retry:
            self._await(self.partitions[dz])

    # Answers.

    def _taken_up(self, name: str, numbers: Mapping[Dz, int], rows: Rows) -> None:
        """A configurator has decided on all tables of partitions; they replace those of the owner before."""
        owned = []
        for dz, number in numbers.items():
            partition = self.partitions.get(dz)
            if partition is None or (partition.owner, partition.number) != (name, number):
                self.stale += 1
                continue
            owned.append(dz)
        theirs = self._in(list(numbers), rows)
        self._follow(name, rows[~theirs])
        before = self._aims.rows()
        changes = difference(before[self._in(owned, before)], installed(rows[self._in(owned, rows)]))
        self._ask(changes)
        for dz in owned:
            self.partitions[dz].ready, self.partitions[dz].room = True, {}
        self._complete()
        for dz in owned:
            self._await(self.partitions[dz])

    def _complete(self) -> None:
        """Once all partitions are taken up, tell how tables differ from what they should have held before."""
        if self._before is None or not all(each.ready for each in self.partitions.values()):
            return
        before, self._before = self._before, None
        self._changes = [changes] if len(changes := difference(before, self._aims.rows())) else []
        held_back, self._held_back = self._held_back, []
        for key, refused in held_back:
            if key not in self._parts_left:
                self._decided.append((key, refused))
            elif refused is not None:  # more was asked of it meanwhile: it is told when that is decided
                self._refused[key] = refused
        self._share_out()

    def _follow(self, name: str, rows: Rows) -> None:
        """Take over what an owner has decided; what others say of a partition does not count."""
        if not len(rows):
            return
        mine = [
            dz
            for dz, each in self.partitions.items()
            if each.owner == name and (each.ready or dz in self._leaving)
        ]
        counts = self._in(mine, rows)
        if not counts.all():
            self.stale += int((~counts).sum())
            rows = rows[counts]
        self._ask(rows)

    def _ask(self, rows: Rows) -> None:
        """Have tables follow; while all begins anew, that is told in the end."""
        if len(rows):
            self._aims.add(rows)
            if self._before is None:
                self._changes.append(rows)

    def _in(self, some: Sequence[Dz], rows: Rows) -> NDArray[np.bool_]:
        """Which rows are about entries of some partitions."""
        if len(some) == len(self.partitions):
            return np.ones(len(rows), np.bool_)
        chosen = set(some)
        flags = np.array([dz in chosen for dz in self._division.partitions])
        return flags[places(rows, self._division.partitions)]

    def _served(self, member: _Member, sent: _Sent, order: Take, refused: Mapping[int, str]) -> None:
        again: list[tuple[int, RequestPart]] = []
        for at, (unit, part) in enumerate(zip(sent.units, order.parts, strict=True)):
            partition = self.partitions[part.partition]
            partition.under_way -= 1
            if at in refused and self._worth_again(part, order.parts[at + 1 :], member):
                self._tried_again.add(part.key)
                again.append((unit, part))  # others may have room to spare
                continue
            self._tried_again.discard(part.key)
            member.answered += 1
            if at in refused:
                self._refused[part.key] = refused[at]
            elif part.adding:
                partition.held[part.key] = part
            else:
                partition.held.pop(part.key, None)
            self._close((unit,))
            self._parts_left[part.key] -= 1
            if not self._parts_left[part.key]:
                del self._parts_left[part.key]
                self._tell(part.key, self._refused.pop(part.key, None))
        for unit, part in reversed(again):
            self.partitions[part.partition].queue.appendleft((unit, part))
            self._retry.add(part.partition)
        if again:
            self._share_out()
        for dz in order.numbers:
            self._go(self.partitions[dz])

    def _worth_again(self, part: RequestPart, later: Sequence[RequestPart], member: _Member) -> bool:
        """Whether one that was refused may be tried once more, when others have given up room that they can spare.

        It must not come after what ends it, and that may be with its owner already.
        """
        if len(self._members) < 2 or part.key in self._tried_again:
            return False
        slices = [later, *(sent.order.parts for sent in member.sent if isinstance(sent.order, Take))]
        return not any(other.key == part.key for some in slices for other in some)

    def _tell(self, key: Key, refused: str | None = None) -> None:
        (self._decided if self._before is None else self._held_back).append((key, refused))

    # Units of work.

    def _unit(self) -> int:
        self._last = next(self._units)
        self._open[self._last] = None
        return self._last

    def _close(self, units: Sequence[int]) -> None:
        for unit in units:
            self._open.pop(unit, None)
