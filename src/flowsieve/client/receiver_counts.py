"""What was lost on the way where packets name their receivers: publishers count per receiver, and tell it in digests.

An event does not say how many were sent to each of its receivers, or it would grow with their number. A digest goes to
one receiver, or to several of which the same is true, and says how many events they were sent so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flowsieve.header.tag import LABEL_HEADERS, POOLS
from flowsieve.protocol.limits import MAX_NUMBER

PUBLISHERS = 1 << 12  # that a subscriber knows
EVENTS = 1 << 16  # of one publisher that came since its last digest
INTERVALS = 64  # between digests, in which something is missing that may come late
DIGESTS = 256  # at a time
NOBODY = bytes(
    16
)  # in the place of a label that names no host: the event is for other applications of its own
_STARTS = tuple(
    tag.group.first.to_bytes(16)[: tag.group.length // 8] for header in LABEL_HEADERS for tag in POOLS[header]
)


def names_receivers(destination: bytes) -> bool:
    """Whether what a packet was sent to says for whom it is."""
    return destination.startswith(_STARTS) or destination == NOBODY


class ReceiverCounts:
    """The publisher's counts: of labels while events are sent, of receivers when somebody is to be told."""

    def __init__(self) -> None:
        self._labels: dict[
            int, int
        ] = {}  # how many events were sent to each set of receivers, since it was told
        self._counts: dict[int, int] = {}
        self._due: dict[int, None] = {}  # receivers that were sent something since they were told
        self._known = 0  # all receivers that were ever sent something

    def sent(self, receivers: int) -> int:
        """An event leaves for some receivers, a bit for each; those among them to whom none was sent before."""
        self._labels[receivers] = self._labels.get(receivers, 0) + 1
        new = receivers & ~self._known
        self._known |= receivers
        return new

    def digests(self) -> Iterator[tuple[int, int]]:
        """Receivers, and how many events each of them was sent; those first that have waited longest."""
        for receivers, count in self._labels.items():
            for receiver in _bits(receivers):
                self._counts[receiver] = self._counts.get(receiver, 0) + count
                self._due[receiver] = None
        self._labels.clear()
        for receiver in list(self._due)[:DIGESTS]:
            del self._due[receiver]
            yield 1 << receiver, self._counts[receiver]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(slots=True)
class _Publisher:
    """What came of a publisher since the last digest, and how many it had sent us by then; None before the first."""

    seq: int = 0
    count: int | None = None
    came: set[int] = field(default_factory=set)
    missing: list[list[int]] = field(default_factory=list)  # after which number, up to which, how many


class ReceiverMeter:
    """The subscriber's comparison of what it was sent with what came. All applications of a host are sent the same."""

    def __init__(self) -> None:
        self.lost = 0
        self.unchecked = 0
        self._publishers: dict[bytes, _Publisher] = {}

    def event(self, publisher: bytes, seq: int) -> None:
        """An event came, for the first time."""
        known = self._known(publisher)
        if seq > known.seq:
            known.came.add(seq)
            if len(known.came) > EVENTS:
                known.came.clear()
                known.count = None
            self.unchecked += known.count is None
            return
        for interval in known.missing:
            after, last, missing = interval
            if after < seq <= last and missing:
                interval[2] -= 1
                self.lost -= 1
                return

    def digest(self, publisher: bytes, seq: int, count: int) -> None:
        """A publisher says how many events it has sent us, up to a number."""
        known = self._known(publisher)
        if seq < known.seq or count > MAX_NUMBER:
            return
        if known.count is not None:
            got = sum(1 for each in known.came if each <= seq)
            missing = count - known.count - got
            if missing > 0:
                self.lost += missing
                known.missing.append([known.seq, seq, missing])
                del known.missing[:-INTERVALS]
        known.came = {each for each in known.came if each > seq}
        known.seq, known.count = seq, count

    def _known(self, publisher: bytes) -> _Publisher:
        known = self._publishers.pop(publisher, None)
        if known is None:
            if len(self._publishers) >= PUBLISHERS:
                del self._publishers[next(iter(self._publishers))]
            known = _Publisher()
        self._publishers[publisher] = known  # heard of last
        return known
