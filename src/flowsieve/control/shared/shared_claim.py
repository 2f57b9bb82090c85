"""The right of several controllers, of which one leads, to their switches: they are one controller to the switches.

Who leads takes the next number, so it shuts out whoever led before.
"""

from __future__ import annotations

from flowsieve.control.memory.kept_claim import Tenure, TermClaim
from flowsieve.control.shared.leadership import Leadership
from flowsieve.errors import BadJournal

CLAIM = "claim"


class SharedClaim(TermClaim):
    """A claim whose numbers are in etcd; `opened` makes one."""

    def __init__(self, leadership: Leadership, tenure: Tenure, take_over: bool = False) -> None:
        super().__init__(tenure, take_over)
        self._leadership = leadership

    @classmethod
    async def opened(cls, leadership: Leadership, take_over: bool = False) -> SharedClaim:
        """The claim of those who share an etcd; the first of them makes it."""
        found = await leadership.kept(CLAIM, lambda: Tenure.first().written().encode())
        try:
            return cls(leadership, Tenure.read(found), take_over)
        except (ValueError, KeyError, TypeError) as error:
            raise BadJournal(f"the claim to the switches in etcd is damaged ({error})") from None

    async def _keep(self, tenure: Tenure) -> None:
        await self._leadership.commit({CLAIM: tenure.written().encode()})
