"""What a lab needs to be built: names on the machine, and the commands, as plain text. Nothing runs here.

All bridges live in one namespace, each host in its own, so names need to be unique within a lab only. A switch
keeps its own name where that can name a network interface; where one cannot, all switches are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flowsieve.errors import BadTopology
from flowsieve.header.host_groups import IPV4_NETWORK, HostAddresses, host_addresses
from flowsieve.network.topology import Topology

HOST_INTERFACE = "eth0"
SWITCHES = "switches"  # the name of the namespace in which the bridges are
IPV6_BITS = 64
MAX_PORTS = 4_000  # of all switches together; one command line holds them all
# A decision is cached for the prefix that it depends on; otherwise nearly for each address alone. Where sources are
# looked at, a host that forges them would fill the cache.
FLOW_TABLE = "prefixes=ipv6_dst,ip_dst"
ADMISSION_FLOW_TABLE = "prefixes=ipv6_src,ip_src,ipv6_dst"  # Open vSwitch has room for three
MAX_INTERFACE_NAME = 15  # the kernel's bound
TAKEN = frozenset({"lo", "all", "default"})

# A switch's interfaces speak nothing of their own.
SWITCH_SETTINGS = MappingProxyType(
    {
        "net/ipv6/conf/all/disable_ipv6": "1",
        "net/ipv6/conf/default/disable_ipv6": "1",
    }
)
# A host's address works at once, and the host asks for no routers: packets that nobody sent disturb figures.
HOST_SETTINGS = MappingProxyType(
    {
        "net/ipv6/conf/all/accept_dad": "0",
        "net/ipv6/conf/default/accept_dad": "0",
        "net/ipv6/conf/default/accept_ra": "0",
        "net/ipv6/conf/default/router_solicitations": "0",
        "net/ipv6/conf/default/addr_gen_mode": "1",  # no link-local address
    }
)


class Blueprint:
    """The names and commands of a lab of one topology.

    >>> from flowsieve.network.generators import line
    >>> plan = Blueprint(line(2))
    >>> plan.bridge("s1"), plan.interface("s1", "s0"), plan.datapath_id("s1"), plan.addresses("h1").ipv4
    ('s1', 's1.1', 2, '10.0.0.2')
    """

    def __init__(self, topology: Topology) -> None:
        ports = 2 * len(topology.links) + len(topology.hosts)
        if ports > MAX_PORTS:
            raise BadTopology(f"the topology has {ports:,} switch ports; a lab has room for {MAX_PORTS:,}")
        self.topology = topology
        self._bridges = _bridge_names(topology)
        self._numbers = {switch: number for number, switch in enumerate(topology.switches, 1)}
        self._namespaces = _namespace_names(topology)
        self._addresses = host_addresses(topology)

    def bridge(self, switch: str) -> str:
        """The bridge that is a switch."""
        self.topology.neighbours(switch)  # an unknown switch gets the topology's error
        return self._bridges[switch]

    def datapath_id(self, switch: str) -> int:
        """The switch's number in the topology, from 1."""
        self.topology.neighbours(switch)
        return self._numbers[switch]

    def interface(self, switch: str, neighbour: str) -> str:
        """The switch's end of the wire to a neighbour."""
        return f"{self._bridges[switch]}.{self.topology.port(switch, neighbour)}"

    def namespace(self, host: str) -> str:
        """What a host's namespace is called."""
        self.topology.endpoint(host)
        return self._namespaces[host]

    def addresses(self, host: str) -> HostAddresses:
        self.topology.endpoint(host)
        return self._addresses[host]

    def build(self, directory: Path) -> dict[str, Any]:
        """All that the keeper does, in the lab's directory, as a JSON value."""
        return {
            "switches": {
                "name": SWITCHES,
                "settings": dict(SWITCH_SETTINGS),
                "interfaces": list(self._interfaces()),
                "ip": self._wires(directory),
            },
            "hosts": [
                {
                    "name": self._namespaces[host],
                    "settings": dict(HOST_SETTINGS),
                    "interfaces": [HOST_INTERFACE],
                    "ip": _host_setup(self._addresses[host]),
                }
                for host in self.topology.hosts
            ],
            "vsctl": self._bridge_setup(),
            "ports": self._interfaces(),
            "bridges": list(self._bridges.values()),
        }

    def _interfaces(self) -> dict[str, int]:
        """The switches' interfaces, and the OpenFlow port that each is to be."""
        return {
            f"{bridge}.{port}": port
            for switch, bridge in self._bridges.items()
            for port in range(1, len(self.topology.neighbours(switch)) + 1)
        }

    def _wires(self, directory: Path) -> list[str]:
        lines = [
            f"link add {self.interface(link.a, link.b)} type veth peer name {self.interface(link.b, link.a)}"
            for link in self.topology.links
        ]
        for host, switch in self.topology.hosts.items():
            far = (
                f"{HOST_INTERFACE} address {self._addresses[host].mac}"
                f" netns {namespace_path(directory, self._namespaces[host])}"
            )
            lines.append(f"link add {self.interface(switch, host)} type veth peer name {far}")
        return lines + [f"link set {interface} up" for interface in self._interfaces()]

    def _bridge_setup(self) -> list[str]:
        """One transaction of ovs-vsctl: with one for each bridge a lab would take seconds."""
        words = ["--", "--id=@table", "create", "flow_table", FLOW_TABLE]
        words += ["--", "--id=@admission", "create", "flow_table", ADMISSION_FLOW_TABLE]
        for switch, bridge in self._bridges.items():
            words += ["--", "add-br", bridge, "--", "set", "bridge", bridge]
            words += ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow13,OpenFlow14"]
            words += [
                f"other_config:datapath-id={self._numbers[switch]:016x}",
                "flow_tables:0=@admission",
                "flow_tables:1=@table",
            ]
            for port in range(1, len(self.topology.neighbours(switch)) + 1):
                interface = f"{bridge}.{port}"
                words += ["--", "add-port", bridge, interface]
                words += ["--", "set", "interface", interface, f"ofport_request={port}"]
        return words[1:]


def namespace_path(directory: Path, name: str) -> Path:
    """Where a namespace of a lab can be opened."""
    return directory / "net" / name


def _host_setup(own: HostAddresses) -> list[str]:
    return [
        "link set lo up",
        f"link set {HOST_INTERFACE} up",
        f"addr add {own.ipv6}/{IPV6_BITS} dev {HOST_INTERFACE} nodad",
        f"addr add {own.ipv4}/{IPV4_NETWORK.prefixlen} dev {HOST_INTERFACE}",
        f"route add 224.0.0.0/4 dev {HOST_INTERFACE}",
        f"route replace ff00::/8 dev {HOST_INTERFACE}",
    ]


def _bridge_names(topology: Topology) -> Mapping[str, str]:
    own = all(
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", switch)
        and len(f"{switch}.{len(topology.neighbours(switch))}") <= MAX_INTERFACE_NAME
        and switch not in TAKEN
        and not switch.startswith("ovs-")
        for switch in topology.switches
    )
    return {switch: switch if own else f"b{number}" for number, switch in enumerate(topology.switches)}


def _namespace_names(topology: Topology) -> Mapping[str, str]:
    own = all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", host) for host in topology.hosts)
    own = own and SWITCHES not in topology.hosts
    return {host: host if own else f"h{number}" for number, host in enumerate(topology.hosts)}
