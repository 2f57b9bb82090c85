"""What others have done at switches that keeps events from their way; it is told, and left alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping

from flowsieve.control.core import Core
from flowsieve.flow.diff import Ports
from flowsieve.flow.others import Foreign, PortSetting
from flowsieve.header.encoding import Encoding
from flowsieve.header.match import PrefixMatch
from flowsieve.index.dz import Dz
from flowsieve.network.mend import Edge

log = logging.getLogger(__name__)

FENCE = PortSetting.NO_RECEIVE | PortSetting.NO_FORWARD


class Hindrances:
    """Hears how ports are set, and looks at the entries of others that reads have found.

    `closed` are the links that are fenced by ourselves.
    """

    def __init__(self, core: Core, closed: Callable[[], frozenset[Edge]]) -> None:
        self._core = core
        self._closed = closed
        self._read: dict[str, Mapping[int, PortSetting]] = {}
        self._news: dict[
            str, dict[int, PortSetting]
        ] = {}  # since a switch connected: newer than what was read
        self._logged: dict[str, str] = {}

    def grow(self) -> None:
        """Ports may count otherwise now: switches at which something is new are read again."""
        self._news.clear()

    def connected(self, switch: str) -> None:
        """Only what a switch reports from now on counts beside what is read of it."""
        self._news[switch] = {}

    def changed(self, switch: str, port: int, setting: PortSetting) -> None:
        """A switch reports how a port is set."""
        self._news.setdefault(switch, {})[port] = setting

    async def read(self, switch: str) -> None:
        """See how the ports of a switch are set."""
        self._read[switch] = await self._core.switches.settings(switch)

    @property
    def told(self) -> dict[str, str]:
        """The switches at which something is in the way of events, and what."""
        found = {switch: "; ".join(self._at(switch)) for switch in self._core.state.topology.switches}
        return {switch: what for switch, what in found.items() if what}

    def log(self, switch: str) -> None:
        """Say what is in the way at a switch, where it is not what was said last."""
        what = "; ".join(self._at(switch))
        if what != self._logged.get(switch, ""):
            self._logged[switch] = what
            log.warning("switch %s: %s", switch, what or "nothing of others is in the way of events any more")

    def _at(self, switch: str) -> Iterator[str]:
        core = self._core
        if entries := core.switches.foreign(switch):
            for each in shadowing(core.encoding, entries, core.state.table(switch)):
                yield f"an entry of others comes before ours: {each.text}"
        settings = {**self._read.get(switch, {}), **self._news.get(switch, {})}
        closed = {port: setting for port, setting in settings.items() if setting & FENCE}
        if closed:
            yield from self._in_the_way(switch, closed)

    def _in_the_way(self, switch: str, settings: Mapping[int, PortSetting]) -> Iterator[str]:
        """The ports on the way of events that others have closed; one that is down tells so by itself."""
        state, topology = self._core.state, self._core.state.topology
        used = (
            {frozenset(edge) for tree in state.trees.trees for edge in tree.edges}
            - self._closed()
            - state.down
        )
        for port, near in enumerate(topology.neighbours(switch), 1):
            if port in settings and (near in topology.attached or frozenset((switch, near)) in used):
                yield f"its port to {near} is set to {settings[port]}"


def shadowing(
    encoding: Encoding, entries: Collection[Foreign], table: Mapping[Dz, Ports]
) -> Iterator[Foreign]:
    """The entries of others that surely come before some entry of ours, for what comes in on some port at least."""
    for each in entries:
        reach = each.within(encoding.tag.group) if each.certain and not each.goes_on else None
        dz = encoding.dz_of(PrefixMatch(reach)) if reach is not None else None
        if dz is not None and any(
            encoding.priority_of(own) <= each.rank and (own.covers(dz) or dz.covers(own)) for own in table
        ):
            yield each
