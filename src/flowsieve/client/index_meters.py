"""What was lost, while the network goes over from one index to another: a count for each index, told apart by tags.

Under either index a publisher counts what it sends anew, and a subscriber is owed other cells. So nothing of the one is
compared with anything of the other. Events under a tag that is not known yet are as good as any; only what is missing
among them cannot be told before the subscriber has heard what it is owed under it.

A datagram that the controller has sent again, since its publisher was late, has 0 bits: it went where the new index
sends it, and what counts the old one has given it says nothing about who should have got it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from flowsieve.client.loss import LossMeter, ladder
from flowsieve.header.encoding import Encoding
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import EMPTY, DzSet, union
from flowsieve.protocol.event_message import Message, MessageKind

BEFORE = 2  # indexes that are remembered beside the one of now: there are no more tags than for these


@dataclass(slots=True, eq=False)
class _Metered:
    """One index: what we are owed under it, by subscription, and what of that has come."""

    encoding: Encoding
    meter: LossMeter = field(default_factory=LossMeter)
    dz: dict[str, DzSet] = field(default_factory=dict)
    wanted: DzSet = EMPTY  # all of it together

    def want(self, dz: DzSet) -> None:
        if dz != self.wanted:
            self.wanted = dz
            self.meter.want(dz)


class IndexMeters:
    """The meters of one application; `encoding` is that of the index to begin with."""

    def __init__(self, encoding: Encoding) -> None:
        self._now = _Metered(encoding)
        self._before: list[_Metered] = []  # the newest first
        self.lost = self.unchecked = 0  # under all of them

    @property
    def promised(self) -> bool:
        """Whether the network owes us something."""
        return bool(self._now.dz)

    def confirm(self, name: str, dz: DzSet) -> None:
        """The network owes us a subscription's dz, under the index of now."""
        self._now.dz[name] = dz
        self._now.want(self._now.wanted | dz)

    def close(self, name: str) -> None:
        """A subscription is no more."""
        for each in (self._now, *self._before):
            if each.dz.pop(name, None) is not None:
                each.want(_together(each.dz))

    def go_over(self, encoding: Encoding, dz: Mapping[str, DzSet]) -> None:
        """There is another index, and this is what we have been owed under it since before anything was sent there.

        What comes under the one before is weighed as ever. One under the same tag is forgotten: its time is over.
        """
        before, self._now = self._now, _Metered(encoding, dz=dict(dz))
        self._now.wanted = _together(dz)
        self._now.meter.begin(self._now.wanted, before.meter)
        kept = (each for each in (before, *self._before) if each.encoding.tag != encoding.tag)
        self._before = list(islice(kept, BEFORE))

    def weigh(self, message: Message) -> bool:
        """Count what a message shows to be missing; whether we are owed what is in its cell."""
        now = self._now
        if not _sent_again(message):
            dz = message.dz(now.encoding)
            if dz is not None:
                return self._weigh(now, message, dz)
            now.meter.heard(message.publisher, message.seq)
            for each in self._before:
                dz = message.dz(each.encoding)
                if dz is not None:
                    return self._weigh(each, message, dz)
        now.meter.heard(message.publisher, message.seq)
        return False

    def _weigh(self, metered: _Metered, message: Message, dz: Dz) -> bool:
        meter = metered.meter
        before, event = meter.unchecked, message.kind is MessageKind.EVENT
        self.lost += meter.saw(message.publisher, message.seq, dz, message.stamps, event=event)
        self.unchecked += meter.unchecked - before
        return meter.wants(dz)

    def unknown(self) -> None:
        """An event that is wanted came from where nobody can tell what is missing."""
        self.unchecked += 1


def _together(dz: Mapping[str, DzSet]) -> DzSet:
    return union(list(dz.values())) if dz else EMPTY


def _sent_again(message: Message) -> bool:
    """Whether it has stamps of a dz, and no dz; a plan of 0 bits has stamps for that."""
    return not message.bits and len(message.stamps) != 2 * len(ladder(0))
