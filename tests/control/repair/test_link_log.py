"""Links that go down, come back and flap, in words; each is told when it changes, and not again."""

from __future__ import annotations

import pytest

from flowsieve.control.repair.link_log import LinkLog
from flowsieve.network.generators import ring
from flowsieve.network.mend import Edge

NONE: frozenset[Edge] = frozenset()


def test_a_link_is_told_of_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    network, log = ring(3), LinkLog()
    dead = frozenset({frozenset(("s0", "s1"))})
    gone = frozenset({frozenset(("s8", "s9"))})  # of a network before
    for down, left_out in ((NONE, NONE), (dead, NONE), (dead, NONE), (NONE, dead | gone), (gone, NONE)):
        log.tell(network, down, left_out)
    link = "s0 (port 1) - s1 (port 1)"
    assert caplog.messages == [
        f"link {link} is down",
        f"link {link} is up again",
        f"link {link} comes and goes, and is left out until it is stable",
        f"link {link} is stable, and is used again when it is up",
    ]
