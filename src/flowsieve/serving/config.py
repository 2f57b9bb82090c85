"""A controller's configuration: one file, read whole and checked before anything begins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from flowsieve.config.mistakes import Mistakes
from flowsieve.config.toml import Section
from flowsieve.content.schema import shown
from flowsieve.control.core import DetourRoom, Guarding
from flowsieve.control.discovery.discoverer import PUNTS as DISCOVERY_PUNTS
from flowsieve.control.partitions.division import partition_trees
from flowsieve.control.state import ControlState, Settings
from flowsieve.errors import BadInput
from flowsieve.flow.punt import Punt, host_ports, link_ports, with_ports
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.flow.tables.compiler import Tables
from flowsieve.header.address import Prefix
from flowsieve.header.receivers import HEADER as RECEIVERS
from flowsieve.header.tag import LABEL_HEADERS
from flowsieve.index.plan import plan_to_json
from flowsieve.index.sample import Resampler
from flowsieve.network.host_places import most_spread
from flowsieve.network.port_numbers import Numbers
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap
from flowsieve.protocol.addresses import CONTROL_ADDRESSES, CONTROL_PORT
from flowsieve.protocol.limits import LONGEST_LEASE
from flowsieve.scenario.control_section import check_division, check_room, partition_count
from flowsieve.scenario.index_section import (
    LABELS,
    IndexSection,
    check_label_hosts,
    labels_of,
    read_served,
)
from flowsieve.scenario.network_section import Network, read_network
from flowsieve.scenario.read import PARTS, check_label_room, check_labels, check_trees
from flowsieve.serving.calls.handler import LEASE_SECONDS, MOST_AT_ONCE
from flowsieve.serving.calls.key_rotation import ROTATION_SECONDS
from flowsieve.serving.control_section import ALONE, CONTROL, ControlSettings, read_control
from flowsieve.serving.detouring import detour_room
from flowsieve.serving.guarding import AUTO, GUARD_RATE, Choice, guard_entries, guarding
from flowsieve.serving.offers_section import OFFERS, read_offers
from flowsieve.serving.policy_section import POLICY, read_policy
from flowsieve.serving.site.switches_section import ACCESS_KEYS, NAMES, SWITCHES, check_listened, read_access
from flowsieve.serving.telemetry.settings import TELEMETRY, UNASKED, TelemetrySettings, read_telemetry
from flowsieve.southbound.socket_address import SocketAddress
from flowsieve.southbound.switch_access import SwitchAccess

T = TypeVar("T")
CONTROLLER = "controller"
KEYS = (
    "state",
    "http",
    "lease",
    "inband",
    "inband_rate",
    "deadline",
    "most_calls",
    "event_mac",
    "key_rotation",
    "failover",
    "guard",
    "guard_rate",
    *ACCESS_KEYS,
)
DEADLINE_SECONDS = 30.0
LARGEST_COUNT = 1_000_000
FOUND = "found"  # in the place of what is not configured
LONGEST_ROTATION = 366 * 86_400.0  # seconds with the same keys
INBAND_RATE = 2000  # packets per second and host that are handed to the controller


@dataclass(frozen=True)
class ServiceSettings:
    """How the service is run.

    `state` is the folder where the controller remembers, `http` where it takes requests besides the lab's own socket,
    `lease` how many seconds an interest outlives its client, `deadline` how long a request may wait for switches,
    `inband_rate` how many packets a second of each host are handed up, `most_calls` how many are worked on at a time.
    `event_mac` says whether events are signed, `key_rotation` for how many seconds with the same keys, `guard` whether
    hosts are held to what they have advertised, at `guard_rate` events a second (0: any number), `failover`
    whether detours bridge links that die, `policy` which hosts a publisher may address, `auto_offers` whether a plan
    that is offered may be gone over to without a person's approval.
    """

    state: Path | None = None
    http: tuple[str, ...] = ()
    lease: float = LEASE_SECONDS
    deadline: float = DEADLINE_SECONDS
    inband: bool = True
    inband_rate: int = INBAND_RATE
    most_calls: int = MOST_AT_ONCE
    event_mac: bool = True
    key_rotation: float = ROTATION_SECONDS
    guard: Choice = AUTO
    guard_rate: int = GUARD_RATE
    failover: Choice = AUTO
    policy: SendPolicy = EVERYBODY
    auto_offers: bool = False

    @property
    def punts(self) -> tuple[Punt, ...]:
        """What switches hand over: LLDP, and clients' calls."""
        addresses = CONTROL_ADDRESSES.values() if self.inband else ()
        calls = (Punt.to(address, CONTROL_PORT, rate=self.inband_rate) for address in addresses)
        return (*DISCOVERY_PUNTS, *calls)

    def entries(self, topology: Topology, capacity: int | None = None, groups: int = 1) -> int:
        """How many entries that, the guard and detours take where it takes most: each port has limits of its own.

        The guard has some for each of so many `groups` of addresses.
        """
        punts = max(
            (
                len(with_ports(self.punts, host_ports(topology, switch), link_ports(topology, switch)))
                for switch in topology.switches
            ),
            default=len(self.punts),
        )
        detours = detour_room(self.failover, capacity)(topology) or 0
        return punts + guard_entries(self.guard, topology, capacity, groups, self.policy) + detours


