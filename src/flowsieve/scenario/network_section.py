"""The network of a scenario, from its `[network]`: links, a GraphML file or a generator, and the hosts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flowsieve.config.files import is_file
from flowsieve.config.toml import Section
from flowsieve.content.schema import listed, nearest_of, shown
from flowsieve.errors import BadScenario
from flowsieve.flow.tables.compiler import Tables
from flowsieve.network.generators import generate
from flowsieve.network.graphml import read_graphml
from flowsieve.network.topology import Link, Topology
from flowsieve.network.tree import MAX_TREES

LARGEST_CAPACITY = 2**31 - 1  # beyond any switch; without a bound the key is left out
NETWORK_KEYS = ("links", "topology", "hosts", "table_capacity", "tables", "trees")


@dataclass(frozen=True, slots=True)
class Network:
    """A topology and how tables are made on it.

    `capacity` is None where tables have no bound, `tables` where their kind is left to the control plane. `trees` are
    as many as there are partitions of the space, which so many `configurators` share. Where packets name receivers,
    these are in `host_sets` at least, if that is more than one, each with a tree of its own.
    """

    topology: Topology
    capacity: int | None
    tables: Tables | None
    trees: int
    configurators: int = 1
    host_sets: int = 1


def read_network(top: Section, switches: Iterable[str] | None = None) -> Network | None:
    """The network of a scenario, or None after a mistake that leaves no topology.

    Where the switches are given, links and hosts may be missing: they are to be found then.
    """
    if "network" not in top and switches is None:
        top.wrong(
            "network", "there is no [network]; right is one with links or topology, and [network.hosts]"
        )
        return None
    section = top.section("network")
    section.only(NETWORK_KEYS)
    capacity = section.whole("table_capacity", LARGEST_CAPACITY)
    tables = section.choice("tables", [kind.value for kind in Tables])
    trees = section.whole("trees", MAX_TREES)
    if trees is not None and trees.bit_count() != 1:
        section.wrong("trees", f"trees is {trees}; right is a power of two, 1, 2, 4, 8, … up to {MAX_TREES}")
    if switches is None or "links" in section or "topology" in section:
        topology = _read_switches(section)
    else:
        topology = Topology.make((), {}, switches)
    if topology is not None and switches is not None:
        topology = _check_switches(section, topology, list(switches))
    if topology is not None and (switches is None or "hosts" in section):
        topology = _with_hosts(section, topology)
    if topology is None:
        return None
    return Network(topology, capacity, None if tables is None else Tables(tables), trees or 1)


def _check_switches(section: Section, base: Topology, switches: list[str]) -> Topology | None:
    """The network with all switches that are given, if it has no others."""
    strange = [switch for switch in base.switches if switch not in switches]
    for switch in strange:
        hint = nearest_of(switch, switches) or f"; there are {listed(switches)}"
        section.wrong("links", f"switch {shown(switch)} is not among the switches that are given{hint}")
    if strange:
        return None
    return Topology.make(base.links, base.hosts, switches)


def _read_switches(section: Section) -> Topology | None:
    """The switches and their links; a generator makes hosts as well."""
    if ("links" in section) == ("topology" in section):
        both = "has both links and topology" if "links" in section else "has neither links nor topology"
        form = 'links = [["s1", "s2"]], or topology = "net.graphml" or "fat-tree:4"'
        section.wrong("topology", f"[network] {both}; right is one of them: {form}")
        return None
    if "links" in section:
        return _read_links(section)
    name = section.text("topology", "net.graphml")
    if name is None:
        return None
    if is_file(section.path.parent / name) or ("." in name and ":" not in name):
        path = section.file("topology", "net.graphml")
        if path is not None:
            with section.mistakes.kept():
                switches, links = read_graphml(path)
                with section.mistakes.kept(str(path)):
                    return Topology.make(links, {}, switches)
        return None
    with section.kept("topology"):
        return generate(name)
    return None


def _read_links(section: Section) -> Topology | None:
    entries = section.table["links"]
    right = 'right are pairs of switches, such as [["s1", "s2"]]'
    if not isinstance(entries, list) or not entries:
        section.wrong("links", f"links is {shown(entries)}; {right}")
        return None
    links: list[Link] = []
    for number, entry in enumerate(entries):
        with section.kept("links", number):
            if not isinstance(entry, list) or len(entry) != 2:
                raise BadScenario(f"link {number + 1} is {shown(entry)}; {right}")
            links.append(Link(*entry))
        if section.mistakes.full:
            break
    if len(links) < len(entries):
        return None
    with section.kept("links"):
        return Topology.make(links, {})
    return None


def _with_hosts(section: Section, base: Topology) -> Topology | None:
    """The topology with the scenario's hosts; a generated one has its own if the scenario has none."""
    if "hosts" not in section:
        if not base.hosts:
            section.wrong(
                "hosts",
                'there is no [network.hosts]; right is a table from host to switch, such as h1 = "s1"',
            )
        return base
    hosts = section.section("hosts")
    switches = set(base.switches)
    right = 0
    for host, switch in hosts.table.items():
        with hosts.kept(host):
            _check_host(host, switch, base, switches)
            right += 1
        if section.mistakes.full:
            break
    if right < len(hosts.table):
        return None
    with section.kept("hosts"):
        return Topology.make(base.links, hosts.table, base.switches)
    return None


def _check_host(host: str, switch: object, base: Topology, switches: set[str]) -> None:
    """Reject a host whose name or place cannot be."""
    if not isinstance(switch, str):
        raise BadScenario(f"host {shown(host)} is at {shown(switch)}; right is the name of a switch")
    if switch not in switches:
        hint = nearest_of(switch, base.switches) or f"; there are {listed(base.switches)}"
        raise BadScenario(f"host {shown(host)} is at unknown switch {shown(switch)}{hint}")
    if host in switches:
        raise BadScenario(f"{shown(host)} is a switch already; right is another name for the host")
