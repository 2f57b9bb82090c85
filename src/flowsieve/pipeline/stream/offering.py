"""Plans offered to a controller over HTTP: the first body for a query and a batch counts, so it may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.client.operator_link import OperatorLink
from flowsieve.errors import BadInput, Denied, FlowsieveError, Refused

PLANS = "/v1/plans"
NOT_HEARD = "not heard"
BETWEEN = (1.0, 2.0, 5.0, 10.0)  # seconds until it is tried again; the last of them from then on


@dataclass(frozen=True)
class ControllerLink(OperatorLink):
    """A controller that takes offers."""

    def offers(self) -> Mapping[str, Any]:
        """The offers that the controller has, and what it allows."""
        return self.request("GET", PLANS)

    def offer(self, query: str, batch: int, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Offer a plan; returns what the controller says of it."""
        return self.request("PUT", f"{PLANS}/{query}/{batch}", body)

    def approve(self, query: str, batch: int) -> Mapping[str, Any]:
        return self.request("POST", f"{PLANS}/{query}/{batch}/approve", {})


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
