"""How many files and connections the process may have open: some are kept from clients for switches and journal."""

from __future__ import annotations

import resource
from contextlib import suppress

OWN = 256  # at least so many are kept for switches, the journal and the rest of us, or a quarter of all


def raise_limit() -> None:
    """Raise the limit as far as we may: a shell's default is low."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def room_for_clients() -> int:
    """How many connections clients may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(1, soft - max(OWN, soft // 4))
