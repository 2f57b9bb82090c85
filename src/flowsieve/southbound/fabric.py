"""What a controller asks of the switches below it, and what they tell it, whatever they speak.

`Switches` is for a caller that waits, `LiveSwitches` for a controller on an event loop, `Fabric` for whoever connects
them. A switch goes by its name throughout; who it is (its identity) matters only where it connects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from flowsieve.errors import FlowsieveError
from flowsieve.flow.detours import Protection
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import Guard, Refusals
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.flow.punt import Punt


@dataclass(slots=True)
class Ticket:
    """Operations on their way to one switch; the southbound fills it in when the switch has answered.

    `done` operations were carried out. If the next one failed, `error` says why, and none after it was tried.
    """

    switch: str
    done: int = 0
    done_at: float | None = None
    error: FlowsieveError | None = None


class Switches(Protocol):
    """The switches, by name, for a caller without an event loop: it hands over operations, and waits in `settle`."""

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations one after the other, after all that it was asked before."""
        ...

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now."""
        ...

    def settle(self) -> None:
        """Wait until nothing is under way: no packet, and no operation that is not answered."""
        ...


@dataclass(frozen=True, slots=True)
class Connected:
    """A switch can be asked; what it holds and which ports are up has to be read, whatever was known before."""

    switch: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A switch cannot be asked any more; what it holds is unknown, and it may well go on forwarding."""

    switch: str
    reason: str


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A port of a switch came up, went down or was set otherwise; it may be reported again though nothing changed."""

    switch: str
    port: int
    up: bool


@dataclass(frozen=True, slots=True)
class PuntedPacket:
    """A switch hands over a packet, whole, that came in on a port."""

    switch: str
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class TableChanged:
    """Somebody else has changed entries of these owners, None for nobody's; what the switch holds has to be read."""

    switch: str
    owners: frozenset[int | None] = frozenset({None})


SwitchEvent = Connected | Disconnected | PortChanged | PuntedPacket | TableChanged
Report = Callable[[SwitchEvent], None]  # called on the event loop; it must not wait


class Claim(Protocol):
    """By what right a controller changes switches that others could change as well: a number that grows.

    A switch keeps the number that it was claimed with last, and who claims it with a higher one shuts out whoever did
    before. Where numbers come from is up to the claim: a file, or a store that several controllers share.
    """

    def covers(self, number: int) -> bool:
        """Whether a switch that was claimed last with a number may be claimed; if not, another controller holds it."""
        ...

    async def above(self, number: int | None) -> int:
        """The number to claim a switch with that was claimed last with `number`, None if never; it is kept first.

        Raises JournalError where it cannot be kept.
        """
        ...


