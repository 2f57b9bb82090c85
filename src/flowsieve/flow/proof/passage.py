"""What becomes of copies that a switch sends: whether the port carries them, and whether they arrive as events."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from flowsieve.flow.entry import Action, Deliver, Flow
from flowsieve.flow.label_view import TreeView
from flowsieve.flow.others import NOBODY_ELSE, Foreign, Others, PortSetting, SentCopy
from flowsieve.flow.view import NetworkView
from flowsieve.header.address import Prefix
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """The ports of a network as they are set, its links that are down, and what each host takes for an event.

    `group` holds the addresses of all events.
    """

    topology: Topology
    group: Prefix
    others: Mapping[str, Others]
    deliveries: Mapping[str, Mapping[int, Deliver]] | None
    down: Collection[Edge]

    @classmethod
    def of(cls, view: NetworkView) -> Passage:
        return cls(view.topology, view.encoding.tag.group, view.others, view.deliveries, view.down)

    @classmethod
    def of_labels(cls, view: TreeView) -> Passage:
        """That of a network whose packets are labelled."""
        return cls(view.topology, view.group, view.others, view.deliveries, ())

    def entries(self, switch: str) -> tuple[Foreign, ...]:
        """The entries of others that events may meet at a switch, the lowest rank first."""
        ports = len(self.topology.neighbours(switch))
        there = [
            each
            for each in self.others.get(switch, NOBODY_ELSE).entries
            if each.within(self.group) and (each.in_port is None or 1 <= each.in_port <= ports)
        ]
        return tuple(sorted(there, key=lambda each: each.rank))

    # Ports.

    def setting(self, switch: str, port: int) -> PortSetting:
        return self.others.get(switch, NOBODY_ELSE).ports.get(port, PortSetting.OPEN)

    def shut(self, switch: str, port: int) -> str | None:
        """Why nothing gets out of a port to what is behind it, if that is so."""
        far = self.topology.neighbour(switch, port)
        if frozenset((switch, far)) in self.down:
            return f"the link {switch} - {far} is down"
        if (own := self.setting(switch, port)).mute:
            return f"the port of {switch} to {far} is set to {own}"
        if far not in self.topology.attached:
            other = self.setting(far, self.topology.port(far, switch))
            if other.deaf:
                return f"the port of {far} to {switch} is set to {other}"
        return None

    def unheard(self, host: str) -> str | None:
        """Why a host is not heard at all, if that is so."""
        switch = self.topology.attached[host]
        setting = self.setting(switch, self.topology.port(switch, host))
        return f"the port of {switch} to {host} is set to {setting}" if setting.deaf else None

    def shut_ports(self) -> Iterator[tuple[str, int]]:
        """All ports that nothing gets out of."""
        if not self.down and not any(each.ports for each in self.others.values()):
            return
        for switch in self.topology.switches:
            for port in range(1, len(self.topology.neighbours(switch)) + 1):
                if self.shut(switch, port) is not None:
                    yield switch, port

    # Addresses.

    def arrives(self, switch: str, copy: SentCopy) -> bool | None:
        """Whether a copy sent out of a port is an event to whoever is there; None if that cannot be told."""
        near = self.topology.neighbours(switch)
        if not 1 <= copy.port <= len(near):
            return False
        if near[copy.port - 1] not in self.topology.attached:  # only the last hop looks at the MAC address
            inside = copy.address is not None and self.group.covers(copy.address)
            return None if inside else copy.address is None
        plain = SentCopy(copy.port)
        if self.deliveries is None:
            return True if copy == plain else None
        right = self.deliveries.get(switch, {}).get(copy.port)
        return copy == (plain if right is None else SentCopy.of(right))

    def misses(self, switch: str, action: Action) -> bool:
        """Whether what an entry of ours sends out of a port of its switch is no event to whoever is there."""
        there = 1 <= action.port <= len(self.topology.neighbours(switch))
        return there and self.arrives(switch, SentCopy.of(action)) is False

    def lost(self, switch: str, copy: SentCopy) -> str | None:
        """Why a copy that is sent out of a port does not arrive as an event, if it does not."""
        if why := self.shut(switch, copy.port):
            return why
        if self.arrives(switch, copy) is False:
            far = self.topology.neighbour(switch, copy.port)
            return f"{switch} sends it to {far} under an address that is not what {far} takes for an event"
        return None

    def arriving(self, tables: Mapping[str, tuple[Flow, ...]]) -> Mapping[str, tuple[Flow, ...]]:
        """Tables without the actions that send what nobody takes for an event; the same tables if there are none."""
        if self.deliveries is None:
            return tables
        found = dict(tables)
        for switch, flows in tables.items():
            known: dict[
                int, tuple[Action, ...]
            ] = {}  # few actions stand in many entries, the same objects in most
            changed = False
            for flow in flows:
                if id(flow.actions) not in known:
                    kept = tuple(each for each in flow.actions if not self.misses(switch, each))
                    known[id(flow.actions)] = flow.actions if len(kept) == len(flow.actions) else kept
                    changed = changed or known[id(flow.actions)] is not flow.actions
            if changed:
                found[switch] = tuple(replace(flow, actions=known[id(flow.actions)]) for flow in flows)
        return found
