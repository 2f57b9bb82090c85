"""What a switch holds: entries of a match, a priority and actions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from flowsieve.header.address import Prefix
from flowsieve.header.tag import Tag
from flowsieve.index.dz import Dz

CONTENT_PRIORITY = (
    1000  # + the length of the dz; 0 is the table miss, 2000 and up are transitions and service
)


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Which packets an entry is for: those whose destination lies in a prefix."""

    destination: Prefix


@dataclass(frozen=True, slots=True, order=True)
class Output:
    """Send a copy out of a port."""

    port: int


Action = Output  # a union, once rewrites and groups join


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """One entry: the highest priority that matches a packet wins, and its actions are done."""

    match: Match
    priority: int
    actions: tuple[Action, ...]

    @property
    def key(self) -> tuple[Match, int]:
        """What tells entries of one table apart; a second entry with the same key replaces the first."""
        return self.match, self.priority

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(action.port for action in self.actions)


def content_flow(tag: Tag, dz: Dz, ports: Iterable[int]) -> Flow:
    """The entry that sends the events of a dz out of ports."""
    return Flow(Match(tag.prefix(dz)), CONTENT_PRIORITY + dz.length, outputs(tuple(ports)))


@lru_cache(maxsize=1 << 16)
def outputs(ports: tuple[int, ...]) -> tuple[Action, ...]:
    """The actions that send out of ports; few port sets stand in many entries."""
    return tuple(Output(port) for port in ports)
