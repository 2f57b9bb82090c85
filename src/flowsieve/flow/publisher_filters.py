"""What publishers have to know where packets name receivers: the filters of others that overlap what they advertise.

For a publisher it is what a table is for a switch: it follows from the interests, and changes by differences. A filter
that several hosts have asked for is there once, and a host once for each filter, however often it has asked. What hosts
want that a publisher may not address is nothing that it has to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flowsieve.content.filter import Filter
from flowsieve.flow.interest import Interest
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.flow.tables.compiler import Side

Promises = frozenset[Filter]  # all that a publisher has advertised


class FilterChange(NamedTuple):
    """A host has come to want what a filter matches, or does not any more."""

    filter: Filter
    host: str
    wanted: bool


@dataclass(slots=True, eq=False)
class _Want:
    """A filter, and how often each host has asked for it."""

    filter: Filter
    hosts: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class _Audience:
    """The wants that overlap some promises; publishers with the same promises share it."""

    promises: Promises
    wants: set[_Want]
    publishers: set[str] = field(default_factory=set)

    def concerns(self, want: _Want) -> bool:
        return any(map(want.filter.overlaps, self.promises))


class PublisherFilters:
    """All wants and promises; `update` tells what each publisher has to learn since the last time.

    The `policy` says which hosts a publisher may address. Filters with the same `name` are one: the same text, unless
    something else tells.
    """

    def __init__(self, policy: SendPolicy = EVERYBODY, name: Callable[[Filter], str] = str) -> None:
        self._policy, self._name = policy, name
        self._wants: dict[str, _Want] = {}
        self._offers: dict[str, Counter[Filter]] = {}
        self._audiences: dict[Promises, _Audience] = {}
        self._of: dict[str, _Audience] = {}  # by publisher
        self._news: dict[str, dict[tuple[_Want, str], bool]] = {}

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes; one without a filter matches nothing here."""
        for filter in interest.filters:
            if side is Side.SUBSCRIBER:
                self.want(filter, interest.endpoint, adding=adding)
            else:
                self._offer(filter, interest.endpoint, adding)

    def update(self) -> dict[str, list[FilterChange]]:
        """What is new to each publisher since the last update; one without promises needs to know nothing."""
        news, self._news = self._news, {}
        found = {
            publisher: [FilterChange(want.filter, host, wanted) for (want, host), wanted in some.items()]
            for publisher, some in news.items()
        }
        return {publisher: changes for publisher, changes in found.items() if changes}

    def held_by(self, publisher: str) -> Iterator[tuple[Filter, list[str]]]:
        """All that a publisher has to know: filters, and the other hosts that want what each matches."""
        audience = self._of.get(publisher)
        for want in audience.wants if audience is not None else ():
            if hosts := [host for host in want.hosts if self._addresses(publisher, host)]:
                yield want.filter, hosts

    def concerned(self, interest: Interest, side: Side) -> Collection[str]:
        """The publishers that have to know of an interest before it is served."""
        if side is Side.PUBLISHER:
            return (interest.endpoint,) if interest.endpoint in self._of else ()
        host = interest.endpoint
        return [publisher for publisher in self._heard_by(interest) if self._addresses(publisher, host)]

    def forbidden(self, interest: Interest) -> list[str]:
        """The publishers that advertise what a subscription wants, and may not address its host."""
        if self._policy.open:
            return []
        host = interest.endpoint
        return sorted(p for p in self._heard_by(interest) if p != host and not self._policy.allows(p, host))

    def all_forbidden(self) -> dict[str, list[str]]:
        """The hosts that want what a publisher advertises, and that it may not address, by publisher."""
        if self._policy.open:
            return {}
        subscribers = {host for want in self._wants.values() for host in want.hosts}
        found = {}
        for audience in self._audiences.values():
            there = set[str]()
            for want in audience.wants:
                there.update(want.hosts)
                if len(there) == len(subscribers):
                    break
            for publisher in audience.publishers:
                allowed = {publisher, *self._policy.reached(publisher, there)}
                if hosts := sorted(there - allowed):
                    found[publisher] = hosts
        return dict(sorted(found.items()))

    def _heard_by(self, interest: Interest) -> Iterator[str]:
        """Who has promised something that a subscription wants."""
        names = map(self._name, interest.filters)
        wants = {want for name in names if (want := self._wants.get(name)) is not None}
        for audience in self._audiences.values():
            if not audience.wants.isdisjoint(wants):
                yield from audience.publishers

    def _addresses(self, publisher: str, host: str) -> bool:
        """Whether a publisher names a host in its packets, should that want them."""
        return publisher != host and self._policy.allows(publisher, host)

    @property
    def publishers(self) -> Collection[str]:
        """All who have promised something."""
        return self._of.keys()

    def want(self, filter: Filter, host: str, *, adding: bool) -> None:
        """A host wants what a filter matches, or does not any more."""
        name = self._name(filter)
        want = self._wants.get(name)
        fresh = want is None
        if want is None:
            want = self._wants[name] = _Want(filter)
        hosts = want.hosts
        hosts[host] += 1 if adding else -1
        if hosts[host] > (1 if adding else 0):
            return
        if not adding:
            del hosts[host]
        for audience in self._audiences.values():
            if fresh and audience.concerns(want):
                audience.wants.add(want)
            if want in audience.wants:
                for publisher in audience.publishers:
                    if self._addresses(publisher, host):
                        self._tell(publisher, want, host, adding)
                if not hosts:
                    audience.wants.discard(want)
        if not hosts:
            del self._wants[name]

    def _offer(self, filter: Filter, host: str, adding: bool) -> None:
        offers = self._offers.setdefault(host, Counter())
        offers[filter] += 1 if adding else -1
        if not offers[filter]:
            del offers[filter]
        if not offers:
            del self._offers[host]
        before, promises = self._of.pop(host, None), frozenset(offers)
        known = before.wants if before is not None else set[_Want]()
        after = self._audience(promises, before) if promises else None
        there = after.wants if after is not None else set[_Want]()
        if before is not None and before is not after:
            before.publishers.discard(host)
            if not before.publishers:
                del self._audiences[before.promises]
        if after is not None:
            after.publishers.add(host)
            self._of[host] = after
        for some, wanted in ((known - there, False), (there - known, True)):
            for each in some:
                for other in each.hosts:
                    if self._addresses(host, other):
                        self._tell(host, each, other, wanted)

    def _audience(self, promises: Promises, near: _Audience | None) -> _Audience:
        """That of some promises; worked out from one that is `near`, where that has all or a part of them."""
        found = self._audiences.get(promises)
        if found is None:
            found = self._audiences[promises] = _Audience(promises, self._heard(promises, near))
        return found

    def _heard(self, promises: Promises, near: _Audience | None) -> set[_Want]:
        everything = set(self._wants.values())
        if any(each.schema.whole in each.boxes for each in promises):
            return everything
        sure, maybe, new = set[_Want](), everything, promises
        if near is not None and near.promises < promises:
            sure, maybe, new = near.wants, everything - near.wants, promises - near.promises
        elif near is not None and near.promises > promises:
            maybe = near.wants
        fresh = _Audience(new, set())
        return sure | {each for each in maybe if fresh.concerns(each)}

    def _tell(self, publisher: str, want: _Want, host: str, wanted: bool) -> None:
        """What comes and goes again before anybody was told is no news."""
        news = self._news.setdefault(publisher, {})
        if news.pop((want, host), wanted) is wanted:
            news[want, host] = wanted
