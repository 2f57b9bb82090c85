"""Plans offered to a controller over HTTP: the first body for a query and a batch counts, so it may be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.client.http_transport import HttpTransport
from flowsieve.errors import BadInput, ControlLost, Denied, FlowsieveError, Refused
from flowsieve.protocol.answer import error_of

PLANS = "/v1/plans"
NOT_HEARD = "not heard"
PATIENCE = 10.0  # seconds for one answer
BETWEEN = (1.0, 2.0, 5.0, 10.0)  # seconds until it is tried again; the last of them from then on


@dataclass(frozen=True)
class ControllerLink:
    """Where controllers take requests, and the token that shows that an operator asks."""

    addresses: tuple[str, ...]
    token: str | None = None

    def offers(self) -> Mapping[str, Any]:
        """The offers that the controller has, and what it allows."""
        return self._ask("GET", PLANS)

    def offer(self, query: str, batch: int, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Offer a plan; returns what the controller says of it."""
        return self._ask("PUT", f"{PLANS}/{query}/{batch}", body)

    def approve(self, query: str, batch: int) -> Mapping[str, Any]:
        return self._ask("POST", f"{PLANS}/{query}/{batch}/approve", {})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        lost: FlowsieveError = BadInput("no address of a controller was given; right is --control ADDRESS")
        for address in self.addresses:  # where several share a network, one of them leads
            try:
                return asyncio.run(self._asked(address, method, path, body))
            except (ControlLost, OSError) as error:
                lost = error if isinstance(error, FlowsieveError) else ControlLost(str(error))
        raise lost

    async def _asked(
        self, address: str, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        transport = HttpTransport(address)
        try:
            answer = await transport.request(method, path, body, self.token, PATIENCE)
        finally:
            await transport.close()
        if isinstance(answer.get("error"), Mapping):
            error = answer["error"]
            raise error_of(str(error.get("kind")), str(error.get("text")))
        return answer


def offered_until_heard(
    link: ControllerLink,
    query: str,
    batch: int,
    body: Mapping[str, Any],
    wait: Callable[[float], bool],
    tell: Callable[[str], None],
) -> str:
    """Offer a plan until a controller has heard of it; returns its fate, in a word or with the reason.

    `wait` waits so many seconds, and says whether to leave off.
    """
    for attempt in range(1_000_000):
        try:
            return str(link.offer(query, batch, body).get("fate", "waiting"))
        except (BadInput, Refused, Denied) as error:
            return f"refused: {error}"
        except FlowsieveError as error:  # it is away, or has too much to do
            if attempt == 0:
                tell(f"the offer of batch {batch} waits: {error}")
            if wait(BETWEEN[min(attempt, len(BETWEEN) - 1)]):
                break
    return NOT_HEARD
