"""What a switch holds: entries of a match, a priority and actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from flowsieve.errors import BadInput
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import Encoding
from flowsieve.header.match import Match
from flowsieve.index.dz import Dz


@dataclass(frozen=True, slots=True, order=True)
class Output:
    """Send a copy out of a port."""

    port: int


@dataclass(frozen=True, slots=True, order=True)
class Deliver:
    """Send a copy out of a port, readdressed to the host there: its MAC address and its own address of full length."""

    port: int
    mac: int
    address: Prefix

    def __post_init__(self) -> None:
        if self.mac >> 48 or self.address.length != self.address.width:
            raise BadInput(
                f"{self.mac:#x} and {self.address} are no host's addresses; "
                "right are a MAC address of 48 bits and a whole IP address"
            )


Action = Output | Deliver
FlowKey = tuple[Match, int]
NOBODY: Mapping[int, Deliver] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Flow:
    """One entry: the highest priority that matches a packet wins, and its actions are done.

    Entries of one table are ordered by `key`. `owner` is the number of the `Owner` whose entry it is, as its cookie
    tells; None if somebody else put it there.
    """

    match: Match
    priority: int
    actions: tuple[Action, ...]
    owner: int | None = field(default=0, compare=False)

    @property
    def key(self) -> FlowKey:
        """What tells entries of one table apart; a second entry with the same key replaces the first."""
        return self.match, self.priority

    def __lt__(self, other: Flow) -> bool:
        return (self.match.sort_key, self.priority) < (other.match.sort_key, other.priority)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(sorted([action.port for action in self.actions]))

    @property
    def flaw(self) -> str | None:
        """What is wrong with the actions, if anything is: a new destination holds for all actions after it."""
        readdressed = False
        for action in self.actions:
            if isinstance(action, Output):
                if readdressed:
                    return f"the output to port {action.port} comes after a delivery; right is before"
            elif action.address.family != self.match.family:
                return f"{action.address} is no destination for {self.match}; right is the same family"
            else:
                readdressed = True
        return None


def content_flow(
    encoding: Encoding, dz: Dz, ports: Iterable[int], deliveries: Mapping[int, Deliver] = NOBODY
) -> Flow:
    """The entry that sends the events of a dz out of ports, to hosts by their own addresses where these are given."""
    actions = outputs(tuple(ports)) if not deliveries else _readdressed(tuple(ports), deliveries)
    return Flow(encoding.match_of(dz), encoding.priority_of(dz), actions)


@lru_cache(maxsize=1 << 16)
def outputs(ports: tuple[int, ...]) -> tuple[Action, ...]:
    """The actions that send out of ports; few port sets stand in many entries."""
    return tuple(Output(port) for port in ports)


def _readdressed(ports: tuple[int, ...], deliveries: Mapping[int, Deliver]) -> tuple[Action, ...]:
    """Plain outputs first: what is readdressed for a host stays so for the actions after it."""
    plain = outputs(tuple(port for port in ports if port not in deliveries))
    return (*plain, *(deliveries[port] for port in ports if port in deliveries))
