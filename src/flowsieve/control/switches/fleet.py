"""All switches of a network, each kept at its table at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from flowsieve.control.switches.belief import Belief
from flowsieve.control.switches.reconciler import Reconciler, arrival
from flowsieve.errors import SwitchError, TableFull
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.punt import Punt
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
from flowsieve.southbound.fabric import LiveSwitches


class Fleet:
    """`ask` for changes and wait until they are `reached`; a switch that is not `connected` follows later.

    `aim` is the whole table that a switch should have by now, `capacity` the room it has. `punts` are the
    service entries of a switch. `full` hears how many entries a switch turned out to have room for, `repaired` how many
    operations it took to set a table right.
    """

    def __init__(
        self,
        names: Collection[str],
        switches: LiveSwitches,
        encoding: Encoding,
        deliveries: Mapping[str, Mapping[int, Deliver]],
        *,
        aim: Callable[[str], Mapping[Dz, Ports]],
        capacity: Callable[[str], int | None],
        partitions: Sequence[Dz],
        punts: Callable[[str], Sequence[Punt]],
        full: Callable[[TableFull], None],
        repaired: Callable[[str, int], None] | None,
    ) -> None:
        self.reachable: set[str] = set()  # the switches that can be asked
        self._switches = switches
        self._encoding = encoding
        self._punts = punts

        def reconciler(name: str, belief: Belief) -> Reconciler:
            return Reconciler(
                name,
                switches,
                belief,
                aim=lambda: aim(name),
                capacity=lambda: capacity(name),
                partitions=partitions,
                full=full,
                repaired=repaired,
            )

        self._make = reconciler
        self._reconciler = {name: reconciler(name, Belief(encoding, deliveries.get(name))) for name in names}

    def grow(self, deliveries: Mapping[str, Mapping[int, Deliver]]) -> list[Reconciler]:
        """Have these switches, known or new, count their ports otherwise, and deliver there; the new ones.

        What a known one holds has to be read again: it was understood by the old ports.
        """
        new = []
        for name, own in deliveries.items():
            belief = Belief(self._encoding, own)
            if name in self._reconciler:
                self._reconciler[name].belief = belief
                self._reconciler[name].doubt("the network has grown at it")
            else:
                self._reconciler[name] = self._make(name, belief)
                new.append(self._reconciler[name])
        return new

    def __getitem__(self, switch: str) -> Reconciler:
        return self._reconciler[switch]

    def __iter__(self) -> Iterator[Reconciler]:
        return iter(self._reconciler.values())

    def ask(self, changes: Mapping[str, list[Change]]) -> None:
        """Have tables changed, after all that was asked for before."""
        for switch, some in changes.items():
            self._reconciler[switch].ask(some)

    def connected(self, switch: str) -> None:
        """A switch can be asked from now on."""
        self.reachable.add(switch)
        self._reconciler[switch].connected()

    def disconnected(self, switch: str, reason: str) -> None:
        self.reachable.discard(switch)
        self._reconciler[switch].disconnected(reason)

    async def punt(self, switch: str) -> None:
        """Have a switch hand over what it should; what somebody has removed is put back."""
        if punts := self._punts(switch):
            with suppress(SwitchError):  # it will connect anew
                await self._switches.punt(switch, punts)

    def settled_at(self, switches: Iterable[str] | None = None) -> bool:
        """Whether every switch, or each of some, has acknowledged all that it should hold."""
        return all(each.settled for each in (self if switches is None else map(self.__getitem__, switches)))

    def reached(self, switches: Iterable[str]) -> asyncio.Future[None]:
        """Done when these switches have acknowledged all that was asked for so far."""
        return arrival([self._reconciler[switch] for switch in switches])

    @property
    def troubles(self) -> dict[str, str]:
        """The switches that are not where they should be, and why."""
        return {each.switch: each.trouble or "it is at work" for each in self if not each.settled}

    @property
    def operations(self) -> int:
        """How many flow operations switches have acknowledged."""
        return sum(each.operations for each in self)

    async def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches really hold; of one that cannot be asked, what it acknowledged last is not told."""
        reachable = sorted(self.reachable)
        flows = await asyncio.gather(*(self._switches.read(switch) for switch in reachable))
        return dict(zip(reachable, flows, strict=True))