@dataclass(frozen=True)
class Config:
    """How contents are encoded, on which network, and how the service is run.

    Without a network of its own it takes any lab as it is. `access` says how switches outside a lab are reached;
    links and hosts that the file does not have are then found.
    """

    path: Path
    index: IndexSection
    network: Network | None
    service: ServiceSettings
    access: SwitchAccess | None = None
    finds_links: bool = False
    finds_hosts: bool = False
    control: ControlSettings = ALONE
    telemetry: TelemetrySettings = UNASKED

    @property
    def finds(self) -> bool:
        """Whether the network is to be found, all of it or a part."""
        return self.finds_links or self.finds_hosts

    @property
    def folder(self) -> Path | None:
        """Where the controller remembers; None if that is with its lab."""
        own = self.path.with_suffix(".state") if self.access is not None else None
        return self.service.state or own

    @property
    def capacity(self) -> int | None:
        """How many entries a switch has room for, if that is bounded."""
        return self.network.capacity if self.network is not None else None

    def guarding(self, sources: Callable[[Topology], Mapping[str, Prefix]]) -> Guarding:
        """How hosts are guarded; `sources` are their own addresses, as far as they are known."""
        service = self.service
        return guarding(
            service.guard, service.guard_rate, self.capacity, sources, self._groups, service.policy
        )

    @property
    def _groups(self) -> int:
        """How many tags hosts send events under."""
        return 1 if self.index.label_hosts is None else 2

    @property
    def detour_room(self) -> DetourRoom:
        """How many entries of a switch may be for detours."""
        return detour_room(self.service.failover, self.capacity)

    def fresh(self, topology: Topology, trees: TreeMap | None = None) -> ControlState:
        """The state of a controller without any request yet."""
        index, network, capacity = self.index, self.network, self.capacity
        settings = Settings(
            budget=index.budget,
            capacity=capacity,
            tables=(network.tables if network is not None else None) or Tables.OVERLAY,
            sample=self._resampled(index.plan),
            resample=self._resampled,
            reserve=lambda topology: self.service.entries(topology, capacity, self._groups),
            labelled=index.header in LABEL_HEADERS or index.label_hosts is not None,
            label_hosts=index.label_hosts,
            policy=self.service.policy,
            bloom=index.bloom,
            elsewhere=self.control.shared_out,
        )
        if trees is None and self.partitions > 1 and index.header not in LABEL_HEADERS:
            trees = partition_trees(topology, self.partitions, settings.sample)
        return ControlState(topology, index.plan, trees, settings)

    @cached_property
    def _resampled(self) -> Resampler:
        return Resampler(self.index.sample)

    @property
    def partitions(self) -> int:
        """Into how many parts the space is divided, each with a tree of its own."""
        control, trees = self.control, self.network.trees if self.network is not None else 1
        bits, capacity = self.index.plan.bits, self.capacity
        return partition_count(control.partitions, control.configurators, trees, bits, capacity)

    @property
    def host_sets(self) -> int:
        """Into how many sets of hosts, each with a tree of its own, a controller without a past puts receivers; those
        that are chosen are so many at least."""
        named = self.index.header == RECEIVERS or self.index.label_hosts is not None
        if not named or self.control.partitions in (None, 1):
            return 1
        chosen = () if self.index.sets is None else self.index.sets.sets
        return max(self.control.partitions or 1, len(chosen))

    @property
    def alone(self) -> Config:
        """The same for a controller that decides on all tables itself."""
        if not self.control.shared_out:
            return self
        return replace(self, control=replace(self.control, partitions=self.partitions, configurators=1))

    def base(self, topology: Topology) -> str:
        """A name for what a journal is about: the same only for the same contents, network and addresses."""
        parts = (
            str(plan_to_json(self.index.plan)),
            str(self.index.encoding.tag.group),
            FOUND if self.finds_links else str([(link.a, link.b) for link in topology.links]),
            FOUND if self.finds_hosts else str(self._hosts(topology)),
            *(() if self.index.label_hosts is None else (LABELS, *self.index.label_hosts.patterns)),
        )
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def _hosts(self, topology: Topology) -> list[tuple[str, str]]:
        """The hosts in an order that tells networks apart: their numbers follow it, and with these their addresses.

        Where links are found, the journal has the hosts as well, and their order is that of the journal.
        """
        hosts = topology.hosts.items()
        return sorted(hosts) if self.finds_links else list(hosts)

    def check_network(self, topology: Topology) -> None:
        """Raise where the network that is there is not the one in the file."""
        if self.network is not None and self.network.topology != topology:
            raise BadInput(
                f"the network of {self.path} is not the one that is there: {self.network.topology} in the file, "
                f"{topology} there; bring it up with `flowsieve lab up {self.path}`"
            )


