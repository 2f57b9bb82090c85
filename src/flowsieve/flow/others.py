"""What others have made of a switch: entries that events may meet beside ours, and settings of its ports.

The controller leaves both alone: they are somebody else's. A proof has to see them all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Flag, auto

from flowsieve.errors import BadInput
from flowsieve.flow.entry import Action, Deliver
from flowsieve.header.address import Prefix

PRIORITIES = 1 << 16  # what lies between two tables of a switch that are passed one after the other


class PortSetting(Flag):
    """How a port was set that does not carry all that it could."""

    OPEN = 0
    NO_RECEIVE = auto()
    NO_FORWARD = auto()
    DOWN = auto()

    @property
    def deaf(self) -> bool:
        """Whether what comes in is dropped."""
        return bool(self & (PortSetting.NO_RECEIVE | PortSetting.DOWN))

    @property
    def mute(self) -> bool:
        """Whether nothing goes out."""
        return bool(self & (PortSetting.NO_FORWARD | PortSetting.DOWN))

    def __str__(self) -> str:
        names = [(each.name or "").lower().replace("_", "-") for each in self]
        return " and ".join(names) or "open"


@dataclass(frozen=True, slots=True)
class SentCopy:
    """A copy sent out of a port, with another MAC address or destination than it came with where one is given."""

    port: int
    mac: int | None = None
    address: Prefix | None = None

    @classmethod
    def of(cls, action: Action) -> SentCopy:
        """What an action of ours sends."""
        return (
            cls(action.port, action.mac, action.address) if isinstance(action, Deliver) else cls(action.port)
        )


@dataclass(frozen=True, slots=True)
class Foreign:
    """An entry of somebody else that events may meet; `text` is what the switch says of it.

    It matches no event outside `reach` (None: there is nothing that it could not match). It is `certain` if it
    matches every event in there, on `in_port` alone where that is not None.

    Where an event meets it, the `copies` are sent; with `perhaps`, none, some or all of them. With `floods`, copies may
    go out of any port. With `goes_on`, the event then meets what stands behind it as well. `riddle` says why nobody
    can tell what it does, if that is so. Entries of a table that is passed `ahead` of that of the content come first.
    `missing` is one that nobody made: it stands for what of ours is missing there, and that is set right elsewhere.
    """

    priority: int
    text: str
    reach: Prefix | None = None
    certain: bool = False
    in_port: int | None = None
    copies: tuple[SentCopy, ...] = ()
    perhaps: bool = False
    floods: bool = False
    goes_on: bool = False
    riddle: str | None = None
    ahead: int = 0
    missing: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.priority < PRIORITIES or self.ahead < 0:
            raise BadInput(
                f"an entry of others has the priority {self.priority}, {self.ahead} tables ahead; "
                f"right is 0 to {PRIORITIES - 1}, and 0 or more"
            )

    @property
    def rank(self) -> int:
        """Among the entries that an event may meet, the highest wins; the rank of a content entry is its priority."""
        return self.ahead * PRIORITIES + self.priority

    def within(self, group: Prefix) -> Prefix | None:
        """The part of a group that it may match; None if there is none."""
        if self.reach is None or self.reach.covers(group):
            return group
        return self.reach if group.covers(self.reach) else None


@dataclass(frozen=True, slots=True)
class Others:
    """All of it at one switch: its foreign entries, and the ports that are not open."""

    entries: tuple[Foreign, ...] = ()
    ports: Mapping[int, PortSetting] = field(default_factory=dict)


NOBODY_ELSE = Others()
