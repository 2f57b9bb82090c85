"""Which configurator owns which partition, what waits for it, and what they have decided; it performs nothing.

Whoever runs it tells it who `joined` and `left`, what has to be decided (`take`, `rewire`, `begin`) and what was
`answered`; it then sends the orders that are due (`orders`), has the tables follow the changes (`changes`), and tells
those who wait that what they asked for is decided (`decided`).

What keeps it right: a partition has one owner at a time, under a number that grows with each; what an owner decides
counts only while the partition is its own. Interests that it has answered for are `held`, all others wait in a queue;
so a new owner is given what is held and then what waits, in their order, and nothing is lost, repeated or passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flowsieve.control.partitions.assignment import taken_over
from flowsieve.control.partitions.division import Division
from flowsieve.control.partitions.handover import Handover
from flowsieve.control.partitions.orders import (
    Answer,
    Begin,
    Bound,
    Disown,
    Order,
    Own,
    Ping,
    RequestPart,
    Rewire,
    Take,
)
from flowsieve.control.partitions.partition import Member, Partition, Sent
from flowsieve.control.partitions.pool_view import PoolView
from flowsieve.control.partitions.room_shares import RoomShares
from flowsieve.control.partitions.table_rows import Rows, changes_of
from flowsieve.control.partitions.undecided import Verdict
from flowsieve.errors import BadInput
from flowsieve.flow.diff import Change
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side, words_for
from flowsieve.index.dz import Dz
from flowsieve.network.tree import TreeMap

SLICE = 500  # parts that are decided as one difference
AT_ONCE = 2  # slices that a configurator has before it, so that it never waits for the next


class ConfiguratorPool(PoolView):
    """Partitions, and configurators that own them; see above."""

    def __init__(self, slice_size: int = SLICE) -> None:
        super().__init__()
        self.migrations = 0
        self.stale = 0  # changes that came from others than the owner
        self.trees: TreeMap | None = None
        self._slice = slice_size
        self._network: Begin | None = None
        self._division = Division.even(1)
        self._tried_again: set[tuple[Side, str]] = set()  # requests that were refused once
        self._orders: list[tuple[str, int, Order]] = []

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
        numbers = numbers or {dz: each.number for dz, each in self.partitions.items()}
        above = max(numbers.values(), default=0)
        loads = {dz: each.taken for dz, each in self.partitions.items()}
        self._network, self.trees = network, network.trees
        self._division = Division(tuple(dz for dz, _ in network.trees))
        division, switches = self._division.partitions, network.topology.switches
        self._tables.begin(switches, division, words_for(network.topology))
        self.partitions = {
            dz: Partition(dz, numbers.get(dz, above), taken=loads.get(dz, 0.0)) for dz in division
        }
        for side, interest in interests:
            for dz, cut in self._division.cut(interest.dz):
                part = RequestPart(True, side, interest.id, interest.endpoint, dz, cut)
                self.partitions[dz].held[part.key] = part
        self._undecided.all_in_force()
        self._tried_again.clear()
        self._handover = self._new_handover(RoomShares(network.room or {}))
        for member in self._members.values():
            member.waiting.clear()
            for at, sent in enumerate(member.sent):  # what is answered to these counts no more
                member.sent[at] = Sent(sent.serial, Ping(), ())
            member.slices = 0
        for name in self._members:
            self._send_begin(name)
        if assign:
            self.assign()

    def _new_handover(self, shares: RoomShares) -> Handover:
        return Handover(shares, self._tables, self.partitions, self._members, self._send_one, self._await)

    def take(self, parts: Iterable[tuple[bool, Side, Interest]]) -> None:
        """Interests come and go, in this order."""
        touched: dict[str, None] = {}
        for adding, side, interest in parts:
            key = (side, interest.id)
            cuts = self._division.cut(interest.dz)
            if not cuts:
                self._undecided.tell(key, hold_back=self._tables.beginning)
                continue
            self._undecided.expect(key, len(cuts))
            for dz, cut in cuts:
                partition = self.partitions[dz]
                part = RequestPart(adding, side, interest.id, interest.endpoint, dz, cut)
                partition.queue.append((self._undecided.unit(), part))
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
            self._send_one(name, Rewire(trees))
        self._rewired = self._undecided.last

    def bound(self, switch: str, room: int | None) -> None:
        """At a switch there is room for so many entries in all; None for any number."""
        if room is None:
            self._handover.lift(switch)
        else:
            self._handover.bound(switch, room)

    # Who decides.

    def joined(self, name: str) -> None:
        """A configurator is there; it owns nothing until partitions are assigned."""
        assert name not in self._members, name
        self._members[name] = Member(name)
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
                self._undecided.close(sent.units)
        self._handover.left(name)
        for partition in self.partitions.values():
            if partition.owner == name:
                partition.owner, partition.ready, partition.under_way = None, False, 0
                partition.queue.extendleft(reversed(back.get(partition.dz, [])))
            if partition.going_to == name:
                partition.going_to = None
                self._await(partition)
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
                self._handover.give(self.partitions[dz], name)
        self._handover.share_out()

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
        self._handover.share_out()

    def ping(self, name: str) -> None:
        """Have a configurator say that it is there, unless it owes an answer anyway."""
        if not self._members[name].sent:
            self._send(name, Ping(), ())

    def fade(self, share: float) -> None:
        """Have requests count for less as time goes by."""
        for partition in self.partitions.values():
            partition.taken *= share
            partition.spanned *= share

    # What they have decided.

    def answered(self, name: str, serial: int, answer: Answer) -> None:
        """A configurator answers the oldest order that it has not answered yet."""
        member, handover = self._members[name], self._handover
        if not member.sent or member.sent[0].serial != serial:
            raise BadInput(f"configurator {name} answers what it was not asked ({serial})")
        sent = member.sent.popleft()
        if isinstance(sent.order, Ping):
            return
        self._check(name, answer)
        member.visits += answer.visits
        if answer.needs:
            handover.shares.need(name, answer.needs, answer.waste)
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
            self._undecided.close(sent.units)
        if isinstance(sent.order, Bound):
            handover.followed(name)
        if answer.needs or handover.waits:  # it may have waited for this answer
            handover.share_out()
        if name in self._members:
            self._pump(name)

    def _check(self, name: str, answer: Answer) -> None:
        """Raise where an answer is about no tables of this network."""
        if not self._tables.fits(answer.rows):
            raise BadInput(f"configurator {name} answers what is about no tables of this network")
        if not self._tables.number.keys() >= answer.needs.keys():
            raise BadInput(f"configurator {name} needs room at a switch that is not there")

    def orders(self) -> list[tuple[str, int, Order]]:
        """What is to be sent, to whom, under which number; each is told once."""
        found, self._orders = self._orders, []
        return found

    def changes(self) -> dict[str, list[Change]]:
        """What tables have to change by; each is told once."""
        return changes_of(self.change_rows(), self._tables.switches)

    def change_rows(self) -> Rows:
        """The same as rows."""
        return self._tables.change_rows()

    def decided(self) -> list[Verdict]:
        """The requests that are decided, and why one was refused; each is told once."""
        return self._undecided.told()

    # Orders.

    def _send(self, name: str, order: Order, units: tuple[int, ...]) -> None:
        member = self._members[name]
        serial = next(member.serials)
        member.sent.append(Sent(serial, order, units))
        self._orders.append((name, serial, order))

    def _send_one(self, name: str, order: Order) -> None:
        """Send an order that is a unit of work."""
        self._send(name, order, (self._undecided.unit(),))

    def _send_begin(self, name: str) -> None:
        network = self._network
        assert network is not None and self.trees is not None
        room = self._handover.joined(name) or None
        self._send(name, Begin(network.topology, self.trees, network.tables, room, network.events), ())

    def _go(self, partition: Partition) -> None:
        """Let a partition go over to another configurator if nothing of it is under way."""
        if partition.going_to is None or partition.under_way or not partition.ready:
            return
        assert partition.owner is not None, "somebody has taken it up"
        partition.ready = False
        self._handover.leaving.add(partition.dz)
        self._members[partition.owner].waiting.pop(partition.dz, None)
        self._send_one(partition.owner, Disown(partition.dz))

    def _given_up(self, name: str, dz: Dz, room: Mapping[str, int]) -> None:
        """A configurator has given a partition up, with the room that it took."""
        partition, handover = self.partitions[dz], self._handover
        handover.given_up(name, dz, room)
        partition.owner = None
        if partition.going_to is not None:
            self.migrations += 1
            handover.give(partition, partition.going_to)
            handover.share_out()
        else:
            self.assign()  # who was to have it is gone

    def _pump(self, name: str) -> None:
        """Send a configurator what waits for it, in slices."""
        member, retry = self._members[name], self._handover.retry
        while member.slices < AT_ONCE and member.waiting:
            numbers: dict[Dz, int] = {}
            parts: list[RequestPart] = []
            units: list[int] = []
            for dz in list(member.waiting):
                partition = self.partitions[dz]
                waits = not partition.ready or partition.going_to is not None or dz in retry
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

    def _await(self, partition: Partition) -> None:
        """What waits in a partition may be sent to its owner."""
        if partition.queue and partition.owner is not None:
            self._members[partition.owner].waiting[partition.dz] = None
            self._pump(partition.owner)

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
        theirs = self._tables.within(numbers.keys(), rows)
        self._follow(name, rows[~theirs])
        self._tables.replace(set(owned), rows)
        for dz in owned:
            self.partitions[dz].ready, self.partitions[dz].room = True, {}
        self._complete()
        for dz in owned:
            self._await(self.partitions[dz])

    def _complete(self) -> None:
        """Once all partitions are taken up, tell how tables differ from what they should have held before."""
        if self._tables.beginning and all(each.ready for each in self.partitions.values()):
            self._tables.complete()
            self._undecided.release()
            self._handover.share_out()

    def _follow(self, name: str, rows: Rows) -> None:
        """Take over what an owner has decided; what others say of a partition does not count."""
        leaving = self._handover.leaving
        mine = {
            dz for dz, each in self.partitions.items() if each.owner == name and (each.ready or dz in leaving)
        }
        self.stale += self._tables.follow(mine, rows)

    def _served(self, member: Member, sent: Sent, order: Take, refused: Mapping[int, str]) -> None:
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
            if at not in refused:
                if part.adding:
                    partition.held[part.key] = part
                else:
                    partition.held.pop(part.key, None)
            self._undecided.part(unit, part.key, refused.get(at), self._tables.beginning)
        for unit, part in reversed(again):
            self.partitions[part.partition].queue.appendleft((unit, part))
            self._handover.retry.add(part.partition)
        if again:
            self._handover.share_out()
        for dz in order.numbers:
            self._go(self.partitions[dz])

    def _worth_again(self, part: RequestPart, later: Sequence[RequestPart], member: Member) -> bool:
        """Whether one that was refused may be tried once more, when others have given up room that they can spare.

        It must not come after what ends it, and that may be with its owner already.
        """
        if len(self._members) < 2 or part.key in self._tried_again:
            return False
        slices = [later, *(sent.order.parts for sent in member.sent if isinstance(sent.order, Take))]
        return not any(other.key == part.key for some in slices for other in some)
