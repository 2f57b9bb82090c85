"""Open files, of which there are never enough."""

from __future__ import annotations

import resource
import subprocess
import sys

from flowsieve.serving.descriptors import OWN, room_for_clients

TRY = """
import resource
from flowsieve.serving.descriptors import raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
raise_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_as_many_may_be_open_as_are_allowed() -> None:
    done = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["400", "400"]


def test_clients_leave_some_to_us() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for limit, room in ((512, 512 - OWN), (OWN, 1)):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            assert room_for_clients() == room
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
