"""Peers that dialled us and were rejected: each is logged once, though it comes again every few seconds."""

from __future__ import annotations

import asyncio
import logging

log = logging.getLogger(__name__)

MOST = 256  # that are remembered; the oldest is forgotten first


class RejectedPeers:
    """`tell` logs a peer unless it has done so before, for the same reason."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], None] = {}

    def tell(self, writer: asyncio.StreamWriter, why: str) -> None:
        """Whoever is at the other end cannot be served."""
        peer = _peer(writer)
        if (peer, why) in self._told:
            return
        self._told[peer, why] = None
        if len(self._told) > MOST:
            del self._told[next(iter(self._told))]
        log.warning("a switch that dials us from %s is turned away: %s", peer, why)


def _peer(writer: asyncio.StreamWriter) -> str:
    """The host at the other end, without its port, which is a new one each time."""
    name = writer.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else "this machine"
