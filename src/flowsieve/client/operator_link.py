"""What an operator asks of a controller over HTTP, at whichever of several addresses somebody leads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.client.http_transport import HttpTransport
from flowsieve.errors import BadInput, ControlLost, FlowsieveError
from flowsieve.protocol.answer import error_of

PATIENCE = 10.0  # seconds for one answer


@dataclass(frozen=True)
class OperatorLink:
    """Where controllers take requests, and the token that shows that an operator asks."""

    addresses: tuple[str, ...]
    token: str | None = None

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, patience: float = PATIENCE
    ) -> Mapping[str, Any]:
        """What the controller that leads answers; raises the error that it answers with."""
        lost: FlowsieveError = BadInput("no address of a controller was given; right is --control ADDRESS")
        for address in self.addresses:
            try:
                return asyncio.run(self._asked(address, method, path, body, patience))
            except (ControlLost, OSError) as error:
                lost = error if isinstance(error, FlowsieveError) else ControlLost(str(error))
        raise lost

    async def _asked(
        self, address: str, method: str, path: str, body: Mapping[str, Any] | None, patience: float
    ) -> Mapping[str, Any]:
        transport = HttpTransport(address)
        try:
            answer = await transport.request(method, path, body, self.token, patience)
        finally:
            await transport.close()
        if isinstance(answer.get("error"), Mapping):
            error = answer["error"]
            raise error_of(str(error.get("kind")), str(error.get("text")))
        return answer
