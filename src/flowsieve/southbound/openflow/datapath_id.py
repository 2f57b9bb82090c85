"""Who an OpenFlow switch is: its datapath id, written as the 16 hexadecimal digits that Open vSwitch shows."""

from __future__ import annotations

import re

from flowsieve.content.schema import shown
from flowsieve.errors import BadInput
from flowsieve.network.names import SwitchId

IDENTITY_KEY = "datapath_id"  # of [switches.NAME] in a configuration
MAX_DATAPATH = (1 << 64) - 1
HEX = re.compile(r"(0x)?[0-9a-f]{1,16}")


def switch_id(datapath: int) -> SwitchId:
    """The identity of a switch.

    >>> switch_id(161)
    '00000000000000a1'
    """
    return SwitchId(f"{datapath:016x}")


def read_identity(switch: str, value: object) -> SwitchId:
    """The identity that a configuration gives a switch: in hexadecimal digits, or as a number."""
    right = 'right is what the switch calls itself, such as "00000000000000a1" or 161'
    if value is None:
        raise BadInput(f"switch {switch!r} has no {IDENTITY_KEY}; {right}")
    number = value
    if isinstance(value, str):
        digits = value.lower().replace(":", "")
        number = int(digits, 16) if HEX.fullmatch(digits) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_DATAPATH:
        raise BadInput(f"the {IDENTITY_KEY} of switch {switch!r} is {shown(value)}; {right}")
    return switch_id(number)
