"""What the connections of one listening address may take in all, and each peer's address of that.

Each address that is listened at has a budget of its own: whatever is done at one, the others answer. So an operator's
unix socket is not to be had by connections over TCP. At a unix socket peers are not told apart: its file says who may
open it.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.serving.fair_shares import FairShares

MOST_CONNECTIONS = 4096
MOST_BYTES = 1 << 28  # of requests that came and answers that were not read yet
FREE_BYTES = 1 << 13  # that each connection may hold uncounted: most hold less, and counting takes time
IDLE_SECONDS = 60.0  # between two requests
CROWDED_SECONDS = 1.0  # likewise, where there is hardly room for another connection


@dataclass(frozen=True, eq=False, slots=True)
class Listener:
    """The budgets of one listening address, each shared by the addresses of peers."""

    connections: FairShares
    held_bytes: FairShares

    @classmethod
    def sharing(cls, room: int, listeners: int) -> Listener:
        """One of several that have room for so many connections together."""
        most = max(1, min(MOST_CONNECTIONS, room // listeners))
        return cls(FairShares(most), FairShares(MOST_BYTES))

    def idle_seconds(self, peer: str | None) -> float:
        """How long a connection of a peer may be idle: the less, the less room there is for another.

        Up to the half of what the peer may have, all the time; so the longest idle go first.
        """
        left = 2 * (1 - self.connections.fullness(peer))
        return max(CROWDED_SECONDS, min(1.0, left) * IDLE_SECONDS)
