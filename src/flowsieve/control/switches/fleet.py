"""All switches of a network, each kept at its table at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping

from flowsieve.control.core import Core
from flowsieve.control.request import Request
from flowsieve.control.switches.looks import Looks
from flowsieve.control.switches.reconciler import Reconciler, all_reached
from flowsieve.control.switches.table_room import TableRoom
from flowsieve.control.switches.table_work import Rename, TableWork, table_work
from flowsieve.errors import SwitchError
from flowsieve.flow.diff import Change
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.guard import Guard, Refusals


class Fleet:
    """`ask` for changes and wait until they are `reached`; a switch that is not `connected` follows later."""

    def __init__(self, core: Core) -> None:
        self.reachable: set[str] = set()  # the switches that can be asked
        self._punting: set[str] = set()  # those that hand something over
        self._core = core
        self._reconcilers: dict[str, Reconciler] = {}
        self._looks = Looks(core, self._repair)
        self.room = TableRoom(core, self.ask)
        for switch in core.state.topology.switches:
            self._add(switch, core.deliveries.get(switch))

    def grow(self, deliveries: Mapping[str, Mapping[int, Deliver]]) -> list[Reconciler]:
        """Have these switches, known or new, count their ports otherwise, and deliver there; the new ones.

        What a known one holds has to be read again: it was understood by the old ports.
        """
        new = []
        for switch, own in deliveries.items():
            if switch in self._reconcilers:
                self[switch].work = self._work(switch, own)
                self[switch].doubt("the network has grown at it")
            else:
                new.append(self._add(switch, own))
        return new

    def _add(self, switch: str, deliveries: Mapping[int, Deliver] | None) -> Reconciler:
        made = self._reconcilers[switch] = Reconciler(
            switch, self._core, self._work(switch, deliveries), self.room.less
        )
        return made

    def _work(self, switch: str, deliveries: Mapping[int, Deliver] | None) -> TableWork:
        return table_work(switch, self._core.encoding, lambda: self._core.state, deliveries)

    def __getitem__(self, switch: str) -> Reconciler:
        return self._reconcilers[switch]

    def __iter__(self) -> Iterator[Reconciler]:
        return iter(self._reconcilers.values())

    def ask(self, changes: Mapping[str, list[Change]]) -> None:
        """Have tables changed, after all that was asked for before."""
        for switch, some in changes.items():
            self[switch].ask(some)

    def recode(self, rename: Rename) -> None:
        """Go on with the encoding of now, which has other names for the same entries."""
        for each in self:
            if not each.recode(self._core.encoding, rename):
                each.doubt("it has entries that the index of now has no name for")

    def follow(self, requests: Iterable[Request], changes: Mapping[str, list[Change]]) -> None:
        """Have tables changed for some requests, and let in what their hosts may send from now on, or no more."""
        self.ask(changes)
        for switch in self._core.guarded_by(requests):
            self[switch].guard_anew()

    def guard_anew(self) -> None:
        """Have every switch take in what its hosts may send now."""
        for each in self:
            each.guard_anew()

    def connected(self, switch: str) -> None:
        """A switch can be asked from now on."""
        self.reachable.add(switch)
        self[switch].connected()
        self.room.changed(switch)

    def disconnected(self, switch: str, reason: str) -> None:
        self.reachable.discard(switch)
        self[switch].disconnected(reason)

    async def punt(self, switch: str) -> None:
        """Have a switch hand over what it should, and nothing else; what somebody has removed is put back."""
        await self.punts(switch)  # else it will connect anew

    async def punts(self, switch: str) -> bool:
        """The same; whether it has said that it does."""
        punts = self._core.punts_of(switch)
        if punts or switch in self._punting:
            try:
                await self._core.switches.punt(switch, punts)
            except SwitchError:
                return False
            (self._punting.add if punts else self._punting.discard)(switch)
        return True

    def settled_at(self, switches: Iterable[str] | None = None) -> bool:
        """Whether every switch, or each of some, has acknowledged all that it should hold."""
        if self._core.deciding is not None and not self._core.deciding.idle:
            return False
        return all(each.settled for each in (self if switches is None else map(self.__getitem__, switches)))

    def reached(self, switches: Iterable[str]) -> asyncio.Future[None]:
        """Done when these switches have acknowledged all that was asked for so far."""
        return all_reached([self[switch] for switch in switches])

    async def caught_up(self, switches: Iterable[str]) -> None:
        """Wait until these switches have acknowledged all that follows from what was asked for so far."""
        if self._core.deciding is not None:
            await self._core.deciding.caught_up()
        await self.reached(switches)

    @property
    def troubles(self) -> dict[str, str]:
        """The switches that are not where they should be, and why."""
        return {each.switch: each.trouble or "it is at work" for each in self if not each.settled}

    @property
    def operations(self) -> int:
        """How many flow operations switches have acknowledged."""
        return sum(each.operations for each in self)

    @property
    def deliveries(self) -> dict[str, Mapping[int, Deliver]]:
        """The ports of each switch at which events are readdressed to the host there."""
        return {each.switch: each.work.deliveries for each in self}

    async def tables(self, switches: Collection[str] | None = None) -> dict[str, tuple[Flow, ...]]:
        """What the switches that can be asked, or some of these, really hold; not the entries of other owners."""
        some = self.reachable if switches is None else self.reachable.intersection(switches)
        return await self._looks.tables(sorted(some))

    @property
    def guards(self) -> dict[str, Guard]:
        """What each switch was last made to take in; one that never connected is not among them."""
        return {each.switch: each.guard for each in self if each.guard is not None}

    async def refusals(self) -> dict[str, Refusals]:
        """What the guards of the switches that can be asked have refused of each host."""
        topology, reachable = self._core.state.topology, sorted(self.reachable)
        asked = (self._core.switches.refusals(switch) for switch in reachable)
        told = await asyncio.gather(*asked, return_exceptions=True)
        found: dict[str, Refusals] = {}
        for switch, some in zip(reachable, told, strict=True):
            if isinstance(some, SwitchError):
                continue  # it went meanwhile
            if isinstance(some, BaseException):
                raise some
            for host in topology.attached_at(switch):
                if (port := topology.port(switch, host)) in some:
                    found[host] = some[port]
        return found

    def close(self) -> None:
        """Look at nothing any more."""
        self._looks.close()

    def _repair(self, switch: str) -> asyncio.Future[None]:
        """Have a switch read and set right."""
        self[switch].doubt("it has entries that nobody of ours made")
        return self[switch].reached()
