"""How many files and connections the process may have open: some are kept from clients for switches and journal."""

from __future__ import annotations

import resource
from contextlib import suppress

OWN = 256  # at least so many are kept for switches, the journal and the rest of us, or a quarter of all
MOST_AT_ONCE = 1024  # connections that are accepted in one go


def raise_limit() -> None:
    """Raise the limit as far as we may: a shell's default is low."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def room_for_clients() -> int:
    """How many connections clients may have."""
    soft = _most()
    return max(1, soft - _own(soft))


def accepted_at_once(listeners: int) -> int:
    """How many connections each of so many listeners may accept before those that are too many are closed again.

    Until then they take what is kept for us: half of it is left.
    """
    return max(1, min(MOST_AT_ONCE, _own(_most()) // 2 // listeners))


def _most() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def _own(most: int) -> int:
    return max(OWN, most // 4)
