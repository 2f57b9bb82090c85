"""Who may change a network over HTTP: whoever shows the operator's token."""

from __future__ import annotations

import hmac

from fastapi import Request

from flowsieve.errors import Denied

BEARER = "Bearer "
SHOW = (
    "right is the header `Authorization: Bearer TOKEN`, which `flowsieve token CONFIG.toml --operator` prints"
)


def check_operator(request: Request, operator: str) -> None:
    """Raise where a request does not show that an operator makes it."""
    shown = request.headers.get("authorization", "")
    right = operator.encode()
    token = shown.removeprefix(BEARER).strip().encode(errors="replace")
    if not (shown.startswith(BEARER) and hmac.compare_digest(token, right)):
        raise Denied(f"this takes an operator's token; {SHOW}")
