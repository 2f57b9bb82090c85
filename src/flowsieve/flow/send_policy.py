"""Which hosts a publisher may address, as the operator says; it holds at its port, whatever is subscribed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

from flowsieve.errors import BadInput, nearest
from flowsieve.network.host_patterns import HostPatterns


@dataclass(frozen=True, slots=True)
class MaySend:
    """Hosts that may address others; both are names, or patterns of names as a shell has them."""

    senders: tuple[str, ...]
    receivers: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.senders or not self.receivers or not all((*self.senders, *self.receivers)):
            raise BadInput(
                "a rule has hosts that may send, and hosts that they may send to; right is one or more"
            )


@dataclass(frozen=True, slots=True)
class SendPolicy:
    """Its `rules`: a host may address whom one of them lets it, and nobody without one. None: all may address all.

    >>> policy = SendPolicy((MaySend(("cam*",), ("desk1", "desk2")),))
    >>> policy.allows("cam7", "desk1"), policy.allows("cam7", "cam8"), policy.allows("desk1", "cam7")
    (True, False, False)
    """

    rules: tuple[MaySend, ...] | None = None
    _reach: dict[str, re.Pattern[str] | None] = field(
        init=False, compare=False, repr=False, hash=False, default_factory=dict
    )

    @property
    def open(self) -> bool:
        """Whether everybody may address everybody."""
        return self.rules is None

    def allows(self, sender: str, receiver: str) -> bool:
        """Whether one host may address another."""
        if self.rules is None:
            return True
        if sender not in self._reach:
            self._reach[sender] = self._patterns(sender)
        found = self._reach[sender]
        return found is not None and found.match(receiver) is not None

    def reached(self, sender: str, hosts: Iterable[str]) -> list[str]:
        """Those of some hosts that a host may address."""
        return [host for host in hosts if self.allows(sender, host)]

    def __or__(self, other: SendPolicy) -> SendPolicy:
        """What one of two policies lets hosts do."""
        if self.rules is None or other.rules is None:
            return EVERYBODY
        return SendPolicy(tuple(dict.fromkeys((*self.rules, *other.rules))))

    def check(self, hosts: Iterable[str]) -> None:
        """Raise where a rule names a host that a network has not; a pattern may be for hosts that are to come."""
        known = list(hosts)
        for rule in self.rules or ():
            for name in HostPatterns((*rule.senders, *rule.receivers)).names:
                if name not in known:
                    raise BadInput(
                        f"[[policy.may_send]] names host {name!r}, and there is none{nearest(name, known)}"
                    )

    def to_json(self) -> list[Any] | None:
        return (
            None
            if self.rules is None
            else [[list(each.senders), list(each.receivers)] for each in self.rules]
        )

    @classmethod
    def from_json(cls, data: Sequence[Sequence[Sequence[str]]] | None) -> SendPolicy:
        """What `to_json` wrote down."""
        if data is None:
            return EVERYBODY
        return cls(tuple(MaySend(tuple(senders), tuple(receivers)) for senders, receivers in data))

    def _patterns(self, sender: str) -> re.Pattern[str] | None:
        """What names the hosts that one may address; None where there are none."""
        found = [
            name
            for rule in self.rules or ()
            if HostPatterns(rule.senders).hold(sender)
            for name in rule.receivers
        ]
        return re.compile("|".join(map(translate, dict.fromkeys(found)))) if found else None


EVERYBODY = SendPolicy()
