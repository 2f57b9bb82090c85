"""What there is to know of a pool of configurators: who owns what, what is decided, what weighs how much."""

from __future__ import annotations

from flowsieve.control.partitions.decided_tables import DecidedTables
from flowsieve.control.partitions.handover import Handover
from flowsieve.control.partitions.orders import Order
from flowsieve.control.partitions.partition import Member, Partition
from flowsieve.control.partitions.room_shares import RoomShares
from flowsieve.control.partitions.undecided import Undecided
from flowsieve.flow.diff import Ports
from flowsieve.index.dz import Dz


class PoolView:
    """A pool as whoever only looks sees it; see `pool`."""

    def __init__(self) -> None:
        self.partitions: dict[Dz, Partition] = {}
        self._members: dict[str, Member] = {}
        self._tables = DecidedTables()
        self._undecided = Undecided()
        self._handover = Handover(
            RoomShares({}), self._tables, {}, self._members, lambda name, order: None, lambda partition: None
        )
        self._rewired = 0  # the unit that came last when trees were changed

    @property
    def known(self) -> bool:
        """Whether it is known what tables should be: each partition was taken up since all began."""
        return bool(self.partitions) and not self._tables.beginning

    @property
    def ready(self) -> bool:
        """Whether every partition is owned, and its tables are known."""
        return self.known and all(each.ready for each in self.partitions.values())

    @property
    def idle(self) -> bool:
        """Whether all that was asked for is decided."""
        return not self._undecided and self.ready

    @property
    def undecided(self) -> int:
        """How many parts and other orders are not decided yet."""
        return len(self._undecided)

    @property
    def ticket(self) -> int:
        """A number for all that was asked for so far."""
        return self._undecided.last

    def passed(self, ticket: int) -> bool:
        """Whether all that was asked for up to there is decided."""
        return self.ready and self._undecided.passed(ticket)

    @property
    def rewiring(self) -> bool:
        """Whether tables for the trees of now are yet to be decided."""
        return not self.passed(self._rewired)

    def aim(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, as far as it is decided."""
        return self._tables.table(switch)

    def size(self, switch: str) -> int:
        return self._tables.size(switch)

    @property
    def waste(self) -> dict[str, float]:
        """The unwanted copies per event that each coarsened table is expected to send."""
        return self._handover.shares.waste

    @property
    def most_partitions(self) -> int | None:
        """How many there may be, so that an entry for each has room everywhere; None for any number."""
        room = self._handover.shares.room
        return max(1, min(room.values()) - len(self._members)) if room else None

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
