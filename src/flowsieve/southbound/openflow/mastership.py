"""Whether the switches are ours to change: all of them are, or none.

Half of a network under one controller and half under another would have its trees mixed. So before the first switch
is claimed, all that are there are asked who holds them, and as soon as one turns out to be another's, we leave every
one alone, to the end: who is to go on is for a person to decide.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from flowsieve.errors import JournalError, SwitchError
from flowsieve.southbound.fabric import Claim
from flowsieve.southbound.openflow.events import RoleTold
from flowsieve.southbound.openflow.roles import MASTER, RoleReply, RoleStatus
from flowsieve.southbound.openflow.switch_session import Rejected, SwitchSession

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # from the first answer on, for switches that are slower to say who holds them
ATTEMPTS = 3  # at a switch that others claim at the same time
FEW = 3  # names in a message


class HeldByAnother(SwitchError):
    """Another controller holds switches of ours, so none of them is ours to change."""


class Mastership:
    """`admit` makes us the master of a switch; `leave` is called when we have to let go of all of them.

    `expected` says how many switches there are.
    """

    def __init__(self, claim: Claim, expected: Callable[[], int], leave: Callable[[str], None]) -> None:
        self.standing_by: str | None = None  # why every switch is left alone, if it is
        self.decided = asyncio.Event()  # set once every switch is left alone
        self._claim = claim
        self._expected = expected
        self._leave = leave
        self._answered: set[str] = set()
        self._all_answered = asyncio.Event()
        self._look_until: float | None = None
        self._foreign: dict[str, int] = {}  # the generations of other controllers, by switch
        self._without_roles: set[str] = set()

    async def admit(self, switch: str, session: SwitchSession) -> None:
        """Become the master of a switch that has connected; raises HeldByAnother where that is not for us.

        A switch that knows no roles is taken as it is.
        """
        for _ in range(ATTEMPTS):
            self._check()
            told = await self._asked(switch, session)
            self._note(switch, told.generation if told is not None else None)
            await self._looked_at_all(switch)
            if self._foreign:
                self._stand_by()
            self._check()
            claimed = told is None or await self._claimed(switch, session, told.generation)
            self._check()  # meanwhile somebody may have taken this one, or another
            if claimed:
                return
        raise SwitchError("others claim it at the same time")

    def demoted(self, switch: str, status: RoleStatus) -> bool:
        """A switch says that we are not its master any more; whether another controller is, as far as it says."""
        self._note(switch, status.generation)
        if not self._foreign:
            return False  # or it was another connection of our own: the next one asks
        self._stand_by()
        return True

    def _check(self) -> None:
        if self.standing_by is not None:
            raise HeldByAnother(self.standing_by)

    def _note(self, switch: str, generation: int | None) -> None:
        if generation is not None and not self._claim.covers(generation):
            self._foreign[switch] = generation

    def _stand_by(self) -> None:
        if self.standing_by is None:
            names = [f"{each} (generation {number:#x})" for each, number in sorted(self._foreign.items())]
            more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
            self.standing_by = f"another controller holds {', '.join(names[:FEW])}{more}"
            self.decided.set()
            self._all_answered.set()
            self._leave(self.standing_by)

    def looked_at(self, switch: str) -> None:
        """A switch has said who holds it, or cannot be asked: nobody waits for it any more."""
        self._answered.add(switch)
        if len(self._answered) >= self._expected():
            self._all_answered.set()

    async def _looked_at_all(self, switch: str) -> None:
        """Wait until all switches have said who holds them, or those that did not have had the time."""
        now = asyncio.get_running_loop().time()
        self._look_until = self._look_until or now + LOOK_SECONDS
        self.looked_at(switch)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._look_until):
                await self._all_answered.wait()

    async def _asked(self, switch: str, session: SwitchSession) -> RoleReply | None:
        """Who holds a switch; None if it knows no roles."""
        try:
            told = (await session.ask(session.connection.ask_role(), RoleTold)).told
        except Rejected as why:
            self._does_without(switch, str(why))
            return None
        if told is None:
            self._does_without(switch, "it does not say which it has")
        return told

    async def _claimed(self, switch: str, session: SwitchSession, before: int | None) -> bool:
        """Claim a switch; false if somebody else was faster."""
        try:
            number = await self._claim.above(before)
        except JournalError as error:
            raise SwitchError(str(error)) from error
        try:
            told = (await session.ask(session.connection.claim(number), RoleTold)).told
        except Rejected as why:
            if why.failure.stale:
                return False
            self._does_without(switch, str(why))
        else:
            if told is None or told.role != MASTER:
                self._does_without(switch, "it does not say that it is ours")
        return True

    def _does_without(self, switch: str, why: str) -> None:
        if switch not in self._without_roles:
            self._without_roles.add(switch)
            log.warning(
                "switch %s knows no roles (%s): it does not keep a second controller from changing it",
                switch,
                why,
            )
