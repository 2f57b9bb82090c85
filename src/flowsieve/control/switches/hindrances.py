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
    """Looks at the entries of others that reads of tables have found, and at how ports are set.

    `fenced` are the links that are closed by ourselves, or may be.
    """

    def __init__(self, core: Core, fenced: Callable[[], frozenset[Edge]]) -> None:
        self._core = core
        self._fenced = fenced
        self._closed: dict[str, dict[str, PortSetting]] = {}  # by others, by what a port of a switch leads to
        self._logged: dict[str, str] = {}

    def grow(self) -> None:
        """What ports lead to may be another now."""
        self._closed.clear()

    async def look(self, switch: str) -> None:
        """See how the ports of a switch are set, and say what is in the way where it is not what was said last."""
        topology, ours = self._core.state.topology, self._closed_by_us
        settings = await self._core.switches.settings(switch)
        ours |= self._closed_by_us  # a fence may have been set or opened while the ports were read
        if (
            topology is self._core.state.topology
        ):  # otherwise ports count otherwise, and it will be looked at again
            self._closed[switch] = dict(self._by_others(switch, settings, ours))
        what = "; ".join(self._at(switch))
        if what != self._logged.get(switch, ""):
            self._logged[switch] = what
            log.warning("switch %s: %s", switch, what or "nothing of others is in the way of events any more")

    @property
    def told(self) -> dict[str, str]:
        """The switches at which something is in the way of events, and what."""
        found = {switch: "; ".join(self._at(switch)) for switch in self._core.state.topology.switches}
        return {switch: what for switch, what in found.items() if what}

    def _at(self, switch: str) -> Iterator[str]:
        core = self._core
        state, foreign, found = core.state, core.switches.foreign(switch), dict[str, None]()
        for encoding, table in zip(core.encodings, (state.table, state.label_table), strict=False):
            if entries := [each for each in foreign if reach_of(encoding, each) is not None]:
                # Tables only now, since making one of thousands of entries takes its time, and links may be mended
                # meanwhile.
                found.update(dict.fromkeys(each.text for each in shadowing(encoding, entries, table(switch))))
        for text in found:
            yield f"an entry of others comes before ours: {text}"
        used = {frozenset(edge) for tree in state.trees.trees for edge in tree.edges}
        for near, setting in self._closed.get(switch, {}).items():
            if near in state.topology.attached or frozenset((switch, near)) in used - state.down:
                yield f"its port to {near} is set to {setting}"

    @property
    def _closed_by_us(self) -> frozenset[Edge]:
        """Our fences, and links that are down, which tell so by themselves."""
        return self._fenced() | self._core.state.down

    def _by_others(
        self, switch: str, settings: Mapping[int, PortSetting], ours: Collection[Edge]
    ) -> Iterator[tuple[str, PortSetting]]:
        """What ports that others have closed lead to.

        A fence is opened without a report, so none may be remembered.
        """
        for port, near in enumerate(self._core.state.topology.neighbours(switch), 1):
            setting = settings.get(port, PortSetting.OPEN)
            if setting & FENCE and frozenset((switch, near)) not in ours:
                yield near, setting


def reach_of(encoding: Encoding, entry: Foreign) -> Dz | None:
    """The dz whose events an entry of others surely takes before an entry of ours of a lower rank; None if of none."""
    theirs = entry.certain and not entry.goes_on and not entry.missing
    reach = entry.within(encoding.tag.group) if theirs else None
    return encoding.dz_of(PrefixMatch(reach)) if reach is not None else None


def shadowing(
    encoding: Encoding, entries: Collection[Foreign], table: Mapping[Dz, Ports]
) -> Iterator[Foreign]:
    """The entries of others that surely come before some entry of ours, for what comes in on some port at least."""
    for each in entries:
        dz = reach_of(encoding, each)
        if dz is not None and any(
            encoding.priority_of(own) <= each.rank and (own.covers(dz) or dz.covers(own)) for own in table
        ):
            yield each
