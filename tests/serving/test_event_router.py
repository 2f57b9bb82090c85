"""Events of switches go to all who listen, while they do."""

from __future__ import annotations

from flowsieve.serving.event_router import EventRouter, packets_to
from flowsieve.southbound.fabric import Connected, PuntedPacket, SwitchEvent

PACKET = PuntedPacket("s1", 1, b"x")


def test_listeners_hear_events_in_their_order_for_as_long_as_they_listen() -> None:
    router, heard = EventRouter(), list[tuple[str, SwitchEvent]]()
    router(Connected("s1"))  # nobody listens yet
    router.add(lambda event: heard.append(("first", event)))
    with router.heard_by(lambda event: heard.append(("second", event))):
        router(Connected("s2"))
    router(Connected("s3"))
    assert heard == [("first", Connected("s2")), ("second", Connected("s2")), ("first", Connected("s3"))]


def test_who_wants_packets_hears_nothing_else() -> None:
    router, heard = EventRouter(), list[PuntedPacket]()
    router.add(packets_to(heard.append))
    for event in (Connected("s1"), PACKET):
        router(event)
    assert heard == [PACKET]
