"""What carries a client's datagrams: the seams where real sockets and those of tests meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from flowsieve.client.outbox import EventDatagram

Inside = Callable[[], AbstractContextManager[None]]  # where sockets are made: on a host of a lab, say


class EventWire(Protocol):
    """What carries events to and from a host; it may lose some."""

    @property
    def dropped(self) -> int:
        """How many datagrams came and found no room."""
        ...

    def send(self, datagrams: Iterable[EventDatagram]) -> None:
        """Send to the network, and to the other applications of this host; raises a HostError."""
        ...

    def listen(self, ready: Callable[[], object]) -> None:
        """From now on receive what comes for the host; `ready` is called on the loop whenever something waits."""
        ...

    def waiting(self) -> Iterator[bytes]:
        """The datagrams that are there already, at most a batch of them; raises a HostError if no more will come."""
        ...

    def hear_notices(self, hear: Callable[[bytes], None]) -> None:
        """Have notices to this host heard, on the loop, until it is closed; raises a HostError."""
        ...

    def close(self) -> None: ...


OpenWire = Callable[[str, str | None], EventWire]  # from the host's own group, and the interface to use


class CallWire(Protocol):
    """What carries calls in band to the controller, and its answers back; it may lose some."""

    def send(self, datagram: bytes) -> None:
        """Send one, or raise a HostError."""
        ...

    def listen(self, hear: Callable[[bytes], None]) -> None:
        """Have what comes heard, on the loop, until it is closed."""
        ...

    def close(self) -> None: ...
