"""Partitions go over from one configurator to another, and room with them, so that no table is ever too full.

What has a new owner waits until there is room for it: whoever has to make do with less follows first (`Bound`), then
what is free is handed out together with the partitions that waited for it (`Own`). A partition that was given up brings
the room that it took. While somebody gives up a partition or follows, nothing else is handed out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from flowsieve.control.partitions.decided_tables import DecidedTables
from flowsieve.control.partitions.orders import Bound, Order, Own
from flowsieve.control.partitions.partition import Member, Partition
from flowsieve.control.partitions.room_shares import RoomShares
from flowsieve.index.dz import Dz

Send = Callable[[str, Order], None]


class Handover:
    """The partitions of one network that are on their way to an owner, and everybody's share of its room.

    `send` gives a configurator an order; `again` has what waits in a partition sent to its owner.
    """

    def __init__(
        self,
        shares: RoomShares,
        tables: DecidedTables,
        partitions: Mapping[Dz, Partition],
        members: Mapping[str, Member],
        send: Send,
        again: Callable[[Partition], None],
    ) -> None:
        self.shares = shares
        self.leaving: set[Dz] = set()  # partitions that their owners have yet to give up
        self.retry: set[Dz] = set()  # partitions in which something waits for more room
        self._tables, self._partitions, self._members = tables, partitions, members
        self._send, self._again = send, again
        self._giving: dict[str, list[Partition]] = {}  # partitions that wait for room where they go to
        self._lowering: set[str] = set()  # who has yet to make do with less
        self._raises: dict[str, dict[str, int]] = {}  # who gets more then
        self._anew = False  # whether a switch turned out to have other room
        self._planned: set[tuple[Dz, int]] = set()  # the partitions, by number, that this is made for

    @property
    def waits(self) -> bool:
        """Whether partitions wait for room where they go to, or room has to be shared out anew."""
        return bool(self._giving) or self._anew

    def give(self, partition: Partition, name: str) -> None:
        """Have a partition owned by a configurator, as soon as there is room for it."""
        partition.number += 1
        partition.owner, partition.ready, partition.going_to = name, False, None
        self._giving.setdefault(name, []).append(partition)

    def given_up(self, name: str, dz: Dz, room: Mapping[str, int]) -> None:
        """A configurator has given a partition up, with the room that it took."""
        share = self.shares.of(name)
        left = {switch: share[switch] - entries for switch, entries in room.items() if switch in share}
        self._anew |= min(left.values(), default=0) < 0  # it had more there than its share, for want of room
        self.shares.grant(name, {switch: max(0, entries) for switch, entries in left.items()})
        self.leaving.discard(dz)
        bounded = self.shares.room  # of a switch that is not any more, there is room for all
        self._partitions[dz].room = {switch: entries for switch, entries in room.items() if switch in bounded}

    def bound(self, switch: str, room: int) -> None:
        """A switch has room for so many entries in all."""
        self.shares.room[switch] = room
        self.share_out(anew=True)

    def lift(self, switch: str) -> None:
        """A switch has room for any number of entries."""
        self.shares.lift(switch)
        for partition in self._partitions.values():
            partition.room.pop(switch, None)
        for name in self._members:
            self._raises.get(name, {}).pop(switch, None)
            self._send(name, Bound({switch: None}))

    def joined(self, name: str) -> dict[str, int]:
        """A configurator is there, and has no room until it owns something."""
        none = dict.fromkeys(self.shares.room, 0)
        self.shares.grant(name, none)
        return none

    def left(self, name: str) -> None:
        """A configurator is gone. What it had goes on with the room that it takes."""
        for partition in self._partitions.values():
            if partition.owner == name:
                self.leaving.discard(partition.dz)
                partition.room = partition.room or self._tables.entries(partition.dz, self.shares.room.keys())
        self.shares.left(name)
        for partition in self._giving.pop(name, ()):
            partition.owner = None
        self._raises.pop(name, None)
        self._lowering.discard(name)

    def followed(self, name: str) -> None:
        """A configurator has followed a bound."""
        if name not in self._lowering:
            return
        self._lowering.discard(name)
        if self._planned == self._given:
            self._raise()
        else:  # more is to be handed over by now
            self.share_out()

    def share_out(self, anew: bool = False) -> None:
        """Have partitions given to those who get them, and room shared out anew where that pays, or has to be."""
        self._anew |= anew
        if self._lowering or self.leaving or not self._members:
            return  # first things first
        if self.shares.room:
            owned, taken = self._owned()
            first = any(not each.room for some in self._giving.values() for each in some)
            if self._owning:  # nobody knows yet what is needed there
                if first:
                    return
            else:
                targets = self.shares.targets(owned, self._coming(), taken, self._coarsest)
                if self._anew or first or self.shares.tight(targets, taken):
                    self._anew = False
                    self._arrange(targets)
        self._raise()

    @property
    def _owning(self) -> bool:
        """Whether partitions are being taken up."""
        return any(isinstance(sent.order, Own) for member in self._members.values() for sent in member.sent)

    def _owned(self) -> tuple[dict[str, int], dict[str, int]]:
        """In how many of their partitions configurators have something; and the room that others bring with them."""
        owned = dict.fromkeys(self._members, 0)
        for partition in self._partitions.values():
            if partition.owner is not None and not partition.empty:
                owned[partition.owner] += 1
        taken: dict[str, int] = {}
        for partition in (each for some in self._giving.values() for each in some):
            for switch, entries in partition.room.items():
                taken[switch] = taken.get(switch, 0) + entries
        return owned, taken

    def _coming(self) -> dict[str, dict[str, int]]:
        """A guess at the entries of partitions that bring no room, by whom they are given to and switch."""
        found: dict[str, dict[str, int]] = {}
        for name, partitions in self._giving.items():
            held = sum(len(partition.held) for partition in partitions if not partition.room)
            found[name] = dict.fromkeys(self.shares.room, held)
        return found

    def _coarsest(self, switch: str) -> dict[str, int]:
        """What the coarsest table of a switch takes of each owner; what is not decided yet may take an entry."""
        there = self._tables.there().get(switch, set())
        found = dict.fromkeys(self._members, 0)
        for dz, partition in self._partitions.items():
            if partition.owner is not None and switch not in partition.room:
                found[partition.owner] += dz in there if partition.ready else bool(partition.held)
        return found

    @property
    def _given(self) -> set[tuple[Dz, int]]:
        return {(partition.dz, partition.number) for some in self._giving.values() for partition in some}

    def _arrange(self, targets: Mapping[str, Mapping[str, int]]) -> None:
        self._raises, self._planned = {}, self._given
        for name, room in targets.items():
            has = self.shares.of(name)
            # Who has no share of a switch is not bounded there yet.
            less = {
                switch: entries for switch, entries in room.items() if entries < has.get(switch, math.inf)
            }
            more = {
                switch: entries for switch, entries in room.items() if entries > has.get(switch, math.inf)
            }
            if less:
                self.shares.grant(name, less)
                self._lowering.add(name)
                self._send(name, Bound(less))
            if more:
                self._raises[name] = more

    def _raise(self) -> None:
        """Once all who had to have made do with less: hand out what is free, and the partitions that waited for it."""
        if self._lowering or self.leaving:
            return
        raises, self._raises = self._raises, {}
        giving, self._giving = self._giving, {}
        for name in sorted(raises.keys() | giving.keys()):
            room = dict(raises.get(name, {}))
            share = self.shares.of(name)
            for partition in giving.get(name, ()):
                for switch, entries in partition.room.items():
                    room[switch] = room.get(switch, share.get(switch, 0)) + entries
            self.shares.grant(name, room)
            if name in giving:
                numbers = {partition.dz: partition.number for partition in giving[name]}
                parts = [part for partition in giving[name] for part in partition.held.values()]
                self._send(name, Own(numbers, parts, room))
            else:
                self._send(name, Bound(room))
        retry, self.retry = self.retry, set()
        for dz in retry:
            self._again(self._partitions[dz])
