"""The keys that a controller gives a session: to sign the events that it publishes, and to check those that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.errors import BadMessage
from flowsieve.protocol.event_mac import EpochKey
from flowsieve.protocol.limits import KEY_BYTES, MAX_NUMBER

UNSIGNED = 0  # the stage of a session that was told that events are not signed


@dataclass(frozen=True, slots=True)
class EventKeys:
    """The keys of a stage; one that only publishes has none to check with.

    A stage is a number that grows with each change of keys. A session says which it is at, so that the controller
    knows when the next can begin.
    """

    stage: int
    sign: EpochKey
    check: tuple[EpochKey, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `parse` reads: keys stand as hexadecimal digits."""
        told: dict[str, Any] = {"stage": self.stage, "sign": _to_json(self.sign)}
        return told | {"check": [_to_json(each) for each in self.check]} if self.check else told

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> EventKeys:
        """What `to_json` wrote down."""
        try:
            stage = _number(data["stage"])
            return cls(stage, _parse(data["sign"]), tuple(_parse(each) for each in data.get("check", ())))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadMessage(f"the controller's keys for events cannot be read: {error!r}") from None


def _to_json(key: EpochKey) -> list[int | str]:
    return [key[0], key[1].hex()]


def _parse(told: Any) -> EpochKey:
    epoch, text = told
    key = bytes.fromhex(text)
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes; right are {KEY_BYTES}")
    return _number(epoch), key


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value <= MAX_NUMBER:
        raise ValueError(f"{value!r} is no number of a stage or an epoch")
    return value
