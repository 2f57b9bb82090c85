"""A switch's room shared out between configurators by what they need; the shares never add up to more than there is.

Room goes over from one to another in two steps: those who have to do with less follow first, then the others get more.

Where a switch turned out to have less room than even the coarsest tables need, all that there is in force is shared
out: so nobody aims at more than these, and what would come to it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

KEPT = 1  # entries of a share that a full table keeps free, for updates (flow.order)
WORTH = 0.05  # by how much a share has to grow to be worth a change, where nothing is refused

Room = dict[str, int]  # entries, by switch
Coarsest = Callable[[str], Mapping[str, int]]  # what the coarsest table of a switch takes, by configurator


class RoomShares:
    """How many entries each configurator may have at each switch; empty where nothing is bounded."""

    def __init__(self, room: Mapping[str, int]) -> None:
        self.room: Room = dict(room)
        self._share: dict[str, Room] = {}  # by configurator
        self._need: dict[str, Mapping[str, int]] = {}
        self._waste: dict[str, Mapping[str, float]] = {}

    def of(self, name: str) -> Room:
        """The share of a configurator."""
        return dict(self._share.get(name, {}))

    def need(self, name: str, needs: Mapping[str, int], waste: Mapping[str, float]) -> None:
        """A configurator tells what it would need for exact tables, and what it wastes since they are not."""
        self._need[name], self._waste[name] = needs, waste

    def left(self, name: str) -> None:
        """A configurator is gone, and its share free."""
        for book in (self._share, self._need, self._waste):
            book.pop(name, None)

    def lift(self, switch: str) -> None:
        """A switch has room for all; nobody has a share of it any more."""
        self.room.pop(switch, None)
        for share in self._share.values():
            share.pop(switch, None)

    def grant(self, name: str, room: Mapping[str, int]) -> None:
        """A configurator has these shares from now on."""
        self._share.setdefault(name, {}).update(room)

    @property
    def waste(self) -> dict[str, float]:
        """By switch, over all configurators."""
        found: dict[str, float] = {}
        for told in self._waste.values():
            for switch, copies in told.items():
                found[switch] = found.get(switch, 0.0) + copies
        return found

    def tight(self, targets: Mapping[str, Mapping[str, int]], taken: Mapping[str, int]) -> bool:
        """Whether some configurator needs more than it has, and would get worthwhile more; or all have too much."""
        has = {
            switch: {name: self._share.get(name, {}).get(switch, 0) for name in targets}
            for switch in self.room
        }
        return any(
            self._need.get(name, {}).get(switch, 0) + KEPT > share and target >= share * (1 + WORTH) + 1
            for name, room in targets.items()
            for switch, target in room.items()
            for share in [has[switch][name]]
        ) or any(
            sum(has[switch].values()) + taken.get(switch, 0) > whole
            and any(targets[name][switch] < share for name, share in has[switch].items())
            for switch, whole in self.room.items()
        )

    def targets(
        self,
        owned: Mapping[str, int],
        more: Mapping[str, Mapping[str, int]],
        taken: Mapping[str, int],
        coarsest: Coarsest,
    ) -> dict[str, Room]:
        """What each configurator is to have, given in how many partitions of its there is something.

        `more` are the entries, by configurator, of partitions that come to it, `taken` those of partitions that bring
        their room with them. A table takes an entry for each partition at least; the rest is shared out by need. Where
        that is more than there is, it counts what is really there.
        """
        found: dict[str, Room] = {name: {} for name in owned}
        for switch, whole in self.room.items():
            room = max(0, whole - taken.get(switch, 0))
            need = {
                name: self._need.get(name, {}).get(switch, 0) + more.get(name, {}).get(switch, 0) + KEPT
                for name in owned
            }
            least = {name: min(count + KEPT, need[name], room) for name, count in owned.items()}
            if sum(least.values()) > room:
                there = coarsest(switch)
                least = {name: there.get(name, 0) + (KEPT if there.get(name) else 0) for name in owned}
                if sum(least.values()) > room:  # nobody may have more than there is
                    for name in owned:
                        found[name][switch] = there.get(name, 0)
                    continue
            want = {name: max(0, need[name] - least[name]) + 1 for name in owned}
            spare, total = room - sum(least.values()), sum(want.values())
            for name in owned:
                found[name][switch] = least[name] + spare * want[name] // total
        return found
