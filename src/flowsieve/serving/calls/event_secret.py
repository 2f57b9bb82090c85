"""Ids and keys for the events of all publishers, derived from one secret: nothing of it has to be kept or sent around.

A *stage* says which epochs are in force. At stage 2e events are signed with the key of epoch e, and those of e and
e + 1 are believed; at stage 2e + 1 they are signed with e + 1, and e, e + 1 and e + 2 are believed. So of two stages
that follow each other each believes what is signed at the other: while no session is further behind, nothing is
dropped, in whatever order sessions go over.
"""

from __future__ import annotations

import hashlib

from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.event_mac import publisher_key
from flowsieve.protocol.limits import KEY_BYTES, PUBLISHER_BYTES

DERIVED_BYTES = 32


def signing_epoch(stage: int) -> int:
    """The epoch whose key is signed with."""
    return (stage + 1) // 2


def believed_epochs(stage: int) -> range:
    """The epochs whose keys are believed.

    >>> [(signing_epoch(stage), list(believed_epochs(stage))) for stage in (6, 7, 8)]
    [(3, [3, 4]), (4, [3, 4, 5]), (4, [4, 5])]
    """
    return range(stage // 2, signing_epoch(stage) + 2)


class EventSecret:
    """What is derived from a secret of the controller; without the secret none of it can be told from the rest."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.blake2b(secret, digest_size=DERIVED_BYTES, person=b"event keys").digest()

    def publisher(self, host: str, session: str) -> bytes:
        """The id that a session publishes under, always the same; no other host can have it."""
        return self._derived(b"publisher", f"{host}\0{session}", PUBLISHER_BYTES)

    def epoch_key(self, epoch: int) -> bytes:
        return self._derived(b"epoch", str(epoch), KEY_BYTES)

    def keys(self, stage: int, publisher: bytes, *, checks: bool) -> EventKeys:
        """What a session gets at a stage: its own key, and with `checks` those of all epochs that are believed."""
        epoch = signing_epoch(stage)
        own = publisher_key(self.epoch_key(epoch), publisher)
        believed = believed_epochs(stage) if checks else ()
        return EventKeys(stage, (epoch, own), tuple((each, self.epoch_key(each)) for each in believed))

    def _derived(self, what: bytes, text: str, size: int) -> bytes:
        told = text.encode(errors="surrogatepass")
        return hashlib.blake2b(told, key=self._key, digest_size=size, person=what).digest()