def read_config(path: Path) -> Config:
    """A scenario's schema, index and network, and a section [controller]; its steps are ignored."""
    mistakes = Mistakes()
    top = Section.read(path, mistakes)
    top.only((*PARTS, CONTROL, CONTROLLER, POLICY, OFFERS, SWITCHES, NAMES, TELEMETRY))
    index = read_served(top)
    service = _read_service(top, read_policy(top, index.header if index is not None else None))
    control = read_control(top)
    telemetry = read_telemetry(top, index.plan.schema if index is not None else None)
    if index is not None:
        _check_control(top, control, index)
    access = read_access(top, top.section(CONTROLLER))
    if access is not None:
        mistakes.check()
        network = read_network(top, access.identities)
    else:
        network = read_network(top) if "network" in top else None
    if index is not None and network is not None:
        network = replace(network, host_sets=control.partitions or 1)
        chosen = index.sets if network.topology.hosts else None  # else it is not known yet who is there
        if index.header in LABEL_HEADERS:
            check_labels(top, network, labels_of(index, chosen))
        else:
            check_trees(top, network, index)
            if index.labels is not None:
                check_label_room(top, network, replace(index.labels, sets=chosen))
            if network.topology.hosts:
                check_label_hosts(top, index, network.topology)
    if network is not None and network.topology.hosts:
        with top.kept(POLICY):
            service.policy.check(network.topology.hosts)
    if access is not None and network is not None:
        _check_http(top, service)
        check_listened(top.section(CONTROLLER), access.listen, service.http)
        _check_finding(top, network, service)
        network = _numbered(top, network, access.numbers)
    mistakes.check()
    assert index is not None
    if access is None:
        return Config(path, index, network, service, control=control, telemetry=telemetry)
    assert network is not None
    found = _finds_links(top), _finds_hosts(top, network)
    return Config(path, index, network, service, access, *found, control, telemetry)


def _check_control(top: Section, control: ControlSettings, index: IndexSection) -> None:
    section, labelled = top.section(CONTROL), index.header in LABEL_HEADERS
    if control.shared_out and (labelled or index.label_hosts is not None):
        right = "right is configurators = 1"
        section.wrong("configurators", f"configurators decide where packets go by dz alone; {right}")
    said, most = control.partitions or 1, 1 if index.bloom is not None else most_spread()
    if said > most and (labelled or index.label_hosts is not None):
        one_tree = (
            "labels that are Bloom filters go along one tree; right is 1, or header 'receivers' in [index]"
        )
        many = f"a controller has receivers in {most} sets at most, each with a tree of its own; right is so many"
        section.wrong("partitions", f"partitions is {said}; {one_tree if index.bloom is not None else many}")
    if labelled:
        return
    check_division(top, control.partitions or control.configurators, index)
    check_room(
        top, control.partitions, control.configurators, top.section("network").table.get("table_capacity")
    )
    if control.partitions is not None and "trees" in top.section("network"):
        section.wrong(
            "partitions", "every partition has a tree of its own, so right is without trees in [network]"
        )


def _finds_links(top: Section) -> bool:
    said = top.section("network")
    return not ("links" in said or "topology" in said)


def _finds_hosts(top: Section, network: Network) -> bool:
    return "hosts" not in top.section("network") and not network.topology.hosts


def _check_finding(top: Section, network: Network, service: ServiceSettings) -> None:
    if _finds_hosts(top, network) and not service.inband:
        right = "right is inband = true, or [network.hosts] with all of them"
        top.section(CONTROLLER).wrong("inband", f"hosts are found by what they ask for in band; {right}")


