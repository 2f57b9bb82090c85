"""How long and how large what clients and controllers tell each other may be."""

from __future__ import annotations

import re

MAX_DATAGRAM = 1232  # bytes, what every IPv6 link carries in one piece: 1280 less the headers of IPv6 and UDP
MAX_NUMBER = 2**63 - 1  # of calls, events and counts

# Calls.
SESSION = re.compile(r"[0-9a-f]{32}")
LONGEST_NAME = 200  # characters of a host's name, a token or an id
LONGEST_FILTER = 1 << 20  # characters
LONGEST_DEADLINE = 300.0  # seconds that a call may wait to be answered
LONGEST_LEASE = 86_400.0  # seconds that an interest may outlive its client

# Calls in band.
SESSION_BYTES = 16
DIGEST_BYTES = 8
PART_BYTES = 1152  # of an answer; the rest of a datagram is enough for what stands around them
MOST_PARTS = 4096
MOST_ASKED = 16  # parts asked for at a time

# Reports.
REPORTED_ROWS = 4096  # of one report
REPORT_BYTES = 65_536  # of one report over HTTP; in band a call fits one datagram
LONGEST_PAUSE = 60.0  # seconds from a report to the next

# Events.
MAX_CONTENT = 960  # bytes of values and data; the rest of a datagram is enough for any stamps
PUBLISHER_BYTES = 8
MAC_BYTES = 8
KEY_BYTES = 16
ADDRESS_BYTES = (4, 16)
