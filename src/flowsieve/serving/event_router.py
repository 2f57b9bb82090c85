"""What switches report, passed on to all who listen: the dispatcher from the start, others once they are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flowsieve.southbound.fabric import PuntedPacket, Report, SwitchEvent


class EventRouter:
    """A `Report` that passes events on to its listeners, in the order in which they were added."""

    def __init__(self) -> None:
        self._listeners: tuple[Report, ...] = ()

    def __call__(self, event: SwitchEvent) -> None:
        for listener in self._listeners:
            listener(event)

    def add(self, listener: Report) -> None:
        """Have somebody listen from now on."""
        self._listeners += (listener,)

    @contextmanager
    def heard_by(self, listener: Report) -> Iterator[None]:
        """Have somebody listen for the time of a `with` block."""
        self.add(listener)
        try:
            yield
        finally:
            self._listeners = tuple(each for each in self._listeners if each is not listener)


def packets_to(listener: Callable[[PuntedPacket], None]) -> Report:
    """A listener that wants packets alone."""

    def heard(event: SwitchEvent) -> None:
        if isinstance(event, PuntedPacket):
            listener(event)

    return heard
