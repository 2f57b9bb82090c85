"""Who hears what switches tell: the dispatcher from the start, others once they are there."""

from __future__ import annotations

from collections.abc import Callable

from flowsieve.control.discovery.discoverer import Discoverer
from flowsieve.serving.inband.inband_server import InbandServer
from flowsieve.southbound.fabric import Packet, SwitchEvent


class EventRouter:
    """Hands on what switches tell to those who listen, from when on they do."""

    def __init__(self) -> None:
        self.dispatcher: Callable[[SwitchEvent], None] | None = None
        # What the dispatcher is to hear, in the ports that it counts; None for what it is not to.
        self.counted: Callable[[SwitchEvent], SwitchEvent | None] | None = None
        self.inband: InbandServer | None = None
        self.discoverer: Discoverer | None = None

    def __call__(self, event: SwitchEvent) -> None:
        counted = self.counted(event) if self.counted is not None else event
        if self.dispatcher is not None and counted is not None:
            self.dispatcher(counted)
        if self.inband is not None and isinstance(event, Packet):
            self.inband.heard(event)
        if self.discoverer is not None:
            self.discoverer.heard(event)
