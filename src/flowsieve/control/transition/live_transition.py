"""The way of a live network to another index: switches follow at their own pace, publishers say that they have, too.

Every phase is written down before it is begun, and only then; so whoever takes over goes on where it was. Until
publishers are told, it can be given up: where a switch does not follow in time, it is. From then on it is gone through
with, however long it takes: whatever is still sent under the old tag is handed up at its first switch, and sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any

from flowsieve.control.core import Core
from flowsieve.control.memory.journal import CrossingBegun, CrossingEnded, CrossingEntered, Entry
from flowsieve.control.memory.rebuild import catch_up, network_of
from flowsieve.control.state import ControlState
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.switches.table_work import Rename
from flowsieve.control.transition.crossing import Crossing, CrossingPhase, renamed
from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.records import PhaseRecord, TransitionRecord
from flowsieve.control.transition.retirement import Retirement
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.control.transition.states import (
    arrived,
    begun,
    check_able,
    check_room,
    entered,
    frozen,
    given_up,
)
from flowsieve.errors import BadInput, FlowsieveError, JournalError, Refused, SwitchError
from flowsieve.flow.diff import Change, changes_between
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sides import NEW, OLD
from flowsieve.network.mend import edges_of
from flowsieve.network.tree import TreeMap

log = logging.getLogger(__name__)

PUBLISHER_SECONDS = 10.0  # for publishers to go over; whoever takes longer has its packets handed up
SUBSCRIBER_SECONDS = (
    120.0  # before a tag may be used again though some subscriber has not said that it knows of it
)
RETRY_SECONDS = 0.2  # between looks at what is waited for
KEPT_RECORDS = 16  # of transitions that are over


class LiveTransition:
    """`go_over` to another plan; `run` goes on with what was begun before, and frees tags that nobody uses any more."""

    def __init__(
        self,
        core: Core,
        fleet: Fleet,
        holders: IndexHolders,
        first: ServedIndex,
        patience: Callable[[], float],
        drain: float,
    ) -> None:
        self.holders = holders
        self.records: list[TransitionRecord] = []
        self.publisher_patience = PUBLISHER_SECONDS
        self.retirement = Retirement(core, fleet, holders, lambda: self.index, drain)
        self.in_thread: Callable[..., Awaitable[Any]] = asyncio.to_thread  # where states are made
        self._core, self._fleet, self._first = core, fleet, first
        self._patience, self._drain = patience, drain
        self._turn = asyncio.Lock()  # one at a time
        self._news = asyncio.Event()  # something was begun, or an index retired
        self._revoked: asyncio.Event | None = None  # set where what is under way is to be given up

    @property
    def index(self) -> ServedIndex:
        """What publishers should use now."""
        return self._core.state.index or self._first

    @property
    def crossing(self) -> Crossing | None:
        return self._core.state.crossing

    @property
    def late(self) -> tuple[ServedIndex, ...]:
        """The indexes whose packets are handed up at host ports: some publisher may not have left them."""
        return self._core.late

    @property
    def hindrance(self) -> str | None:
        """Why a network like this never goes over to another index, if so."""
        if self._core.deciding is not None:
            return "configurators decide on its tables; that is for a controller that decides alone"
        if self._core.state.labelled:
            return "packets name their receivers, and there is no index"
        return None

    @property
    def hosts_behind(self) -> frozenset[str]:
        """The hosts of publishers that have not said that they use the index of now, once there was another before."""
        version = self.index.version
        return self.holders.hosts(self.holders.behind(version)) if version or self.crossing else frozenset()

    async def plan_room(
        self, plan: IndexPlan, *, carry: bool = True, trees: TreeMap | None = None
    ) -> dict[str, Any]:
        """What going over to a plan would come to, and nothing of it done; raises what going over would raise."""
        state = self._core.state
        new = self._next(plan)
        first, second = await self.in_thread(self._supposed, frozen(state), new, carry, trees)
        sizes = [_sizes(each) for each in (state, first, second)]
        after = await self.in_thread(lambda: _sizes(arrived(entered(second, CrossingPhase.SWITCH))))
        return {
            "from": self.index.version,
            "to": new.version,
            "tag": str(new.tag.group),
            "method": "light-weight" if carry else "versioning",
            "entries": {
                "now": sum(sizes[0].values()),
                "carried": sum(sizes[1].values()),
                "most": max(sum(each.values()) for each in sizes),
                "after": sum(after.values()),
            },
            "entries_max": {
                "now": max(sizes[0].values()),
                "most": max(max(each.values()) for each in sizes),
                "after": max(after.values()),
            },
        }

    async def go_over(
        self, plan: IndexPlan, *, carry: bool = True, trees: TreeMap | None = None
    ) -> TransitionRecord:
        """Go over to a plan, or along other trees to the same one; returns when it is done.

        Raises what is wrong with it before anything changes; SwitchError or Refused where it was given up.
        """
        async with self._turn:
            await self._tag_free()
            new = self._next(plan)
            first, _ = await self.in_thread(self._supposed, frozen(self._core.state), new, carry, trees)
            del first  # made once more, for what is there when it is its turn
            entry = CrossingBegun(self.index, new, carry, trees)

            def begin(state: ControlState) -> ControlState:
                return begun(state, entry.old, new, carry=carry, trees=trees)

            record = TransitionRecord(self.index.version, new.version, carry, time.time())
            self._remember(record)
            try:
                await self._enter(entry, begin, renamed(True, OLD), record)
                await self._through(record)
            finally:
                self._news.set()  # whoever asked for it may have left: then `run` goes on with it
        if record.ended != "arrived":
            raise SwitchError(f"the network is at the index that it was at before: {record.ended}")
        return record

    async def go_back(self) -> TransitionRecord | None:
        """Give up what is under way, if that can be; else go over to the plan of before. None if there is nothing."""
        crossing = self.crossing
        if crossing is not None:
            if not crossing.phase.revocable:
                raise BadInput(
                    f"publishers are going over to index {crossing.new.version} already; wait until it is in force, "
                    "then go back"
                )
            self._revoke.set()
            async with self._turn:
                return self.records[-1] if self.records else None
        before = self._core.state.before
        return None if before is None else await self.go_over(before.plan)

    @property
    def _revoke(self) -> asyncio.Event:
        if self._revoked is None:
            self._revoked = asyncio.Event()
        return self._revoked

    async def run(self) -> None:
        """Go on with what was begun before, then free tags as they are left; until cancelled."""
        while True:
            crossing = self.crossing
            if crossing is not None and not self._turn.locked():
                async with self._turn:
                    record = TransitionRecord(
                        crossing.old.version, crossing.new.version, crossing.carry, time.time()
                    )
                    self._remember(record)
                    try:
                        await self._through(record)
                    except JournalError as error:  # another controller leads by now, and goes on with it
                        log.error("going over to index %d ends here: %s", crossing.new.version, error)
                        return
            await self.retirement.look()
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._core.state.retired else None):
                    await self._news.wait()

    # What is wanted.

    def _next(self, plan: IndexPlan) -> ServedIndex:
        state = self._core.state
        if (why := self.hindrance) is not None:
            raise BadInput(f"this network does not go over to another index: {why}")
        check_able(state)
        return self.index.follower(plan, *(each.tag for each in state.retired))

    async def _tag_free(self) -> None:
        """Wait for publishers that are about to leave a former index, if all tags are in use; not for ever."""
        end = time.monotonic() + self.publisher_patience
        while time.monotonic() < end and not self.index.free_tags(
            *(each.tag for each in self._core.state.retired)
        ):
            await asyncio.sleep(RETRY_SECONDS)

    def _supposed(
        self, state: ControlState, new: ServedIndex, carry: bool, trees: TreeMap | None
    ) -> tuple[ControlState, ControlState]:
        """The states on the way; raises TableFull where there is no room for them."""
        first = begun(state, self.index, new, carry=carry, trees=trees)
        second = entered(first, CrossingPhase.INSTALL) if carry else first
        check_room(state, first)
        check_room(state, second)
        return first, second

    def _remember(self, record: TransitionRecord) -> None:
        """Another transition begins; nobody has asked yet to give it up."""
        self.records, self._revoked = [*self.records[-KEPT_RECORDS + 1 :], record], None

    # Phases.

    async def _through(self, record: TransitionRecord) -> None:
        """From the phase that the network is in to the end."""
        start = time.perf_counter()
        while (crossing := self.crossing) is not None:
            try:
                await self._phase(crossing, record)
            except JournalError as error:
                if error.final:
                    raise
                log.error("going over to index %d waits: %s", crossing.new.version, error)
                await asyncio.sleep(RETRY_SECONDS)
            record.seconds = time.perf_counter() - start
        self._news.set()

    async def _phase(self, crossing: Crossing, record: TransitionRecord) -> None:
        match crossing.phase:
            case CrossingPhase.CARRY | CrossingPhase.INSTALL:
                if (why := await self._not_followed()) is not None:
                    record.ended = why
                    log.warning("the way to index %d is given up: %s", crossing.new.version, why)
                    await self._enter(CrossingEnded(False), given_up, renamed(False, OLD), record)
                    return
                after = (
                    CrossingPhase.INSTALL if crossing.phase is CrossingPhase.CARRY else CrossingPhase.SWITCH
                )
                await self._go_to(after, record)
            case CrossingPhase.SWITCH:
                await self._gone_over(crossing.new.version)
                await self._go_to(CrossingPhase.FENCE, record)
            case CrossingPhase.FENCE:
                await self._fenced(crossing)
                await asyncio.sleep(self._drain)
                await self._go_to(CrossingPhase.CLEAR, record)
            case CrossingPhase.CLEAR:
                await self._all_reached()
                await self._enter(CrossingEnded(True), arrived, renamed(False, NEW), record)
                record.ended = "arrived"

    async def _go_to(self, phase: CrossingPhase, record: TransitionRecord) -> None:
        if phase in (CrossingPhase.SWITCH, CrossingPhase.FENCE):  # no table changes with it
            await self._core.scribe.write(CrossingEntered(phase), lambda: entered(self._core.state, phase))
            record.phases.append(self._begun(phase))
            return
        await self._enter(CrossingEntered(phase), lambda state: entered(state, phase), lambda dz: dz, record)

    async def _enter(
        self,
        entry: Entry,
        make: Callable[[ControlState], ControlState],
        rename: Rename,
        record: TransitionRecord,
    ) -> None:
        """Write an entry and go on with the state that it leads to; that is made in a thread, as far as it can be."""
        before = self._core.state
        network = network_of(before)
        made = await self.in_thread(make, frozen(before))

        def work() -> None:
            state, new = self._core.state, made
            fits = state is before and network_of(state) == network
            if fits:
                catch_up(new, state)
            if not fits or _asked(new) != _asked(state):
                new = make(state)  # what is in force stays so, whatever room was found for it
            self._become(new, rename)

        await self._core.scribe.write(entry, work)
        if self.crossing is not None:
            record.phases.append(self._begun(self.crossing.phase))
        log.info("%s", self._told(entry))

    def _become(self, state: ControlState, rename: Rename) -> None:
        """Have switches follow another state of the same network, whose cells may have other names."""
        core = self._core
        tables = {switch: core.state.table(switch) for switch in core.state.topology.switches}
        core.state = state
        core.encoding = state.encoding_now(PrefixEncoding(self._first.tag))
        self._fleet.recode(rename)
        changes: dict[str, list[Change]] = {}
        for switch, table in tables.items():
            named = {now: ports for dz, ports in table.items() if (now := rename(dz)) is not None}
            if some := changes_between(named, state.table(switch)):
                changes[switch] = some
        self._fleet.ask(changes)
        self._fleet.guard_anew()

    def _begun(self, phase: CrossingPhase) -> PhaseRecord:
        """A record of a phase that begins; the one before it is over."""
        fleet, records = self._fleet, self.records[-1].phases
        if records:
            records[-1].end(fleet.operations, sum(each.work.size for each in fleet))
        return PhaseRecord(phase, began=time.perf_counter(), before=fleet.operations)

    # What is waited for.

    async def _not_followed(self) -> str | None:
        """Wait until all switches that packets may pass have followed; why not all have, if so."""
        patience = self._patience()
        following = asyncio.ensure_future(self._fleet.caught_up(self._passed()))
        revoked = asyncio.ensure_future(self._revoke.wait())
        try:
            async with asyncio.timeout(patience):
                await asyncio.wait([following, revoked], return_when=asyncio.FIRST_COMPLETED)
                if self._revoke.is_set():
                    return "an operator asked for it"
                await following
        except TimeoutError:
            troubles = list(self._fleet.troubles.items())[:3]
            told = "; ".join(f"switch {switch}: {why}" for switch, why in troubles)
            return f"not acknowledged within {patience:g} s ({told})"
        except (Refused, SwitchError) as error:
            return str(error)
        finally:
            following.cancel()
            revoked.cancel()
        return None

    def _passed(self) -> Collection[str]:
        """The switches that packets may pass: those that can be asked, and those that some link still leads to."""
        state = self._core.state
        linked = {switch for edge in edges_of(state.topology) - state.down for switch in edge}
        return linked | self._fleet.reachable

    async def _gone_over(self, version: int) -> None:
        """Wait until all publishers use an index, but not for ever."""
        if behind := await self.holders.reached(version, self.publisher_patience):
            hosts = ", ".join(sorted(self.holders.hosts(behind)))
            log.warning("publishers at %s have not gone over; what they send is sent again", hosts)

    async def _fenced(self, crossing: Crossing) -> None:
        """Have packets under the old tag handed up at the ports of hosts, wherever somebody may still send some."""
        waiting: set[str] | None = None
        while True:
            asked = sorted(self._fleet.reachable)
            did = await asyncio.gather(*map(self._fleet.punts, asked))
            fenced = {switch for switch, done in zip(asked, did, strict=True) if done}
            attached = self._core.state.topology.attached
            hosts = self.holders.hosts(self.holders.behind(crossing.new.version))
            behind = {attached[host] for host in hosts if host in attached}
            left = behind - fenced
            if not left:
                return
            if left != waiting:
                waiting = left
                log.warning("under the old tag all is carried until %s can be asked", ", ".join(sorted(left)))
            await asyncio.sleep(RETRY_SECONDS)

    async def _all_reached(self) -> None:
        """Wait until every switch that can be asked has followed."""
        while not self._fleet.settled_at(self._fleet.reachable):
            try:
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._fleet.caught_up(set(self._fleet.reachable))
            except (TimeoutError, FlowsieveError):
                await asyncio.sleep(RETRY_SECONDS)

    def _told(self, entry: Entry) -> str:
        match entry:
            case CrossingBegun(old, new, _, _):
                return f"going over from index {old.version} to {new.version}, under {new.tag.group}"
            case CrossingEntered(phase):
                return f"going over: {phase.value}"
            case CrossingEnded(True):
                return f"index {self.index.version} is in force"
            case _:
                return f"index {self.index.version} stays in force"


def _asked(state: ControlState) -> tuple[object, object]:
    """What is in force."""
    return state.advertisements.keys(), state.subscriptions.keys()


def _sizes(state: ControlState) -> dict[str, int]:
    """How many entries each switch should hold."""
    return {switch: state.size(switch) for switch in state.topology.switches}