class LiveSwitches(Protocol):
    """The switches, by name, that come, fail and come back; all of it on one event loop.

    A switch that cannot be asked raises a SwitchError from whatever is asked of it.
    """

    async def apply(self, switch: str, ops: Sequence[FlowOp]) -> None:
        """Have a switch carry out a whole batch or nothing; returns once packets meet the new table.

        Raises TableFull or another SwitchError where the switch refused and holds what it held before, and
        Unacknowledged where it is unknown what it holds: no batch is taken then before it was read.
        """
        ...

    async def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds within our group prefixes.

        Entries there that no `Flow` can describe are removed on the way. No batch is under way meanwhile, so that a
        controller may build on it.
        """
        ...

    async def look(self, switch: str) -> tuple[tuple[Flow, ...], int]:
        """The entries that `read` would give, and how many it would remove; nothing is changed.

        It is for those who want to see what a switch holds at some moment: nothing else that is asked waits for it.
        """
        ...

    def foreign(self, switch: str) -> tuple[Foreign, ...]:
        """The entries of others that events may meet at a switch, as the last `read` found them.

        They are left alone. When they change, `TableChanged` is reported for nobody's entries.
        """
        ...

    async def settings(self, switch: str) -> Mapping[int, PortSetting]:
        """The ports of a switch that are not open, and how they are set; closed ones are among them."""
        ...

    async def ports(self, switch: str) -> Mapping[int, bool]:
        """The ports of a switch, and whether each is up."""
        ...

    async def fence(self, switch: str, port: int, closed: bool) -> None:
        """Close a port, or open it again; returns once that is so.

        Through a closed port no packet comes in or goes out, whatever the entries say. It stays closed when the
        controller goes, and when the port goes down and comes back. How that is done is up to the southbound.

        For a port that does not exist nothing is done; when it appears, it is open.

        Nor does anything get around a closed port: a detour neither begins nor ends there, whatever `protect` asked
        for before, or asks for while it is closed.
        """
        ...

    async def protect(self, switch: str, protection: Protection) -> None:
        """Make what a switch does about dead links exactly this, but for ports that are closed.

        What is there already stays. Returns once packets meet it. Raises DetoursRefused where the switch cannot, and
        does what it did before.
        """
        ...

    async def protection(self, switch: str, *, looking: bool = False) -> Protection:
        """What a switch does about dead links; nothing that is asked waits for whoever is only looking."""
        ...

    async def fences(self, switch: str) -> frozenset[int]:
        """The ports of a switch that are closed."""
        ...

    async def punt(self, switch: str, punts: Sequence[Punt]) -> None:
        """Make the service entries of a switch, and their limits, exactly these; what is there already stays.

        Returns once packets meet them; from then on they come as `PuntedPacket`.
        """
        ...

    async def guard(self, switch: str, guard: Guard) -> None:
        """Make what a switch takes in exactly this; what is there already stays. Returns once packets meet it.

        Before it was asked for, a switch takes in what it did before, and a new one everything.
        """
        ...

    async def refusals(self, switch: str) -> Mapping[int, Refusals]:
        """What the guard of a switch has refused at each host's port, since it is there."""
        ...

    async def send_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch send a packet out of a port; nobody says whether it did."""
        ...

    async def inject_packet(self, switch: str, port: int, data: bytes) -> None:
        """Have a switch take in a packet as if it had come in on a port, through all that it holds; nobody says so."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceChanges:
    """How many service entries or guards, and limits (meters) of theirs, have to be made, changed and taken out."""

    install: int = 0
    remove: int = 0
    new_limits: int = 0
    changed_limits: int = 0
    old_limits: int = 0


@dataclass(frozen=True, slots=True)
class DetourCosts:
    """How many entries and groups of detours have to be made, changed and taken out, and content entries changed."""

    install: int = 0
    remove: int = 0
    modify: int = 0
    new_groups: int = 0
    changed_groups: int = 0
    old_groups: int = 0


class Fabric(LiveSwitches, Protocol):
    """Live switches and the connections to them, which last for the time of an `async with` block.

    The switches keep their entries after it. What they tell goes to the `Report` that a fabric was made with.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...

    @property
    def standing_by(self) -> str | None:
        """Why every switch is left alone, if it is: another controller holds one of them. It stays so to the end."""
        ...

    async def stood_by(self) -> str:
        """Wait until every switch is left alone, and say why."""
        ...

    @property
    def missing(self) -> Mapping[str, str]:
        """The switches that are not connected, and why."""
        ...

    async def wait_connected(self, seconds: float = 3.0) -> None:
        """Wait until all switches are connected; raises a SwitchError that names those that are not."""
        ...

    async def look_at_punts(self, switch: str, punts: Sequence[Punt]) -> ServiceChanges:
        """What `punt` would change; nothing is changed."""
        ...

    async def look_at_detours(self, switch: str, protection: Protection) -> DetourCosts:
        """What `protect` would change; nothing is changed."""
        ...

    async def look_at_guard(self, switch: str, guard: Guard) -> ServiceChanges:
        """What `guard` would change; nothing is changed."""
        ...
