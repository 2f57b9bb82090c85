"""What the parts of a dispatcher share: the state that decides, switches, memory, and work in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flowsieve.control.memory.scribe import Scribe
from flowsieve.control.request import Request
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.state import ControlState
from flowsieve.control.transition.crossing import CrossingPhase
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.flow.diff import Change
from flowsieve.flow.entry import Deliver
from flowsieve.flow.guard import Guard, GuardSettings, guard_of, labels_of
from flowsieve.flow.punt import Punt, host_ports, link_ports, with_ports
from flowsieve.flow.send_policy import SendPolicy
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.encoding import Encoding, PrefixEncoding
from flowsieve.network.topology import Topology
from flowsieve.protocol.addresses import EVENT_PORT
from flowsieve.southbound.fabric import LiveSwitches
from flowsieve.tasks import Tasks

LATE_EVENTS = 2_000  # a second of each host, that are handed up since their publisher has not gone over yet
Guarding = Callable[[Topology], GuardSettings | None]


DetourRoom = Callable[[Topology], int | None]


def no_detours(topology: Topology) -> int | None:
    """For a network in which dead links are mended by the controller alone."""
    return 0


def not_guarded(topology: Topology) -> GuardSettings | None:
    """For a network whose hosts are trusted."""
    return None


class Deciding(Protocol):
    """Those who decide on tables in the place of the state, where it does not."""

    def attach(self, state: ControlState, ask: Callable[[Mapping[str, list[Change]]], None]) -> None:
        """Decide for a state from now on, and have tables changed by what `ask` takes."""
        ...

    async def decided(self, key: tuple[Side, str]) -> None:
        """Wait until all that was asked of an interest is decided; raises Refused where there is no room for it."""
        ...

    async def caught_up(self) -> None:
        """Wait until all that was asked for so far is decided."""
        ...

    async def rewired(self) -> None:
        """Wait until tables for the trees of now are decided."""
        ...

    async def known(self) -> None:
        """Wait until it is known what tables should be; nothing may build on them before."""
        ...

    @property
    def idle(self) -> bool:
        """Whether all that was asked for is decided."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why nothing is decided, if so."""
        ...


class Watcher(Protocol):
    """Counts what had to be set right."""

    def repaired(self, switch: str, operations: int) -> None:
        """A table was not as it should be."""
        ...

    def mended(self, seconds: float) -> None:
        """Trees follow the cabling again, so many seconds after it was told."""
        ...


class NoWatcher:
    """For a dispatcher that nobody watches."""

    def repaired(self, switch: str, operations: int) -> None:
        pass

    def mended(self, seconds: float) -> None:
        pass


@dataclass(slots=True, eq=False)
class Core:
    """One control plane at work. `state` decides at this moment, and may be replaced by another.

    `deliveries` are the ports of each switch at which events are readdressed to the host there, `punts` the packets
    that every switch hands over, `guarding` how the hosts of a network are guarded, if they are, `detour_room`
    how many entries of a switch may lead around dead links (0: no detours, None: any number).
    """

    state: ControlState
    switches: LiveSwitches
    encoding: Encoding
    scribe: Scribe
    ledger: Ledger = field(default_factory=Ledger)
    deliveries: Mapping[str, Mapping[int, Deliver]] = field(default_factory=dict)
    punts: Sequence[Punt] = ()
    guarding: Guarding = not_guarded
    detour_room: DetourRoom = no_detours
    watcher: Watcher = field(default_factory=NoWatcher)
    tasks: Tasks = field(default_factory=Tasks)
    deciding: Deciding | None = None  # None: the state decides
    unguarded: set[str] = field(default_factory=set)  # switches that did not take their guards
    silenced: set[str] = field(default_factory=set)  # hosts whose events are dropped at their ports
    formerly: SendPolicy | None = None  # what ports let in as well, until publishers know the policy of now

    def punts_of(self, switch: str) -> Sequence[Punt]:
        """The service entries of a switch: each of its ports has a limit of its own."""
        topology = self.state.topology
        late = [Punt.within(each.tag.group, EVENT_PORT, rate=LATE_EVENTS) for each in self.late]
        return with_ports([*self.punts, *late], host_ports(topology, switch), link_ports(topology, switch))

    @property
    def late(self) -> tuple[ServedIndex, ...]:
        """The indexes that publishers are to have left: what is still sent under their tags is handed up."""
        crossing = self.state.crossing
        leaving = crossing is not None and crossing.phase in (CrossingPhase.FENCE, CrossingPhase.CLEAR)
        return (*self.state.retired, *((crossing.old,) if crossing is not None and leaving else ()))

    def guarded_by(self, requests: Iterable[Request]) -> set[str]:
        """The switches whose guards some requests are about: those of the publishers among them, if there is one."""
        topology = self.state.topology
        if self.guarding(topology) is None:
            return set()
        publishers = (request.endpoint for request in requests if request.op.side is Side.PUBLISHER)
        return {topology.attached[host] for host in publishers}

    def guard_of(self, switch: str, state: ControlState | None = None) -> Guard:
        """What a switch should take in, given what its hosts have advertised, in the state of now or another."""
        state = state or self.state
        topology, policy = state.topology, state.settings.policy
        settings = self.guarding(topology) if switch not in self.unguarded else None
        advertised = state.advertised_at(switch) if settings is not None else {}
        advertised = {host: dz for host, dz in advertised.items() if host not in self.silenced}
        if self.formerly is not None:
            policy |= self.formerly
        allowed = None if policy.open else labels_of(advertised, state.labels, policy)
        labels, owner = state.label_group, state.owner
        return guard_of(topology, switch, self.encoding, advertised, settings, owner, labels, allowed)

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """All tags that events are sent under: where some hosts send labels, theirs beside that of dz."""
        return (self.encoding, PrefixEncoding(self.state.label_tag)) if self.state.mixed else (self.encoding,)
