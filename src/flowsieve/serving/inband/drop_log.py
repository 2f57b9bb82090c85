"""Tells an operator why packets to the controller are dropped: once for each port and reason, then now and then."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum

from flowsieve.serving.inband.answer_cache import SwitchPort

log = logging.getLogger(__name__)

AGAIN_SECONDS = 600.0  # before the same is told once more, with how often it happened
MOST = 4096  # ports and reasons that are remembered
OFFLOAD = "`ethtool -K INTERFACE tx off` on the sending host has it finish checksums itself"


class DropReason(Enum):
    """Why a packet is dropped: the name of its counter, and what an operator can do.

    What comes from a port without a known host is told only if it lasts: the host may be about to be found.
    """

    BAD_CHECKSUM = (
        "bad_checksum",
        f"the way there damages packets, or a card does not finish them: {OFFLOAD}",
        0,
    )
    UNFINISHED = "unfinished", OFFLOAD, 0
    MALFORMED = "malformed", "only clients of flowsieve have anything to say to that address", 0
    OTHER_VERSION = "other_version", "install the controller's version there", 0
    FOREIGN = "foreign", "describe that host in [network.hosts], or plug it in where it is described", 3
    FORGED = "forged", "set FLOWSIEVE_HOST there to the name of the host itself", 0

    def __init__(self, counter: str, remedy: str, patience: float) -> None:
        self.counter = counter
        self.remedy = remedy
        self.patience = patience


@dataclass(slots=True)
class _Dropped:
    """When packets of a port were first dropped for a reason and last told of, and how many since then."""

    since: float
    told_at: float | None = None
    more: int = 0


class DropLog:
    """`note` logs a packet that is dropped, unless the like was told before; the time is the caller's."""

    def __init__(self) -> None:
        self._known: dict[tuple[SwitchPort, DropReason], _Dropped] = {}

    def note(self, place: SwitchPort, reason: DropReason, why: str, now: float) -> None:
        name = place, reason
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= MOST:
                del self._known[next(iter(self._known))]
            known = self._known[name] = _Dropped(now)
        due = known.since + reason.patience if known.told_at is None else known.told_at + AGAIN_SECONDS
        if now < due:
            known.more += 1
            return
        before = f" (and {known.more:,} before it)" if known.more else ""
        known.told_at, known.more = now, 0
        switch, port = place
        where = f"port {port} of switch {switch}"
        log.warning("a call from %s is dropped%s: %s; %s", where, before, why, reason.remedy)
