"""Who the switches of a configuration are and how they are reached: its [switches], [names] and [controller]."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.errors import BadInput
from flowsieve.network.names import SwitchId
from flowsieve.southbound.kinds import IDENTITY_KEY, read_identity
from flowsieve.southbound.socket_address import SocketAddress
from flowsieve.southbound.switch_access import SwitchAccess

SWITCHES, NAMES = "switches", "names"
SWITCH_KEYS = (IDENTITY_KEY, "address", "ports")
ACCESS_KEYS = ("listen", "vswitchd", "interface")  # of [controller]
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def read_access(top: Section, controller: Section) -> SwitchAccess | None:
    """What a configuration says of its switches; None if they are a lab's."""
    if SWITCHES not in top:
        for key in (key for key in ACCESS_KEYS if key in controller):
            controller.wrong(key, f"{key} is for switches that are no lab's; right are [switches.NAME], too")
        if NAMES in top:
            top.wrong(NAMES, "[names] is for hosts that are found, at [switches.NAME]; a lab's have names")
        return None
    section = top.section(SWITCHES)
    listen = _address(controller, "listen")
    identities: dict[str, SwitchId] = {}
    addresses: dict[str, str] = {}
    numbers: dict[str, Mapping[str, int]] = {}
    for name in section.table:
        switch = section.section(name)
        switch.only(SWITCH_KEYS)
        if not name:
            section.wrong(name, "a switch has no name; right is one, such as [switches.s1]")
            continue
        with switch.kept(IDENTITY_KEY):
            identities[name] = _identity(name, switch, identities)
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
        identities,
        addresses,
        listen,
        numbers,
        _hosts(top, identities),
        _address(controller, "vswitchd"),
        controller.text("interface", "eth0"),
    )


def _identity(name: str, switch: Section, taken: Mapping[str, SwitchId]) -> SwitchId:
    value = switch.table.get(IDENTITY_KEY)
    identity = read_identity(name, value)
    for other in (other for other, known in taken.items() if known == identity):
        raise BadInput(f"the {IDENTITY_KEY} {shown(value)} is that of {other!r} and of {name!r}")
    return identity


def _address(section: Section, key: str) -> str | None:
    text = section.text(key, "tcp:127.0.0.1:6653")
    if text is not None:
        with section.kept(key):
            SocketAddress.parse(text)
            return text
    return None


def _same(one: str, other: str) -> bool:
    """Whether two addresses are the same, however they are written."""
    return SocketAddress.parse(one) == SocketAddress.parse(other)


def check_listened(controller: Section, listen: str | None, http: Sequence[str]) -> None:
    """Report an address that is used twice; port 0 is a new one each time."""
    taken: dict[SocketAddress, str] = (
        {SocketAddress.parse(listen): "so has listen"} if listen is not None else {}
    )
    for text in http:
        address = SocketAddress.parse(text)
        if address in taken and (address.path is not None or address.port):
            controller.wrong("http", f"http has {text}, and {taken[address]}; right is another port or path")
        taken[address] = "has it twice"


def _hosts(top: Section, switches: Collection[str]) -> dict[str, str]:
    """The names that [names] gives to hosts that are found."""
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
