"""What shows that a datagram is its publisher's: a short MAC, checked before anything in it is believed.

The MAC is a keyed BLAKE2b over the end of a datagram, from its kind on (see `event_message`): kind, publisher, sequence
number, stamps and content. What stands before, address and dz, may be written anew by whoever sends it again. Keys
belong to numbered *epochs*. A publisher's key is derived from that of the epoch and the publisher's id, so that a
subscriber, who has the keys of the epochs in force, can check every publisher, and a publisher can sign for none but
itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from hmac import compare_digest

from flowsieve.protocol.limits import KEY_BYTES, MAC_BYTES, PUBLISHER_BYTES

Begin = Callable[[], "hashlib.blake2b"]  # a hash that waits for what the MAC covers
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
        self._begin = _prepared(key)

    def mac(self, covered: bytes) -> bytes:
        """The MAC of all that it covers."""
        begun = self._begin()
        begun.update(covered)
        return begun.digest()


class MacChecker:
    """The subscriber's side, with the keys of the epochs in force."""

    def __init__(self, keys: Iterable[EpochKey], publishers: int = PUBLISHERS) -> None:
        self._keys = {epoch % EPOCHS: key for epoch, key in keys}
        self._most = publishers
        # By the epoch's byte and the publisher's id, of those who have shown a right MAC.
        self._known: dict[tuple[int, bytes], Begin] = {}

    def holds(self, datagram: bytes) -> bool:
        """Whether the MAC of a datagram is that of its publisher; a datagram that has none is nobody's."""
        try:
            at = 4 + datagram[3]  # behind the address
            covered = at + 4 + MAC_BYTES
            # Each in one byte and in its place, so that what is checked is what will be read.
            if datagram[2] != _BIN or datagram[at] >= 0x80 or datagram[at + 2 : at + 4] != _MAC_START:
                return False
            who = datagram[at + 1], datagram[covered + 3 : covered + 3 + PUBLISHER_BYTES]
        except IndexError:
            return False
        begin = self._known.get(who)
        known = begin is not None
        if begin is None:
            key = self._keys.get(who[0])
            if key is None:
                return False
            begin = _prepared(publisher_key(key, who[1]))
        begun = begin()
        begun.update(datagram[covered:])
        if not compare_digest(begun.digest(), datagram[at + 4 : covered]):
            return False
        if not known:
            self._keep(who, begin)
        return True

    def _keep(self, who: tuple[int, bytes], begin: Begin) -> None:
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[who] = begin

    def __len__(self) -> int:
        """How many publishers' keys are at hand, once for each epoch."""
        return len(self._known)


def _prepared(key: bytes) -> Begin:
    """What begins a MAC with a key: to copy a hash is cheaper than to make one."""
    return hashlib.blake2b(key=key, digest_size=MAC_BYTES).copy
