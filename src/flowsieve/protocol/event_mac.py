"""What shows that a datagram is its publisher's: a short MAC, checked before anything in it is believed.

The MAC is a keyed BLAKE2b over the end of a datagram, from its kind on (see `event_message`): kind, publisher, sequence
number, stamps and content. What stands before, address and dz, may be written anew by whoever sends it again. Keys
belong to numbered *epochs*. A publisher's key is derived from that of the epoch and the publisher's id, so that a
subscriber, who has the keys of the epochs in force, can check every publisher, and a publisher can sign for none but
itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from hmac import compare_digest

from flowsieve.protocol.limits import KEY_BYTES, MAC_BYTES, PUBLISHER_BYTES

EpochKey = tuple[int, bytes]  # the number of an epoch, and a key of it
EPOCHS = 128  # a datagram says the number of its epoch in one byte; few are in force at a time
PUBLISHERS = 1 << 12  # whose keys are kept at hand
_BIN = 0xC4  # in MessagePack: bytes follow, their number first
_MAC_START = bytes((_BIN, MAC_BYTES))


def publisher_key(epoch_key: bytes, publisher: bytes) -> bytes:
    """The key that a publisher signs with in an epoch."""
    return hashlib.blake2b(publisher, key=epoch_key, digest_size=KEY_BYTES).digest()


class Signer:
    """The publisher's side, with its own key of an epoch."""

    def __init__(self, epoch: int, key: bytes) -> None:
        self.epoch = epoch % EPOCHS
        self._start = hashlib.blake2b(key=key, digest_size=MAC_BYTES)

    def mac(self, covered: bytes) -> bytes:
        """The MAC of all that it covers."""
        begun = self._start.copy()
        begun.update(covered)
        return begun.digest()


class MacChecker:
    """The subscriber's side, with the keys of the epochs in force."""

    def __init__(self, keys: Iterable[EpochKey], publishers: int = PUBLISHERS) -> None:
        self._keys = {epoch % EPOCHS: key for epoch, key in keys}
        self._most = publishers
        self._signers: dict[tuple[int, bytes], Signer] = {}  # of publishers that have shown a right MAC

    def holds(self, datagram: bytes) -> bool:
        """Whether the MAC of a datagram is that of its publisher; a datagram that has none is nobody's."""
        try:
            at = 4 + datagram[3]  # behind the address
            bits, epoch, covered = datagram[at], datagram[at + 1], at + 4 + MAC_BYTES
            # Each in one byte and in its place, so that what is checked is what will be read.
            if datagram[2] != _BIN or bits >= 0x80 or datagram[at + 2 : at + 4] != _MAC_START:
                return False
        except IndexError:
            return False
        publisher = datagram[covered + 3 : covered + 3 + PUBLISHER_BYTES]
        signer = self._signers.get((epoch, publisher)) or self._signer(epoch, publisher)
        if signer is None or not compare_digest(signer.mac(datagram[covered:]), datagram[at + 4 : covered]):
            return False
        if (epoch, publisher) not in self._signers:
            self._keep(epoch, publisher, signer)
        return True

    def _signer(self, epoch: int, publisher: bytes) -> Signer | None:
        key = self._keys.get(epoch)
        return Signer(epoch, publisher_key(key, publisher)) if key is not None else None

    def _keep(self, epoch: int, publisher: bytes, signer: Signer) -> None:
        if len(self._signers) >= self._most:
            del self._signers[next(iter(self._signers))]
        self._signers[epoch, publisher] = signer
