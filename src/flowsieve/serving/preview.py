"""What a controller would find and do if it started now, without starting it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

from flowsieve.control.memory.journal import Past
from flowsieve.control.memory.recovery import last_found, recover
from flowsieve.control.repair.cabling import Cabling
from flowsieve.control.state import ControlState
from flowsieve.control.switches.table_work import table_work
from flowsieve.flow.detours import NO_PROTECTION, Protection, bridged, protections, ways_around
from flowsieve.flow.guard import guard_of, labels_of
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.flow.punt import host_ports, link_ports, with_ports
from flowsieve.network.mend import Edge, tree_edges
from flowsieve.network.topology import Topology
from flowsieve.serving.chosen_sets import first_entries
from flowsieve.serving.config import Config
from flowsieve.serving.memory import looked_at
from flowsieve.serving.site.site import Site, described
from flowsieve.southbound.fabric import Fabric
from flowsieve.southbound.numbered import NumberedSwitches

CONNECT_SECONDS = 10.0
# What can be changed in a switch: content entries, service entries, meters, groups, ports.
KINDS = {
    "install": "entries to install",
    "modify": "entries to modify",
    "remove": "entries to remove",
    "service_install": "service entries to install",
    "service_remove": "service entries to remove",
    "meter_add": "meters to add",
    "meter_modify": "meters to modify",
    "meter_remove": "meters to remove",
    "group_add": "groups to add",
    "group_modify": "groups to modify",
    "group_remove": "groups to remove",
    "port_close": "ports to close",
    "port_open": "ports to open",
}


async def would_change(config: Config, site: Site) -> dict[str, dict[str, int]]:
    """What a controller would change in each switch if it started now; nothing is changed.

    A network that is yet to be found has no more in it than is known of it; what follows from finding it comes on top.
    """
    config = config.alone
    past = await looked_at(config, site)
    if first := first_entries(config, past, site.topology):
        past = Past(None, first)
    state, _ = recover(past, partial(config.fresh, site.topology))
    if state.found:
        state.grow(described(state.topology, site.topology))
    if state.bloom is not None:
        state.bloom.start()
    async with site.fabric(lambda event: None) as fabric:
        await fabric.wait_connected(CONNECT_SECONDS)
        start = _Start(config, site, state, fabric)
        await start.mend()
        found = {switch: await start.changes(switch) for switch in state.topology.switches}
    return {
        switch: {kind: kinds[kind] for kind in KINDS if kinds[kind]}
        for switch, kinds in found.items()
        if kinds
    }


class _Start:
    """A controller's start, as far as switches are concerned, over a state that was recovered."""

    def __init__(self, config: Config, site: Site, state: ControlState, fabric: Fabric) -> None:
        self._config, self._state, self._fabric = config, state, fabric
        self._encoding = state.encoding_now(config.index.encoding)
        self._guarding = config.guarding(partial(site.sources, family=config.index.encoding.family))
        self._switches = NumberedSwitches(fabric, lambda: state.topology)
        self._deliveries = deliveries_of(state.topology, config.index.encoding.family)
        self._closed: frozenset[Edge] = state.fenced
        self._detours: dict[str, Protection] = {}

    async def mend(self) -> None:
        """Have the trees follow the cabling as the switches see it.

        Fenced are then the dead links that were so before, and edges of the trees that have died since and that nothing
        bridges; other fences are opened.
        """
        state = self._state
        held = {switch: await self._switches.protection(switch) for switch in state.topology.switches}
        cabling = Cabling(state.topology, state.down)
        for switch in state.topology.switches:
            ports = dict.fromkeys(link_ports(state.topology, switch), False)
            for port, up in (ports | dict(await self._switches.ports(switch))).items():
                cabling.tell(switch, port, up)
        down, edges = cabling.down, tree_edges(state.trees)
        over = bridged(state.topology, held, (down & edges) - state.fenced, down | state.fenced)
        self._closed = (state.fenced | edges - over.keys()) & down
        if (down, self._closed) != (state.down, state.fenced):
            state.rewire(down, self._closed)
        self._detours = self._aims(held, down | self._closed)

    def _aims(self, held: Mapping[str, Protection], unusable: frozenset[Edge]) -> dict[str, Protection]:
        """What each switch is to do about dead links."""
        state, family = self._state, self._config.index.encoding.family
        topology, room = state.topology, self._config.detour_room(state.topology)
        if room == 0:
            return dict.fromkeys(topology.switches, NO_PROTECTION)
        edges = tree_edges(state.trees) - self._closed
        paths = ways_around(topology, edges, unusable, room, bridged(topology, held, edges))
        return protections(topology, paths.values(), family)

    async def changes(self, switch: str) -> Counter[str]:
        """What is changed at a switch, by its kind."""
        asked = self._entries, self._service, self._protection, self._ports
        return sum([await each(switch) for each in asked], Counter[str]())

    async def _entries(self, switch: str) -> Counter[str]:
        """Content entries, and what is in their place."""
        work = table_work(switch, self._encoding, lambda: self._state, self._deliveries.get(switch))
        there, strange = await self._fabric.look(switch)
        strays = work.read(self._switches.told(switch, there))
        return Counter(op.kind.name.lower() for op in [*strays, *work.begin()]) + Counter(remove=strange)

    async def _service(self, switch: str) -> Counter[str]:
        """Service entries and the guard's, and the meters that limit them."""
        state, topology, wanted = self._state, self._state.topology, self._config.service.punts
        punts = with_ports(wanted, host_ports(topology, switch), link_ports(topology, switch))
        advertised, guarding = state.advertised_at(switch), self._guarding(topology)
        policy, encoding = state.settings.policy, self._encoding
        allowed = None if policy.open else labels_of(advertised, state.labels, policy)
        guard = guard_of(
            topology, switch, encoding, advertised, guarding, state.owner, state.label_group, allowed
        )
        counted = Counter[str]()
        for todo in (
            await self._fabric.look_at_punts(switch, self._switches.numbered(switch, punts)),
            await self._fabric.look_at_guard(switch, self._switches.guard_there(switch, guard)),
        ):
            counted.update(
                service_install=todo.install,
                service_remove=todo.remove,
                meter_add=todo.new_limits,
                meter_modify=todo.changed_limits,
                meter_remove=todo.old_limits,
            )
        return counted

    async def _protection(self, switch: str) -> Counter[str]:
        """Groups and entries that lead around dead links, and the content entries that send to groups from then on."""
        todo = await self._fabric.look_at_detours(
            switch, self._switches.protection_there(switch, self._detours[switch])
        )
        return Counter(
            service_install=todo.install,
            service_remove=todo.remove,
            modify=todo.modify,
            group_add=todo.new_groups,
            group_modify=todo.changed_groups,
            group_remove=todo.old_groups,
        )

    async def _ports(self, switch: str) -> Counter[str]:
        """Ports to other switches that are closed, or opened; one that is not there can be neither."""
        topology, fenced = self._state.topology, await self._switches.fences(switch)
        there = set(link_ports(topology, switch)).intersection(await self._switches.ports(switch))
        wanted = {
            topology.port(switch, near)
            for near in topology.linked(switch)
            if frozenset((switch, near)) in self._closed
        }
        return Counter(port_close=len((wanted - fenced) & there), port_open=len((fenced - wanted) & there))


async def known_topology(config: Config, site: Site) -> Topology:
    """The network as far as it is known without asking any switch: as described, or as it was found before."""
    if not config.finds:
        return site.topology
    found = await _found(config, site)
    return described(found, site.topology) if found is not None else site.topology


async def is_found(config: Config, site: Site) -> bool:
    """Whether all of the network is known: described, or found before."""
    return not config.finds or await _found(config, site) is not None


async def _found(config: Config, site: Site) -> Topology | None:
    return last_found(await looked_at(config, site))
