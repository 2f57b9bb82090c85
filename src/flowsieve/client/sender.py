"""How an application's events leave: at once where addresses say what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from flowsieve.client.outbox import Outbox
from flowsieve.client.wire import EventWire
from flowsieve.content.filter import Filter
from flowsieve.errors import HostError
from flowsieve.header.encoding import Encoding
from flowsieve.index.plan import IndexPlan
from flowsieve.protocol.event_mac import Signer


class Sender(Protocol):
    """What publishes; `advertised` are the application's promises, by id, and `signer` signs if there is one."""

    advertised: dict[str, Filter]
    signer: Signer | None
    late: int  # events that left after the time until which they were known to reach all who want them
    unsent: int  # events that were put and never left

    @property
    def sent(self) -> int:
        """How many events were published."""
        ...

    async def ready(self) -> None:
        """Have all that publishing takes, before something is advertised."""
        ...

    def put(self, values: Mapping[str, object], data: bytes) -> int:
        """Publish an event, now or in a moment; its sequence number. A bad event raises and counts for nothing."""
        ...

    async def left(self, seq: int) -> None:
        """Wait until an event that was put has left; raises where it cannot, and then it never does."""
        ...

    async def flush(self) -> None:
        """Wait until all that was put has left, or cannot."""
        ...

    def digests(self, last: bool) -> None:
        """Tell subscribers how much was sent; for the `last` time where a promise ends."""
        ...

    def go_over(self, plan: IndexPlan, encoding: Encoding) -> None:
        """Address events by another index, from the next one on."""
        ...

    async def close(self) -> None: ...


class DirectSender:
    """Sends by a wire what an outbox makes of events."""

    late = unsent = 0  # what cannot leave is not taken

    def __init__(self, outbox: Outbox, wire: EventWire) -> None:
        self._outbox, self._wire = outbox, wire
        self.advertised = outbox.advertised

    @property
    def signer(self) -> Signer | None:
        return self._outbox.signer

    @signer.setter
    def signer(self, signer: Signer | None) -> None:
        self._outbox.signer = signer

    @property
    def sent(self) -> int:
        return self._outbox.seq

    async def ready(self) -> None:
        pass

    def put(self, values: Mapping[str, object], data: bytes) -> int:
        self._wire.send(self._outbox.event(values, data))
        return self._outbox.seq

    async def left(self, seq: int) -> None:
        pass

    async def flush(self) -> None:
        pass

    def digests(self, last: bool) -> None:
        with suppress(HostError):  # the next event that is published raises it
            self._wire.send(self._outbox.last_digests() if last else self._outbox.digests())

    def go_over(self, plan: IndexPlan, encoding: Encoding) -> None:
        self.digests(last=True)  # of what was sent by the index before nothing is told any more
        self._outbox = self._outbox.under(plan, encoding)

    async def close(self) -> None:
        pass
