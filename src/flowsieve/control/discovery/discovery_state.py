"""The pure state of discovery: which beacons (LLDP frames) are to be sent, and what follows from the packets heard.

It is told the time and never asks for it. A link is there when both of its ends have heard the other within
the last few intervals. A frame counts once, at the first place that hears it, and only while it is fresh: one that a
host keeps and plays back makes no link. (Two hosts that pass our frames on to each other at once look like a cable,
as they are one; against a described network that shows as an unknown link.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from flowsieve.control.discovery.findings import Findings, FoundHost, FoundLink, SwitchPort
from flowsieve.control.discovery.frame_rates import FrameRates
from flowsieve.errors import BadInput, BadMessage
from flowsieve.network.frame_sender import sender
from flowsieve.network.lldp import Beacon, check_key, is_lldp
from flowsieve.network.names import Names, SwitchId
from flowsieve.southbound.fabric import PuntedPacket

INTERVAL_SECONDS = 1.0
KEPT_INTERVALS = 3
MOST_HOSTS = 16  # of one port: a host that invents senders cannot fill our memory
MOST_ADDRESSES = 8  # of one host


@dataclass(slots=True)
class _Heard:
    """A host: where it was heard last, and from which addresses."""

    place: SwitchPort
    addresses: dict[str, None]


class DiscoveryState:
    """What was heard, and what is to be sent next."""

    def __init__(
        self,
        names: Names,
        key: bytes,
        *,
        interval: float = INTERVAL_SECONDS,
        kept: int = KEPT_INTERVALS,
    ) -> None:
        if not 0 < interval <= 3600 or kept < 1:
            raise BadInput(
                f"beacons each {interval} s, kept for {kept}; right is up to an hour, and 1 or more"
            )
        self.names = names
        self.interval = interval
        self.rejected = 0
        self.last_rejection: str | None = None
        self.rates = FrameRates()
        self._key = check_key(key)
        self._keep = interval * kept
        self._count = 0
        self._ports: dict[str, set[int]] = {}  # those that are up, of the switches that are connected
        self._sent: dict[SwitchPort, list[tuple[int, float]]] = {}  # the beacons that may still be heard
        self._sightings: dict[
            SwitchPort, tuple[SwitchPort, float]
        ] = {}  # where each port was heard last, and when
        self._linked: dict[SwitchPort, float] = {}  # the ports that have heard another, and when last
        self._hosts: dict[str, _Heard] = {}  # by MAC address
        self._at: dict[
            SwitchPort, dict[str, None]
        ] = {}  # the MAC addresses of a place; the last one spoke last

    # Switches and ports.

    def connected(self, switch: str, ports: Mapping[int, bool]) -> None:
        """A switch is there, with these ports."""
        self.names.identity(switch)  # raises where nobody has named it
        gone = self._ports.get(switch, set()) - {port for port, up in ports.items() if up}
        self._ports[switch] = {port for port, up in ports.items() if up}
        for port in gone:
            self._forget(SwitchPort(switch, port))

    def disconnected(self, switch: str) -> None:
        """A switch cannot be asked, so nothing is known of its ports."""
        for port in self._ports.pop(switch, set()):
            self._forget(SwitchPort(switch, port))

    def port_changed(self, switch: str, port: int, up: bool) -> None:
        """A port came up or went down; what was behind one that went down is forgotten."""
        if switch in self._ports:
            if up:
                self._ports[switch].add(port)
            else:
                self._ports[switch].discard(port)
                self._forget(SwitchPort(switch, port))

    # What goes out and comes in.

    def beacons(self, switch: str, now: float) -> list[tuple[int, bytes]]:
        """What a switch is to send next: a frame for each of its ports."""
        if switch not in self._ports:
            return []
        self._count += 1
        identity, frames = self.names.identity(switch), []
        for port in sorted(self._ports[switch]):
            place = SwitchPort(switch, port)
            fresh = [(count, at) for count, at in self._sent.get(place, ()) if now - at < self._keep]
            self._sent[place] = [*fresh, (self._count, now)]
            ttl = min(max(1, round(self._keep)), 0xFFFF)
            frames.append((port, Beacon(identity, port, self._count, ttl).frame(self._key)))
        return frames

    def heard(self, packet: PuntedPacket, now: float) -> None:
        """A switch hands over a packet. One that is malformed or forged is counted and changes nothing."""
        place = SwitchPort(packet.switch, packet.port)
        if packet.port not in self._ports.get(packet.switch, ()):
            return  # it just came up or went down: packets and reports of ports cross each other
        try:
            if is_lldp(packet.data):
                self.rates.note(place, now)
                self._note_link(self._origin(Beacon.parse(packet.data, self._key), now), place, now)
            else:
                self._note_host(packet.data, place, now)
        except BadMessage as error:
            self.rejected += 1
            self.last_rejection = f"{place}: {error}"

    # What there is to know.

    def is_down(self, place: SwitchPort) -> bool:
        """Whether a switch that can be asked says that a port is down, or not there."""
        return place.switch in self._ports and place.port not in self._ports[place.switch]

    def is_linked(self, place: SwitchPort, now: float) -> bool:
        """Whether a switch was heard at a port, of late."""
        return now - self._linked.get(place, -math.inf) < self._keep

    def findings(self, now: float) -> Findings:
        """All that is found by now."""
        fresh = {(origin, place) for origin, (place, at) in self._sightings.items() if now - at < self._keep}
        both = {(a, b) for a, b in fresh if (b, a) in fresh}
        order = {switch: self.names.identity(switch) for switch in self._ports}

        def rank(place: SwitchPort) -> tuple[SwitchId, int]:
            return order[place.switch], place.port

        links = {frozenset(pair): FoundLink(*sorted(pair, key=rank)) for pair in both}
        hosts = [
            FoundHost(self.names.host(mac), mac, tuple(sorted(each.addresses)), each.place)
            for mac, each in self._hosts.items()
            if not self.is_linked(each.place, now)
        ]
        return Findings(
            tuple(sorted(self._ports, key=order.__getitem__)),
            tuple(sorted(links.values(), key=lambda link: (rank(link.a), rank(link.b)))),
            tuple(sorted(fresh - both, key=lambda pair: tuple(map(rank, pair)))),
            tuple(sorted(hosts, key=lambda host: (rank(host.place), host.mac))),
        )

    def _origin(self, beacon: Beacon, now: float) -> SwitchPort:
        """The port that a beacon left, if that is fresh and was not heard before."""
        place = SwitchPort(self.names.switch(beacon.switch) or beacon.switch, beacon.port)
        sent = self._sent.get(place, [])
        for number, (count, at) in enumerate(sent):
            if count == beacon.count and now - at < self._keep:
                del sent[: number + 1]  # those before it would be late: frames on a cable keep their order
                return place
        raise BadMessage(f"a beacon of {place} that is too old, or was heard before: somebody repeats frames")

    def _note_link(self, origin: SwitchPort, place: SwitchPort, now: float) -> None:
        if origin == place:
            raise BadMessage(f"{place} hears itself: what is plugged in there sends our frames back")
        self._sightings[origin] = place, now
        self._linked[place] = now

    def _note_host(self, data: bytes, place: SwitchPort, now: float) -> None:
        source = sender(data)
        if self.is_linked(place, now):
            return  # it is behind another switch, which reports it
        known = self._hosts.get(source.mac)
        if known is None or known.place != place:
            self._drop(source.mac)
            known = self._hosts[source.mac] = _Heard(place, {})
        here = self._at.setdefault(place, {})
        here.pop(source.mac, None)
        here[source.mac] = None
        if len(here) > MOST_HOSTS:
            self._drop(next(iter(here)))
        if source.address is not None:
            known.addresses.pop(source.address, None)
            known.addresses[source.address] = None
            if len(known.addresses) > MOST_ADDRESSES:
                del known.addresses[next(iter(known.addresses))]

    def _drop(self, mac: str) -> None:
        """Forget a host, if it was known."""
        known = self._hosts.pop(mac, None)
        if known is not None:
            self._at[known.place].pop(mac, None)

    def _forget(self, place: SwitchPort) -> None:
        """Forget what was behind a port."""
        self.rates.forget(place)
        self._sent.pop(place, None)
        self._linked.pop(place, None)
        self._sightings = {
            origin: (there, at)
            for origin, (there, at) in self._sightings.items()
            if place not in (origin, there)
        }
        for mac in self._at.pop(place, {}):
            del self._hosts[mac]
