"""A controller for switches that come, fail and come back, and for many requests at a time.

The state decides at once; every switch then follows at its own pace, and a request is acknowledged when the
switches that it depends on have. A switch that is away holds up only what depends on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType

from flowsieve.control.core import (
    Core,
    Deciding,
    DetourRoom,
    Guarding,
    NoWatcher,
    Watcher,
    no_detours,
    not_guarded,
)
from flowsieve.control.filter_steps import FilterSteps
from flowsieve.control.greeter import Greeter
from flowsieve.control.live_view import Installed, view_of
from flowsieve.control.memory.journal import Divided, Found, Journal, NoJournal, Origin
from flowsieve.control.memory.rebuild import remade
from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.policy_change import go_over
from flowsieve.control.publishers import Publishers
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.repair.failover import Failover
from flowsieve.control.repair.fences import Fences
from flowsieve.control.repair.mender import Mender
from flowsieve.control.request import Request
from flowsieve.control.requests.intake import Intake
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState, Outcome, Settings
from flowsieve.control.switches.fleet import Fleet
from flowsieve.control.switches.hindrances import Hindrances
from flowsieve.control.switches.label_gates import LabelGates
from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.live_transition import LiveTransition
from flowsieve.control.transition.records import TransitionRecord
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import Refused, SwitchError
from flowsieve.flow.detours import Path, Protection
from flowsieve.flow.diff import Change
from flowsieve.flow.entry import Deliver, Flow
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.interest import Interest
from flowsieve.flow.others import Foreign, Others
from flowsieve.flow.proof.proving import AnyView, about, proved
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.punt import Punt
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.protocol.told_index import FIRST_INDEX
from flowsieve.southbound.fabric import (
    LiveSwitches,
    SwitchEvent,
)
from flowsieve.southbound.shared_question import SharedQuestion

log = logging.getLogger(__name__)

Tables = Mapping[str, tuple[Flow, ...]]

PATIENCE_SECONDS = 30.0  # with switches that do not acknowledge what a request needs
SETTLING_SECONDS = 2.0  # for what switches are at before their tables are read for a proof
MOST_LOOKS = 3  # at a network that changes while it is looked at
LEASES = 5  # of a publisher's filters, in that of a client
FILTER_LEASE_SECONDS = 6.0  # and no longer: a publisher that is cut off holds requests up for that time
DRAIN_SECONDS = 0.25  # for what a publisher sent before it stopped


class Dispatcher:
    """One state over live switches, which it keeps at it for the time of an `async with` block."""

    def __init__(
        self,
        state: ControlState,
        switches: LiveSwitches,
        encoding: Encoding,
        deliveries: Mapping[str, Mapping[int, Deliver]] | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        drain: float = DRAIN_SECONDS,
        journal: Journal | None = None,
        ledger: Ledger | None = None,
        punts: Sequence[Punt] = (),
        damping: DampingSettings | None = None,
        watcher: Watcher | None = None,
        guarding: Guarding = not_guarded,
        detour_room: DetourRoom = no_detours,
        filter_lease: float = FILTER_LEASE_SECONDS,
        deciding: Deciding | None = None,
    ) -> None:
        self.patience = patience
        self.filter_lease = (
            filter_lease  # how long publishers may go on with what they hold of others' filters
        )
        first = ServedIndex(FIRST_INDEX, encoding.tag, state.plan)
        self._core = core = Core(
            state,
            switches,
            state.encoding_now(encoding),
            Scribe(journal or NoJournal()),
            ledger or Ledger(),
            deliveries or {},
            punts,
            guarding,
            detour_room,
            watcher or NoWatcher(),
            deciding=deciding,
        )
        self._fleet = Fleet(core)
        if deciding is not None:
            deciding.attach(state, self._fleet.ask)
        self._failover = Failover(core, self._fleet)
        self._mender = Mender(core, self._fleet, self._failover, damping)
        self._hindrances = Hindrances(core, lambda: self.fences.closed | self.fences.closing)
        self.publishers = self._publishers() if state.labelled else None
        self._drain = drain
        if state.labelled and core.ledger.policy != state.settings.policy:
            core.formerly = core.ledger.policy
        self._steps: FilterSteps | None = None
        if self.publishers is not None and state.bloom is not None:
            self._steps = FilterSteps(core, self._fleet, self.publishers, drain)
        self._intake = Intake(core, self._fleet, self._mender, drain, self.publishers, self._steps)
        self._proof = SharedQuestion(self._prove)
        self._twin: tuple[int, ControlState] | None = (
            None  # for suppositions, and after which turn it was made
        )
        self.holders = IndexHolders(core.ledger)  # which session uses which index
        self.transition = LiveTransition(core, self._fleet, self.holders, first, lambda: self.patience, drain)
        self._greeter = Greeter(core, self._fleet, self._mender, self._failover, self._hindrances)

    @property
    def state(self) -> ControlState:
        """What decides at this moment."""
        return self._core.state

    @property
    def encoding(self) -> Encoding:
        return self._core.encoding

    @property
    def index(self) -> ServedIndex:
        """What publishers address events by now."""
        return self.transition.index

    @property
    def late(self) -> tuple[ServedIndex, ...]:
        """The indexes that are not in use any more: packets under their tags are handed to the controller."""
        return self.transition.late

    def cover_now(self, id: str) -> DzSet | None:
        """The dz of a subscription under the index of now; None where there is no such subscription."""
        held = self.state.subscriptions.get(id)
        return None if held is None else self.state.told_cover(held)

    @property
    def ledger(self) -> Ledger:
        return self._core.ledger

    @property
    def scribe(self) -> Scribe:
        return self._core.scribe

    # What hosts ask.

    async def submit(
        self, request: Request, origin: Origin | None = None, *, patience: float | None = None
    ) -> Outcome:
        """Serve a request; returns when the switches that it depends on have acknowledged what follows from it.

        It is written down before it is worked on. An advertisement that ends shrinks late: what its publisher sent
        before has to arrive first. What ends, ends: a switch that is away hears of it when it is back.

        It waits for switches as long as the dispatcher has patience, or for less where `patience` is less.
        """
        return await self._intake.serve(request, origin, self._patience(patience))

    async def acknowledged(
        self, request: Request, origin: Origin | None = None, *, patience: float | None = None
    ) -> None:
        """Wait until a request that was taken before is served; it is taken back where it is not."""
        await self._intake.served(request, origin, self._patience(patience))

    def _patience(self, asked: float | None) -> float:
        return self.patience if asked is None else min(asked, self.patience)

    def replace(self, state: ControlState) -> int:
        """Go on with another state of the same network and interests; how many operations that asks for."""
        before, self._core.state = self.state, state
        if self._steps is not None and state.bloom is not None:
            self._steps.begin()
            for switch in state.topology.switches:
                state.bloom.adopt(switch, before.label_entries(switch))
        changes: Mapping[str, list[Change]] = {}
        if self._core.deciding is not None:
            self._core.deciding.attach(state, self._fleet.ask)
        else:
            changes = state.changes_since(before.tables)
        self._fleet.ask(changes)
        if self.publishers is not None:
            self.publishers.begin_anew()
        self._fleet.guard_anew()  # filters may have other covers
        return sum(map(len, changes.values()))

    async def grow(self, topology: Topology, deliveries: Mapping[str, Mapping[int, Deliver]]) -> None:
        """Go on with a network that has all that this one has, and more; it is written down first."""
        await self.scribe.write(Found(topology), lambda: self._grow(topology, deliveries))

    async def divide(self, partitions: Sequence[Dz]) -> None:
        """Have the space divided into these partitions, on the trees that there are; it is written down first."""

        def work() -> None:
            self._fleet.ask(self.state.divide(partitions).changes)

        await self.scribe.write(Divided(tuple(partitions)), work)

    async def reindex(
        self, plan: IndexPlan, *, carry: bool = True, trees: TreeMap | None = None
    ) -> TransitionRecord:
        """Go over to another plan, or along other trees, while events are published; returns when it is done.

        Nothing is lost meanwhile. Raises what is wrong with it before anything changes, and SwitchError where it had to
        be given up.
        """
        return await self.transition.go_over(plan, carry=carry, trees=trees)

    async def supposing(self) -> ControlState:
        """A state like the one of now that can be asked what a request would come to (`ControlState.supposed`).

        Where others decide on tables, it is made for that, and kept until something changes.
        """
        if self._core.deciding is None:
            return self.state
        turns = self.scribe.turns
        if self._twin is None or self._twin[0] != turns:
            alone = replace(self.state.settings, elsewhere=False)
            make = partial(_twin_of, self.state, alone)
            self._twin = turns, await remade(lambda: self.state, self.ledger, make)
        return self._twin[1]

    # What switches tell.

    def heard(self, event: SwitchEvent) -> None:
        """Take note of what a switch tells; on the loop."""
        self._greeter.heard(event)

    async def __aenter__(self) -> Dispatcher:
        await self._core.tasks.__aenter__()
        for reconciler in self._fleet:
            self._core.tasks.start(reconciler.run())
        self._core.tasks.start(self._fleet.room.run())
        self._core.tasks.start(self._mender.run())
        self._core.tasks.start(self._failover.run())
        self._core.tasks.start(self.scribe.run())
        self._core.tasks.start(self.transition.run())
        if self.publishers is not None:
            self._core.tasks.start(go_over(self._core, self._fleet, self.publishers, self._drain))
        if self._steps is not None:
            self._steps.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._intake.ending = True
        self._proof.close()
        self._fleet.close()
        await self._core.tasks.__aexit__(kind, error, trace)

    # What there is to know.

    async def settled(self, switches: Collection[str] | None = None) -> None:
        """Wait until the trees follow the cabling and every switch has acknowledged all that it should hold.

        Of only some switches, wait for no more than their acknowledgements.
        """
        while not ((self.mended or switches is not None) and self._fleet.settled_at(switches)):
            if switches is None and not self.mended:
                await self._mender.eased()
            else:
                await self._fleet.caught_up(self.state.topology.switches if switches is None else switches)

    @property
    def reachable(self) -> frozenset[str]:
        """The switches that can be asked."""
        return frozenset(self._fleet.reachable)

    @property
    def mended(self) -> bool:
        """Whether the trees follow the cabling, and no edge of them is fenced."""
        return self._mender.whole

    @property
    def at_rest(self) -> bool:
        """Whether all switches that can be asked have acknowledged all that they should hold."""
        return self._fleet.settled_at(self._fleet.reachable)

    @property
    def undecided(self) -> str | None:
        """What is yet to be decided by those who decide on tables, if the state does not."""
        deciding = self._core.deciding
        if deciding is None or deciding.idle:
            return None
        return deciding.trouble or "configurators are at work"

    @property
    def suppressed(self) -> frozenset[Edge]:
        """The links that are left out because they come and go, down or not."""
        return self._mender.suppressed

    @property
    def detours(self) -> dict[Edge, Path]:
        """The ways around links that are in force."""
        return self._failover.ways

    @property
    def fails_over(self) -> bool:
        """Whether detours are to bridge links that die."""
        return self._failover.on

    @property
    def without_detours(self) -> frozenset[str]:
        """The switches that take no detours."""
        return frozenset(self._failover.refused)

    @property
    def protected(self) -> bool:
        """Whether every switch that can be asked does about dead links what it should."""
        return self._failover.settled

    @property
    def protections(self) -> Mapping[str, Protection]:
        """What switches do about dead links, as they have acknowledged it."""
        return self._failover.held

    @property
    def fences(self) -> Fences:
        """The links that are closed."""
        return self._mender.fences

    async def release(self, edge: Edge) -> bool:
        """Have the fence of a link that no tree has opened, though the link may be down; False if a tree has it."""
        return await self._mender.release(edge)

    @property
    def troubles(self) -> dict[str, str]:
        """The switches that are not where they should be, and why."""
        return self._fleet.troubles

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        """The entries of others that events may meet at a switch, as its table was read last."""
        groups, there = [each.tag.group for each in self._core.encodings], self._core.switches.foreign(switch)
        return tuple(each for each in there if any(map(each.within, groups)))

    @property
    def steps_under_way(self) -> int:
        """How many changes of what is wanted publishers or tables have yet to follow, with Bloom filters as labels."""
        return self._steps.under_way if self._steps is not None else 0

    @property
    def hindrances(self) -> dict[str, str]:
        """The switches at which others keep events from their way, and how."""
        return self._hindrances.told

    @property
    def operations(self) -> int:
        """How many flow operations switches have acknowledged."""
        return self._fleet.operations

    def guard_of(self, switch: str, state: ControlState | None = None) -> Guard:
        """What a switch should take in, by the state of now or another."""
        return self._core.guard_of(switch, state)

    @property
    def guards(self) -> dict[str, Guard]:
        """What each switch was last made to take in."""
        return self._fleet.guards

    @property
    def unguarded(self) -> frozenset[str]:
        """The switches that did not take their guards, and take in everything."""
        return frozenset(self._core.unguarded)

    async def refusals(self) -> dict[str, Refusals]:
        """What the switches that can be asked have refused of each host, since they guard it."""
        return await self._fleet.refusals()

    async def tables(self, switches: Collection[str] | None = None) -> dict[str, tuple[Flow, ...]]:
        """What the switches, or some of them, really hold: read after this was asked, for all who ask at a time.

        Of one that cannot be asked, what it acknowledged last is not told.
        """
        return await self._fleet.tables(switches)

    async def view(self) -> AnyView:
        """The network with what the switches that can be asked really hold, and what others have made of them."""
        for _ in range(MOST_LOOKS):
            before = self.state.topology, self.state.down, self.fences.closed
            wanted = self.state.bloom.view({}, (), ()) if self.state.bloom else None
            tables = await self.tables()
            ports = await asyncio.gather(*map(self._core.switches.settings, tables))
            around = await self._failover.really_held(tables)
            if before == (self.state.topology, self.state.down, self.fences.closed):
                break
        others = {
            switch: Others(self.foreign(switch), settings)
            for switch, settings in zip(tables, ports, strict=True)
        }
        found = Installed(tables, others, around, self.fences.closed)
        return view_of(self._core, self._fleet, found, wanted)

    async def verify(self) -> Verdict:
        """Prove that what is really installed does what all interests ask for; one proof for all who ask at a time.

        It begins after that, and the tables are read for it. Requests go on meanwhile, so it is about what was asked
        before the tables were read and still stands after it.
        """
        return await self._proof.answered()

    async def repair(self) -> int:
        """Read all tables back and set right what differs from what they should be; how many operations it took."""
        before = self.operations
        for each in self._fleet:
            each.doubt("its table is read again")
        await self.settled()
        return self.operations - before

    async def _prove(self) -> Verdict:
        """One proof, in a thread."""
        advertised, subscribed = dict(self.state.advertisements), dict(self.state.subscriptions)
        with suppress(TimeoutError, SwitchError, Refused):
            await asyncio.wait_for(self._fleet.caught_up(self._fleet.reachable), SETTLING_SECONDS)
        view = await self.view()
        standing = about(
            view,
            _standing(advertised, self.state.advertisements),
            _standing(subscribed, self.state.subscriptions),
        )
        return await asyncio.to_thread(proved, standing)

    def _publishers(self) -> Publishers:
        """Publishers that match events themselves; some may go on with what a controller before us gave them."""
        gates, before = LabelGates(self._core, self._fleet), filter_lease_of(self.ledger.promised)
        return Publishers(self._core, gates, lambda: self.filter_lease, before)

    # How the network turns out.

    def _grow(self, topology: Topology, deliveries: Mapping[str, Mapping[int, Deliver]]) -> None:
        """Switches at which nothing is new get the difference; the others are read again, in their new ports."""
        state = self.state
        tables, rows = state.tables, {each: _row(state.topology, each) for each in state.topology.switches}
        state.grow(topology)
        other = [each for each in topology.switches if rows.get(each) != _row(topology, each)]
        for reconciler in self._fleet.grow({switch: deliveries.get(switch, {}) for switch in other}):
            self._core.tasks.start(reconciler.run())
        if self._core.deciding is None:  # else they tell, once they have gone over to it as well
            self._fleet.ask(
                state.changes_since({each: held for each, held in tables.items() if each not in other})
            )
        self._fleet.guard_anew()  # how closely hosts are guarded may depend on how many there are
        self._failover.grow()
        self._mender.grow()
        self._hindrances.grow()
        for switch in self._fleet.reachable.intersection(other):
            self._core.tasks.start(self._greeter.look_at_ports(switch))


def filter_lease_of(lease: float) -> float:
    """How long publishers may go on with what they hold of others' filters, where clients have such a lease."""
    return min(lease / LEASES, FILTER_LEASE_SECONDS)


def _twin_of(state: ControlState, settings: Settings, trees: TreeMap | None = None) -> ControlState:
    """A state for the same network without any request yet, under other settings."""
    return ControlState(state.topology, state.plan, trees or state.trees, settings, state.owner)


def _row(topology: Topology, switch: str) -> list[tuple[str, int]]:
    """Where the ports of a switch lead, and what it calls them."""
    return [(near, topology.number(switch, near)) for near in topology.neighbours(switch)]


def _standing(before: Mapping[str, Interest], after: Mapping[str, Interest]) -> list[Interest]:
    """The interests that were there before and are there still."""
    return [after[id] for id, known in before.items() if id in after and after[id].told == known.told]
