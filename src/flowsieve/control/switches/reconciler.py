"""One switch kept at the table that it should have, while connections come and go.

Changes that are asked for while the switch is busy wait and become one net difference. Where it is unknown what
the switch holds, its table is read and the smallest difference to what it should be is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from flowsieve.control.core import Core
from flowsieve.control.switches.table_work import Rename, TableWork
from flowsieve.errors import GuardRefused, Refused, SwitchError, TableFull
from flowsieve.flow.diff import Change
from flowsieve.flow.guard import Guard
from flowsieve.header.encoding import Encoding

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0  # with one that fails again and again of the same
LONGEST_RETRY_SECONDS = 5.0  # with a switch that has no room at all; doubled up to it

MakeDo = Callable[[TableFull, int], Awaitable[None]]


class Reconciler:
    """`ask` for changes and wait until they are `reached`; `run` does the work.

    `make_do` has the table cut to the room that the switch has, given why it refused a batch and how many entries it
    holds; it raises Refused where that cannot be.
    """

    def __init__(self, switch: str, core: Core, work: TableWork, make_do: MakeDo) -> None:
        self.switch = switch
        self.work = work
        self.operations = 0
        self.trouble: str | None = "it has not connected yet"  # why it is not where it should be
        self._core = core
        self._make_do = make_do
        self._connected = False
        self._asked = self._reached = self._doubts = 0
        self.guard: Guard | None = None  # what it was last made to take in
        self._guard_due = True
        self._wake = asyncio.Event()
        self._waiting: deque[tuple[int, Waiter]] = deque()  # in the order of what they wait for

    @property
    def settled(self) -> bool:
        """Whether the switch has acknowledged all that it should hold."""
        return self.work.known and self._reached == self._asked

    def ask(self, changes: list[Change]) -> None:
        """Have the table changed, after all that was asked for before."""
        self._asked += 1
        self.work.ask(changes)
        self._wake.set()

    def reached(self) -> asyncio.Future[None]:
        """Done when the switch has acknowledged all that was asked for so far."""
        return all_reached([self])

    def expect(self, waiter: Waiter) -> None:
        """Tell of it when the switch has acknowledged all that was asked for so far."""
        self._waiting.append((self._asked, waiter))

    def connected(self) -> None:
        """The switch can be asked; what it holds has to be read."""
        self._connected = True
        self._core.unguarded.discard(self.switch)
        self.doubt("its table was not read yet")

    def disconnected(self, reason: str) -> None:
        self._connected = False
        self.doubt(f"it is not connected: {reason}")

    def doubt(self, why: str) -> None:
        """Read the table before anything builds on it."""
        self.work.known = False
        self.trouble = why
        self._doubts += 1
        self.guard_anew()

    def recode(self, encoding: Encoding, rename: Rename) -> bool:
        """Go on with other names for the same entries; False if it was known what the switch holds, and is not now."""
        before = self.work.known
        self.work.recode(encoding, rename)
        return self.work.known or not before

    def guard_anew(self) -> None:
        """What the switch's hosts may send has changed, or it is not known what the switch takes in."""
        self._guard_due = True
        self._asked += 1
        self._wake.set()

    def fail(self, error: Exception) -> None:
        """What waits cannot be had."""
        for _, waiter in self._waiting:
            waiter.fail(error)
        self._waiting.clear()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            retry = pause = RETRY_SECONDS
            told = ""  # why the last step failed
            while self._connected and not self.settled:
                try:
                    await self._step()
                except TableFull as error:
                    self.doubt(str(error))
                    try:
                        await self._make_do(error, self.work.size)
                    except Refused as reason:
                        self._wake.clear()
                        self.fail(reason)
                        await self._news_within(retry)
                        retry = min(2 * retry, LONGEST_RETRY_SECONDS)
                except SwitchError as error:
                    if str(error) != told:
                        told, pause = str(error), RETRY_SECONDS
                        log.warning("switch %s: %s", self.switch, error)
                    self.doubt(str(error))
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                else:
                    told = ""

    async def _news_within(self, seconds: float) -> None:
        """Wait until something is asked for or doubted, but no longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _step(self) -> None:
        """Make one batch of what is to be done; what comes of it does not count if doubts come up meanwhile."""
        core = self._core
        work, doubts, strays, known = self.work, self._doubts, [], self.work.known
        why = self.trouble
        if not known:
            flows = await core.switches.read(self.switch)
            if core.deciding is not None:
                await core.deciding.known()
            if self._doubts != doubts:
                return
            strays = work.read(flows)
        version, ops = self._asked, work.begin()
        orders: list[Awaitable[None]] = [self._guard()] if self._guard_due else []
        if strays or ops:
            orders.append(core.switches.apply(self.switch, [*strays, *ops] if strays else ops))
        failures = await _failures(orders)
        for failure in failures:
            if isinstance(failure, TableFull):  # before all others, since less can be asked for
                raise self._own(failure, len(strays)) from failure
        for failure in failures:
            raise failure
        if self._doubts != doubts:
            return
        if strays or ops:
            work.acknowledge()
            self.operations += len(strays) + len(ops)
            if not known:
                core.watcher.repaired(self.switch, len(strays) + len(ops))
                count = len(strays) + len(ops)
                log.info("switch %s: its table is set right by %d operations (%s)", self.switch, count, why)
        self.trouble = None
        self._reached = version
        self._tell()

    def _own(self, error: TableFull, strays: int) -> TableFull:
        """Why a batch was refused, told in entries of ours: those that there were when the switch came to one too many.

        What else it holds, whoever made it and whatever its cookie says, is no room that we can count on.
        """
        if error.at is None:
            return error
        held = self.work.size_after(max(0, error.at - strays))
        return TableFull(switch=self.switch, needed=held + 1, capacity=held, at=error.at)

    async def _guard(self) -> None:
        """Have the switch take in what it should; one that cannot be guarded takes in everything, and that is told."""
        core, self._guard_due = self._core, False
        guard = core.guard_of(self.switch)
        try:
            await core.switches.guard(self.switch, guard)
        except GuardRefused as error:
            if self.switch in core.unguarded:
                raise
            log.warning("%s; what its hosts send is not checked until it connects anew", error)
            core.unguarded.add(self.switch)
            guard = core.guard_of(self.switch)
            await core.switches.guard(self.switch, guard)
        self.guard = guard

    def _tell(self) -> None:
        waiting, reached = self._waiting, self._reached
        while waiting and waiting[0][0] <= reached:
            waiting.popleft()[1].tell()


async def _failures(work: Sequence[Awaitable[None]]) -> list[BaseException]:
    """What went wrong with one or two things that are done together, since a wait for packets to meet it follows each.

    What is alone is begun at once: that switch is at it while the batch of the next one is made.
    """
    if len(work) != 1:
        return [each for each in await asyncio.gather(*work, return_exceptions=True) if each is not None]
    try:
        await work[0]
    except Exception as error:
        return [error]
    return []


class Waiter:
    """Waits until some switches have each followed; there are thousands of them, so it is no task."""

    __slots__ = ("future", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self) -> None:
        self.left -= 1
        if self.left == 0 and not self.future.done():
            self.future.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def all_reached(reconcilers: Iterable[Reconciler]) -> asyncio.Future[None]:
    """Done when all of these switches have acknowledged all that was asked of them so far."""
    busy = [each for each in reconcilers if not each.settled]
    made = Waiter(len(busy))
    for each in busy:
        each.expect(made)
    if not busy:
        made.future.set_result(None)
    return made.future
