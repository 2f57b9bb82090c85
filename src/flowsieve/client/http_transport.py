"""Calls to the controller over HTTP, by TCP or by a socket in the file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from flowsieve.errors import BadInput, ControlLost
from flowsieve.protocol.answer import Answer, is_answer
from flowsieve.protocol.limits import REPORT_BYTES

DIAL_SECONDS = 5.0
LATE_SECONDS = 5.0  # beyond a call's deadline


class HttpTransport:
    """Calls to one controller, any number of them at a time."""

    room = REPORT_BYTES

    def __init__(self, address: str) -> None:
        self.address = address
        path = address.removeprefix("unix:") if address.startswith("unix:") else None
        transport = httpx.AsyncHTTPTransport(uds=path, limits=httpx.Limits(max_connections=256))
        self._url = "http://flowsieve/v1/calls" if path else f"{address.rstrip('/')}/v1/calls"
        self._client = httpx.AsyncClient(transport=transport)

    async def call(self, message: Mapping[str, Any]) -> Answer:
        """Make a call; returns its answer, or raises ControlLost where none came."""
        patience = float(message.get("deadline") or DIAL_SECONDS) + LATE_SECONDS
        try:
            response = await self._client.post(
                self._url, json=dict(message), timeout=httpx.Timeout(patience, connect=DIAL_SECONDS)
            )
            answer = response.json()
        except httpx.InvalidURL as error:
            raise BadInput(f"{self.address} is no address of a controller: {error}") from None
        except (httpx.HTTPError, ValueError) as error:
            raise ControlLost(
                f"no controller at {self.address}: {_why(error)}; start one with `flowsieve controller`"
            ) from None
        if not is_answer(answer):
            raise ControlLost(f"what answers at {self.address} is no controller of ours")
        return answer

    async def get(self, path: str) -> Any:
        """What the controller shows at a path."""
        try:
            response = await self._client.get(self._url.removesuffix("/v1/calls") + path)
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ControlLost(f"no controller at {self.address}: {_why(error)}") from None

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        token: str | None = None,
        patience: float = DIAL_SECONDS,
    ) -> Mapping[str, Any]:
        """What the controller answers at a path, by which an operator with a token may change something."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            response = await self._client.request(
                method,
                self._url.removesuffix("/v1/calls") + path,
                json=None if body is None else dict(body),
                headers=headers,
                timeout=httpx.Timeout(patience, connect=DIAL_SECONDS),
            )
            answer = response.json()
        except httpx.InvalidURL as error:
            raise BadInput(f"{self.address} is no address of a controller: {error}") from None
        except (httpx.HTTPError, ValueError) as error:
            raise ControlLost(f"no controller at {self.address}: {_why(error)}") from None
        if not isinstance(answer, dict):
            raise ControlLost(f"what answers at {self.address} is no controller of ours")
        return answer

    async def close(self) -> None:
        await self._client.aclose()


def _why(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