def _check_http(top: Section, service: ServiceSettings) -> None:
    if not service.http:
        missing = "[controller] of a network that is no lab has no http"
        right = 'right is http = ["tcp:127.0.0.1:7420"] or a socket\'s path'
        top.section(CONTROLLER).wrong("http", f"{missing}; {right}")


def _numbered(top: Section, network: Network, numbers: Numbers) -> Network | None:
    """The network with the port numbers that its switches have; with links to be found, each host has to have one."""
    base, said = network.topology, top.section("network")
    for host, switch in base.hosts.items():
        if _finds_links(top) and host not in numbers.get(switch, {}):
            right = f"right is [switches.{switch}] with ports = {{ {host} = 1 }}"
            said.wrong("hosts", f"host {shown(host)} has no port, and the links are to be found; {right}")
            return None
    for switch, row in numbers.items():
        if linked := [near for near in row if _finds_links(top) and near in base.switches]:
            right = "right are the links in [network], or the ports of hosts alone"
            top.section(SWITCHES).section(switch).wrong(
                "ports",
                f"switch {shown(switch)} has a port to switch {shown(linked[0])}, and the links are to be found, "
                f"with their ports; {right}",
            )
            continue
        with top.section(SWITCHES).section(switch).kept("ports"):
            Topology.make(base.links, base.hosts, base.switches, {switch: row})
    top.mistakes.check()
    return replace(network, topology=Topology.make(base.links, base.hosts, base.switches, numbers))


def _read_service(top: Section, policy: SendPolicy) -> ServiceSettings:
    """The section [controller], where every key has a default; a policy is nothing without a guard."""
    section = top.section(CONTROLLER)
    section.only(KEYS)
    state = section.text("state", "state")
    if not policy.open and section.table.get("guard") is False:
        section.wrong(
            "guard", "there is a [policy], and nothing but the guard holds hosts to it; right is guard = true"
        )
    default = ServiceSettings()
    return ServiceSettings(
        state=top.path.parent / state if state is not None else None,
        http=_addresses(section),
        lease=_seconds(section, "lease", default.lease),
        deadline=_seconds(section, "deadline", default.deadline),
        inband=_truth(section, "inband", default.inband),
        inband_rate=_count(section, "inband_rate", default.inband_rate),
        most_calls=_count(section, "most_calls", default.most_calls),
        event_mac=_truth(section, "event_mac", default.event_mac),
        key_rotation=_seconds(section, "key_rotation", default.key_rotation, LONGEST_ROTATION),
        guard=_checked(section, "guard", default.guard, _is_choice, 'true, false or "auto"'),
        guard_rate=_count(section, "guard_rate", default.guard_rate, least=0),
        failover=_checked(section, "failover", default.failover, _is_choice, 'true, false or "auto"'),
        policy=policy,
        auto_offers=read_offers(top),
    )


def _addresses(section: Section) -> tuple[str, ...]:
    found = section.table.get("http", [])
    right = 'right is a list of addresses, such as ["tcp:127.0.0.1:7420", "unix:/run/flowsieve.sock"]'
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        section.wrong("http", f"http is {shown(found)}; {right}")
        return ()
    for each in found:
        with section.kept("http"):
            SocketAddress.parse(each)
    return tuple(found)


def _count(section: Section, key: str, default: int, least: int = 1) -> int:
    right = f"a whole number from {least} to {LARGEST_COUNT}"
    return _checked(section, key, default, lambda it: type(it) is int and least <= it <= LARGEST_COUNT, right)


def _is_choice(value: Any) -> bool:
    return isinstance(value, bool) or value == AUTO


def _seconds(section: Section, key: str, default: float, longest: float = LONGEST_LEASE) -> float:
    right = f"a number of seconds up to {longest:g}"

    def fits(value: Any) -> bool:
        return type(value) in (int, float) and 0 < value <= longest

    return float(_checked(section, key, default, fits, right))


def _truth(section: Section, key: str, default: bool) -> bool:
    return _checked(section, key, default, lambda it: isinstance(it, bool), "true or false")


def _checked(section: Section, key: str, default: T, fits: Callable[[Any], bool], right: str) -> T:
    """The value of a key where it fits, and else its default."""
    value: T = section.table.get(key, default)
    if not fits(value):
        section.wrong(key, f"{key} is {shown(value)}; right is {right}")
        return default
    return value
