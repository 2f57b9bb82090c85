"""What hosts ask, from the moment it is written down until the switches have followed, or it is taken back.

Requests that come together are one slice: the journal writes them at once, the state makes one difference of them,
and each is then acknowledged by itself, when the switches on its own way have followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flowsieve.control.core import Core
from flowsieve.control.filter_steps import FilterSteps
from flowsieve.control.memory.journal import Asked, Origin, Undone
from flowsieve.control.publishers import Publishers
from flowsieve.control.repair.fences import link_name
from flowsieve.control.repair.mender import Mender
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.dependencies import Dependencies
from flowsieve.control.state import Outcome
from flowsieve.control.switches.fleet import Fleet
from flowsieve.errors import BadInput, FlowsieveError, Refused, SwitchError
from flowsieve.protocol.answer import kind_of


@dataclass(frozen=True, slots=True)
class Taken:
    """What the state made of a request, and the switches that changed for it."""

    outcome: Outcome
    changed: Collection[str]


class Intake:
    """`serve` a request, or wait until one that was taken before is `served`.

    A request waits for the switches on its way, and for the `mender` where an edge on it carries nothing. An
    advertisement that ends is in force for `drain` seconds more. Where publishers match events, it waits for the
    `publishers` that have to know of it as well, and before that, where labels are Bloom filters, for its `steps`.
    """

    def __init__(
        self,
        core: Core,
        fleet: Fleet,
        mender: Mender,
        drain: float,
        publishers: Publishers | None = None,
        steps: FilterSteps | None = None,
    ) -> None:
        self.ending = False
        self._core = core
        self._fleet = fleet
        self._mender = mender
        self._publishers = publishers
        self._steps = steps
        self._drain = drain
        self._dependencies = Dependencies()

    async def serve(self, request: Request, origin: Origin | None, patience: float) -> Outcome:
        """Serve a request; returns when the switches that it depends on have acknowledged what follows from it.

        It is written down before it is worked on. An advertisement that ends shrinks late: what its publisher sent
        before has to arrive first. What ends, ends: a switch that is away hears of it when it is back.
        """
        self._core.state.check(request)
        if request.op is Op.UNADVERTISE:
            await asyncio.sleep(self._drain)
        taken: Taken = await self._core.scribe.write_together(Asked(request, origin), self._take)
        if taken.outcome.refused:
            ((_, reason),) = taken.outcome.refused
            await self._undo(request, origin, reason)
            return taken.outcome
        try:
            await self._acknowledged(request, taken.changed, patience, taken.outcome.steps)
        except Refused as reason:
            await self._undo(request, origin, reason)
            return Outcome({}, ((request, reason),))
        except SwitchError as error:
            if request.op.adding:
                await self._undo(request, origin, error)
                raise
        except asyncio.CancelledError:
            if request.op.adding and not self.ending:  # else it is served when the controller is back
                self._core.tasks.start(
                    self._undo(request, origin, SwitchError("its client did not wait for it"))
                )
            raise
        return taken.outcome

    async def served(self, request: Request, origin: Origin | None, patience: float) -> None:
        """Wait until a request that was taken before is served; it is taken back where it is not."""
        try:
            await self._acknowledged(request, (), patience)
        except (Refused, SwitchError) as error:
            await self._undo(request, origin, error)
            raise

    # Taking.

    def _take(self, entries: Sequence[Asked]) -> Sequence[Taken | BadInput]:
        """Decide on a slice; one after the other where one is bad, or tables are bounded: then the order matters.

        So it is where each is a step of its own, for which publishers wait by itself.
        """
        if len(entries) > 1 and not self._core.state.bounded and self._steps is None:
            try:
                return self._take_slice(entries)
            except BadInput:
                pass
        return [self._take_one(entry) for entry in entries]

    def _take_slice(self, entries: Sequence[Asked]) -> Sequence[Taken]:
        state = self._core.state
        ways = [self._way_of_ended(entry.request) for entry in entries]
        outcome = state.step([entry.request for entry in entries])
        assert not outcome.refused, outcome.refused  # only what is bounded can be full
        for entry in entries:
            self._core.ledger.asked(entry.request, entry.origin)
        self._follow([entry.request for entry in entries], outcome)
        return [Taken(outcome, self._changed(way, outcome)) for way in ways]

    def _way_of_ended(self, request: Request) -> set[str]:
        """The switches on the way of what a request ends."""
        op, state = request.op, self._core.state
        ended = None if op.adding else state.interests(op.side).get(request.id)
        return set() if ended is None else self._dependencies.of(state, op.side, ended)

    def _changed(self, way: set[str], outcome: Outcome) -> set[str]:
        """Which of these switches have something to follow; any of them where others decide on it later."""
        return way if self._core.deciding is not None else way & outcome.changes.keys()

    def _take_one(self, entry: Asked) -> Taken | BadInput:
        way = self._way_of_ended(entry.request) if self._core.deciding is not None else set()
        try:
            outcome = self._core.state.step([entry.request])
        except BadInput as error:
            return error
        if not outcome.refused:
            self._core.ledger.asked(entry.request, entry.origin)
        self._follow([entry.request], outcome)
        return Taken(outcome, way | outcome.changes.keys())

    def _follow(self, requests: Sequence[Request], outcome: Outcome) -> None:
        """Have switches and publishers follow what the state has decided."""
        self._fleet.follow(requests, outcome.changes)
        if self._publishers is not None:
            self._publishers.follow(outcome.told)
        if self._steps is not None:
            self._steps.follow(outcome.steps)

    # Waiting.

    async def _acknowledged(
        self, request: Request, changed: Collection[str], patience: float, steps: Collection[int] = ()
    ) -> None:
        try:
            async with asyncio.timeout(patience):
                await self._reached(request, changed, steps)
        except TimeoutError:
            raise SwitchError(self._excuse(patience)) from None

    async def _reached(self, request: Request, changed: Collection[str], steps: Collection[int]) -> None:
        """Wait for what changed for a request, and for what others before it still wait for on the same way."""
        side = request.op.side
        if self._core.deciding is not None:
            await self._core.deciding.decided((side, request.id))
        while True:
            if self._core.deciding is not None:
                await self._core.deciding.rewired()
            state = self._core.state
            trees, depends = state.trees, changed
            mine = state.interests(side).get(request.id) if request.op.adding else None
            if mine is not None:  # else it was ended meanwhile
                blocked = self._mender.blocked
                if blocked and not blocked.isdisjoint(self._dependencies.edges(state, side, mine)):
                    await self._mender.eased()
                    continue
                guards = self._core.guarded_by([request])
                depends = self._dependencies.of(state, side, mine).union(changed, guards)
            await self._fleet.reached(depends)
            if self._steps is not None and mine is not None:
                await self._steps.told(steps)
            if self._publishers is not None and mine is not None:
                await self._publishers.holding(state.filters.concerned(mine, side))
            if self._core.state.trees is trees:
                return

    def _excuse(self, patience: float) -> str:
        troubles, deciding = list(self._fleet.troubles.items())[:3], self._core.deciding
        waiting = [f"switch {switch}: {why}" for switch, why in troubles]
        if deciding is not None and deciding.trouble is not None:
            waiting.insert(0, deciding.trouble)
        waiting += [
            f"the link {name} carries nothing" for name in sorted(map(link_name, self._mender.blocked))[:3]
        ]
        if self._publishers is not None:
            waiting += [f"host {host}: {why}" for host, why in list(self._publishers.behind.items())[:3]]
        return f"not acknowledged within {patience:g} s, so it was taken back ({'; '.join(waiting) or 'cabling'})"

    # Taking back.

    async def _undo(self, request: Request, origin: Origin | None, reason: FlowsieveError) -> None:
        """Take a request back that was not served; its client will hear the reason, also if it asks again."""
        entry = Undone(request, origin, kind_of(reason), str(reason))
        await self._core.scribe.write(entry, lambda: self._take_back(entry), urgent=True)

    def _take_back(self, entry: Undone) -> None:
        request, state = entry.request, self._core.state
        there = request.id in state.interests(request.op.side)
        if there and self._core.ledger.brought(request, entry.origin):
            back = Request(request.op.reverse, request.id, request.endpoint)
            self._follow([back], state.step([back]))
        self._core.ledger.undone(request, entry.origin, entry.kind, entry.why)
