"""What a controller answers to a call: `{"ok": …}`, or `{"error": {"kind": …, "text": …}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from flowsieve.errors import BadInput, Busy, ControlLost, Denied, FlowsieveError, Refused

Answer = Mapping[str, Any]

BUSY, FAILED = "busy", "failed"
# What errors are called in answers and in the journal; an error is of the first kind that fits.
KINDS: dict[str, type[FlowsieveError]] = {
    "bad": BadInput,
    "refused": Refused,
    BUSY: Busy,
    "denied": Denied,
    "lost": ControlLost,
    FAILED: FlowsieveError,
}


def kind_of(error: FlowsieveError) -> str:
    """What an error is called."""
    return next(kind for kind, known in KINDS.items() if isinstance(error, known))


def error_of(kind: str, text: str) -> FlowsieveError:
    """The error that is called so; one of a kind that we do not know is just an error."""
    return KINDS.get(kind, FlowsieveError)(text)


def refusal(kind: str, text: str) -> Answer:
    """An answer that says no."""
    return {"error": {"kind": kind, "text": text}}


def answer_of(error: FlowsieveError) -> Answer:
    """The answer that tells an error."""
    return refusal(kind_of(error), str(error))


def kind_in(answer: Answer) -> str | None:
    """The kind of error that an answer tells; None if it says yes."""
    return None if "ok" in answer else str(answer["error"].get("kind"))


def is_answer(found: object) -> TypeGuard[Answer]:
    """Whether something that came is an answer: it says `ok` or `error`, and what."""
    return isinstance(found, Mapping) and isinstance(found.get("ok", found.get("error")), Mapping)


def outcome(answer: Answer) -> Mapping[str, Any]:
    """What a call came to; raises the error that the answer tells."""
    kind = kind_in(answer)
    if kind is None:
        told: Mapping[str, Any] = answer["ok"]
        return told
    raise error_of(kind, str(answer["error"].get("text")))
