"""What a controller asks of the switches below it; southbound/ has the kinds there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from flowsieve.errors import FlowsieveError
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow


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
    """The switches, by name."""

    def apply(self, switch: str, ops: Iterable[FlowOp]) -> Ticket:
        """Have a switch carry out operations one after the other, after all that it was asked before."""
        ...

    def read(self, switch: str) -> tuple[Flow, ...]:
        """The entries that a switch holds now."""
        ...

    def settle(self) -> None:
        """Wait until nothing is under way: no packet, and no operation that is not answered."""
        ...
