"""How many files and connections the process may have open: clients shall not take what switches and journal need."""

from __future__ import annotations

import resource
from contextlib import suppress

OWN = 256  # kept for switches, the journal and all else that is ours; where there is much, a quarter is


def raise_limit() -> None:
    """Have as many as we may; what a shell allows at first is little."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def room_for_clients() -> int:
    """How many connections clients may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(1, soft - max(OWN, soft // 4))
