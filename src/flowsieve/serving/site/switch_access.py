"""How the switches of a network that is no lab are reached, from a configuration's [switches] and [controller]."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.errors import BadInput
from flowsieve.network.lldp import MAX_DATAPATH
from flowsieve.network.names import Names
from flowsieve.network.port_numbers import Numbers
from flowsieve.southbound.socket_address import Address

SWITCHES, NAMES = "switches", "names"
SWITCH_KEYS = ("datapath_id", "address", "ports")
REACH_KEYS = ("listen", "vswitchd", "interface")  # of [controller]
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
HEX = re.compile(r"(0x)?[0-9a-f]{1,16}")


@dataclass(frozen=True)
class SwitchAccess:
    """Switches that dial us at `listen`, or that are dialled at their addresses; datapath ids tell them apart.

    `numbers` are what they call their ports, where that was said, and `hosts` names for those that are found, by
    MAC address. `vswitchd` is the control socket of the Open vSwitch that all of them live in, if there is one;
    `interface` the one that events come and go by on hosts, None for the only one.
    """

    datapaths: Mapping[str, int]
    addresses: Mapping[str, str] = field(default_factory=dict)
    listen: str | None = None
    numbers: Numbers = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)
    vswitchd: str | None = None
    interface: str | None = None

    @property
    def names(self) -> Names:
        return Names({number: switch for switch, number in self.datapaths.items()}, self.hosts)


def read_reach(top: Section, controller: Section) -> SwitchAccess | None:
    """What a configuration says of its switches; None if they are a lab's."""
    if SWITCHES not in top:
        for key in (key for key in REACH_KEYS if key in controller):
            controller.wrong(key, f"{key} is for switches that are no lab's; right are [switches.NAME], too")
        if NAMES in top:
            top.wrong(NAMES, "[names] is for hosts that are found, at [switches.NAME]; a lab's have names")
        return None
    section = top.section(SWITCHES)
    listen = _address(controller, "listen")
    datapaths: dict[str, int] = {}
    addresses: dict[str, str] = {}
    numbers: dict[str, Mapping[str, int]] = {}
    for name in section.table:
        switch = section.section(name)
        switch.only(SWITCH_KEYS)
        if not name:
            section.wrong(name, "a switch has no name; right is one, such as [switches.s1]")
            continue
        with switch.kept("datapath_id"):
            datapaths[name] = _datapath(name, switch.table.get("datapath_id"), datapaths)
            Names({datapaths[name]: name})
        address = _address(switch, "address")
        if address is not None:
            for other in (other for other, there in addresses.items() if _same(there, address)):
                switch.wrong("address", f"{address} is the address of {other!r} and of {name!r}")
            addresses[name] = address
        elif "address" not in switch and listen is None:
            section.wrong(
                name, f"switch {name!r} has no address, and [controller] does not listen; right is one"
            )
        if "ports" in switch:
            numbers[name] = switch.section("ports").table
        if top.mistakes.full:
            break
    if not section.table:
        top.wrong(SWITCHES, "[switches] has none; right is a table for each, such as [switches.s1]")
    return SwitchAccess(
        datapaths,
        addresses,
        listen,
        numbers,
        _hosts(top, datapaths),
        _address(controller, "vswitchd"),
        controller.text("interface", "eth0"),
    )


def _datapath(name: str, value: object, taken: Mapping[str, int]) -> int:
    """A datapath id as Open vSwitch shows it, in hexadecimal digits, or as a number."""
    right = 'right is what the switch calls itself, such as "00000000000000a1" or 161'
    if value is None:
        raise BadInput(f"switch {name!r} has no datapath_id; {right}")
    number = value
    if isinstance(value, str):
        digits = value.lower().replace(":", "")
        number = int(digits, 16) if HEX.fullmatch(digits) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_DATAPATH:
        raise BadInput(f"the datapath_id of switch {name!r} is {shown(value)}; {right}")
    for other, known in taken.items():
        if known == number:
            raise BadInput(f"the datapath_id {shown(value)} is that of {other!r} and of {name!r}")
    return number


def _address(section: Section, key: str) -> str | None:
    text = section.text(key, "tcp:127.0.0.1:6653")
    if text is not None:
        with section.kept(key):
            Address.parse(text)
            return text
    return None


def _same(one: str, other: str) -> bool:
    """Whether two addresses are one, however they are written."""
    return Address.parse(one) == Address.parse(other)


def check_listened(controller: Section, listen: str | None, http: Sequence[str]) -> None:
    """Tell of an address at which more than one is to be taken; port 0 is a new one each time."""
    taken: dict[Address, str] = {Address.parse(listen): "so has listen"} if listen is not None else {}
    for text in http:
        address = Address.parse(text)
        if address in taken and (address.path is not None or address.port):
            controller.wrong("http", f"http has {text}, and {taken[address]}; right is another port or path")
        taken[address] = "has it twice"


def _hosts(top: Section, switches: Collection[str]) -> dict[str, str]:
    """Names for hosts that are found."""
    section = top.section(NAMES)
    found: dict[str, str] = {}
    for mac, name in section.table.items():
        if not MAC.fullmatch(mac.lower()):
            section.wrong(mac, f"{shown(mac)} is no MAC address; right is one such as 02:00:00:00:00:01")
        elif not isinstance(name, str) or not name:
            section.wrong(mac, f"the name of {mac} is {shown(name)}; right is a text, such as 'h1'")
        elif mac.lower() in found:
            section.wrong(mac, f"{mac} is there twice; right is one name for it")
        elif name in switches:
            section.wrong(mac, f"{shown(name)} is a switch already; right is another name for {mac}")
        elif name in found.values():
            section.wrong(mac, f"{shown(name)} is the name of two hosts; right is another for {mac}")
        else:
            found[mac.lower()] = name
    return found
