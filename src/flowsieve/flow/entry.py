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
    """Send a copy out of a port, readdressed to the host there: its MAC address and its own address of full length.

    Later tables know nothing of that: a packet that goes on in one does so with the destination that it came with.
    """

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
FlowKey = tuple[Match, int, int]
CONTENT_TABLE = 1  # where packets come to first that a switch has let in; the table of entries for dz
LABEL_TABLES = range(16, 254)  # those for labels, one for each port; a switch has no more than 254 tables
Deliveries = Mapping[str, Mapping[int, Deliver]]  # for each switch what is done at its ports to hosts
NOBODY: Mapping[int, Deliver] = MappingProxyType({})
NOWHERE: Deliveries = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Flow:
    """One entry: the highest priority of its table that matches a packet wins, and its actions are done.

    The packet then goes `onward` to a later table, or nowhere for None. `owner` is the number of the `Owner` whose
    entry it is, as its cookie tells; None if somebody else put it there.
    """

    match: Match
    priority: int
    actions: tuple[Action, ...]
    owner: int | None = field(default=0, compare=False)
    table: int = CONTENT_TABLE
    onward: int | None = None

    def __post_init__(self) -> None:
        if self.onward is not None and self.onward <= self.table:
            raise BadInput(
                f"an entry of table {self.table} lets packets go on in table {self.onward}; right is a later one"
            )

    @property
    def key(self) -> FlowKey:
        """What tells entries of a switch apart; a second entry with the same key replaces the first."""
        return self.match, self.priority, self.table

    @property
    def sort_key(self) -> tuple[int, tuple[int, ...], int]:
        """The order of entries in a list, by plain numbers for speed: tables are large."""
        return self.table, self.match.sort_key, self.priority

    def __lt__(self, other: Flow) -> bool:
        return self.sort_key < other.sort_key

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(sorted([action.port for action in self.actions]))

    @property
    def flaw(self) -> str | None:
        """What is wrong with the actions, if anything is: a new destination holds for the actions after it."""
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
    return Flow(encoding.match_of(dz), encoding.priority_of(dz), content_actions(tuple(ports), deliveries))


def content_actions(ports: tuple[int, ...], deliveries: Mapping[int, Deliver] = NOBODY) -> tuple[Action, ...]:
    """What an entry does that sends out of ports."""
    return outputs(ports) if not deliveries else _readdressed(ports, deliveries)


@lru_cache(maxsize=1 << 16)
def outputs(ports: tuple[int, ...]) -> tuple[Action, ...]:
    """The actions that send out of ports; few port sets stand in many entries."""
    return tuple(Output(port) for port in ports)


def _readdressed(ports: tuple[int, ...], deliveries: Mapping[int, Deliver]) -> tuple[Action, ...]:
    """Plain outputs first: what is readdressed for a host stays so for the actions after it."""
    plain = outputs(tuple(port for port in ports if port not in deliveries))
    return (*plain, *(deliveries[port] for port in ports if port in deliveries))
