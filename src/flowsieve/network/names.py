"""What the switches and hosts that are found are called: as configured, or after their own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from flowsieve.errors import BadTopology
from flowsieve.network.lldp import MAX_DATAPATH

SMALL = 0xFFFF  # datapath ids up to here are shown as people count, others in full


@dataclass(frozen=True, slots=True)
class Names:
    """Switches by datapath id and hosts by MAC address, each as configured or else made from that number.

    >>> names = Names(switches={7: "berlin"}, hosts={"02:00:00:00:00:01": "ann"})
    >>> names.switch(7), names.switch(1), names.switch(0xa0b0c0d0e0f), names.datapath("s00000a0b0c0d0e0f")
    ('berlin', 's1', 's00000a0b0c0d0e0f', 11042563100175)
    >>> names.host("02:00:00:00:00:01"), names.host("02:00:00:00:00:ff")
    ('ann', 'h0200000000ff')
    """

    switches: Mapping[int, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    _datapaths: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        datapaths: dict[str, int] = {}
        for number, name in self.switches.items():
            if not 0 <= number <= MAX_DATAPATH:
                raise BadTopology(f"switch {name!r} has the datapath id {number}; right is 0 to 2^64 - 1")
            if name in datapaths:
                raise BadTopology(f"{name!r} is the name of the datapaths {datapaths[name]} and {number}")
            if _read_in_full(name) not in (None, number):
                raise BadTopology(
                    f"datapath {number} is called {name!r}, which says another datapath id; right is another name"
                )
            datapaths[name] = number
        hosts = {mac.lower(): name for mac, name in self.hosts.items()}
        object.__setattr__(self, "switches", MappingProxyType(dict(self.switches)))
        object.__setattr__(self, "hosts", MappingProxyType(hosts))
        object.__setattr__(self, "_datapaths", datapaths)

    def switch(self, datapath: int) -> str:
        """What a switch is called; a made name that is taken gives way to the id in full."""
        if datapath in self.switches:
            return self.switches[datapath]
        short = f"s{datapath}"
        return short if datapath <= SMALL and short not in self._datapaths else f"s{datapath:016x}"

    def datapath(self, switch: str) -> int:
        """The datapath id behind a name: the inverse of `switch`."""
        if switch in self._datapaths:
            return self._datapaths[switch]
        number = _read_in_full(switch)
        if number is None and switch[:1] == "s" and switch[1:].isdecimal() and len(switch) <= 6:
            number = int(switch[1:])
        if number is None or self.switch(number) != switch:
            raise BadTopology(
                f"nobody said which datapath id switch {switch!r} has; a name such as 's1' would tell it"
            )
        return number

    def host(self, mac: str) -> str:
        """What a host is called."""
        return self.hosts.get(mac) or f"h{mac.replace(':', '')}"


def _read_in_full(name: str) -> int | None:
    """The datapath id that a made name spells out, if it is such a name."""
    try:
        number = int(name[1:], 16)
    except ValueError:
        return None
    return number if name == f"s{number:016x}" else None
