"""The ports of hosts as gates for labels: who does not know who wants its events is kept from sending any."""

from __future__ import annotations

from flowsieve.control.core import Core
from flowsieve.control.switches.fleet import Fleet


class LabelGates:
    """Gates by the guards of switches: what a host sends in band, and all that comes to it, passes as ever."""

    def __init__(self, core: Core, fleet: Fleet) -> None:
        self._core, self._fleet = core, fleet

    def ready(self, host: str) -> bool:
        """Whether a host's port lets in all that it may send, by the policy before and by that of now."""
        core = self._core
        return core.formerly is None or self._fleet[core.state.topology.attached[host]].settled

    def shut(self, host: str) -> bool:
        """Whether a host's labels can be dropped at its port; they are to be from now on."""
        core, switch = self._core, self._core.state.topology.attached[host]
        guarded = core.guarding(core.state.topology) is not None and switch not in core.unguarded
        if not guarded or switch not in self._fleet.reachable:
            return False
        if host not in core.silenced:
            core.silenced.add(host)
            self._fleet[switch].guard_anew()
        return True

    def open(self, host: str) -> None:
        """Have a host's labels let in again."""
        if host in self._core.silenced:
            self._core.silenced.discard(host)
            self._fleet[self._core.state.topology.attached[host]].guard_anew()

    async def followed(self, host: str) -> None:
        """Wait until the host's switch does what was asked last."""
        await self._fleet.reached([self._core.state.topology.attached[host]])
