"""What publishers have to know where packets name receivers: the filters of others that overlap what they advertise.

For a publisher it is what a table is for a switch: it follows from the interests, and changes by differences. A filter
that several hosts have asked for is there once, and a host once for each filter, however often it has asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flowsieve.content.filter import Filter
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side

Promises = frozenset[Filter]  # all that a publisher has advertised


class FilterChange(NamedTuple):
    """A host has come to want what a filter matches, or does not any more."""

    filter: Filter
    host: str
    wanted: bool


@dataclass(slots=True)
class _Audience:
    """The filters that overlap some promises; publishers with the same promises share it."""

    promises: Promises
    filters: set[Filter]
    publishers: set[str] = field(default_factory=set)

    def concerns(self, filter: Filter) -> bool:
        return any(map(filter.overlaps, self.promises))


class PublisherFilters:
    """All wants and promises; `update` tells what each publisher has to learn since the last time."""

    def __init__(self) -> None:
        self._wants: dict[Filter, Counter[str]] = {}  # hosts, and how often each has asked for it
        self._offers: dict[str, Counter[Filter]] = {}
        self._audiences: dict[Promises, _Audience] = {}
        self._of: dict[str, _Audience] = {}  # by publisher
        self._news: dict[str, dict[tuple[Filter, str], bool]] = {}

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes; one without a filter matches nothing here."""
        for filter in interest.filters:
            if side is Side.SUBSCRIBER:
                self._want(filter, interest.endpoint, adding)
            else:
                self._offer(filter, interest.endpoint, adding)

    def update(self) -> dict[str, list[FilterChange]]:
        """What is new to each publisher since the last update; one without promises needs to know nothing."""
        news, self._news = self._news, {}
        found = {
            publisher: [FilterChange(filter, host, wanted) for (filter, host), wanted in some.items()]
            for publisher, some in news.items()
        }
        return {publisher: changes for publisher, changes in found.items() if changes}

    def held_by(self, publisher: str) -> Iterator[tuple[Filter, list[str]]]:
        """All that a publisher has to know: filters, and the other hosts that want what each matches."""
        audience = self._of.get(publisher)
        for filter in audience.filters if audience is not None else ():
            if hosts := [host for host in self._wants[filter] if host != publisher]:
                yield filter, hosts

    def concerned(self, interest: Interest, side: Side) -> Collection[str]:
        """The publishers that have to know of an interest before it is served."""
        if side is Side.PUBLISHER:
            return (interest.endpoint,)
        return [
            publisher
            for audience in self._audiences.values()
            if not audience.filters.isdisjoint(interest.filters)
            for publisher in audience.publishers
            if publisher != interest.endpoint
        ]

    @property
    def publishers(self) -> Collection[str]:
        """All who have promised something."""
        return self._of.keys()

    def _want(self, filter: Filter, host: str, adding: bool) -> None:
        hosts = self._wants.setdefault(filter, Counter())
        fresh = not hosts
        hosts[host] += 1 if adding else -1
        if hosts[host] > (1 if adding else 0):
            return
        if not adding:
            del hosts[host]
        for audience in self._audiences.values():
            if adding and fresh and audience.concerns(filter):
                audience.filters.add(filter)
            if filter in audience.filters:
                for publisher in audience.publishers - {host}:
                    self._tell(publisher, filter, host, adding)
                if not hosts:
                    audience.filters.discard(filter)
        if not hosts:
            del self._wants[filter]

    def _offer(self, filter: Filter, host: str, adding: bool) -> None:
        offers = self._offers.setdefault(host, Counter())
        offers[filter] += 1 if adding else -1
        if not offers[filter]:
            del offers[filter]
        if not offers:
            del self._offers[host]
        before, promises = self._of.pop(host, None), frozenset(offers)
        known = before.filters if before is not None else set[Filter]()
        after = self._audience(promises, before) if promises else None
        there = after.filters if after is not None else set[Filter]()
        if before is not None and before is not after:
            before.publishers.discard(host)
            if not before.publishers:
                del self._audiences[before.promises]
        if after is not None:
            after.publishers.add(host)
            self._of[host] = after
        for some, wanted in ((known - there, False), (there - known, True)):
            for each in some:
                for other in self._wants[each]:
                    if other != host:
                        self._tell(host, each, other, wanted)

    def _audience(self, promises: Promises, near: _Audience | None) -> _Audience:
        """That of some promises; worked out from one that is `near`, where that has all or a part of them."""
        found = self._audiences.get(promises)
        if found is None:
            filters: Collection[Filter] = self._wants
            sure = set[Filter]()
            if near is not None and near.promises < promises:
                sure = set(near.filters)
            elif near is not None and near.promises > promises:
                filters = near.filters
            found = self._audiences[promises] = _Audience(promises, sure)
            new = promises - near.promises if sure and near is not None else promises
            fresh = _Audience(new, sure)
            found.filters |= {each for each in filters if each not in sure and fresh.concerns(each)}
        return found

    def _tell(self, publisher: str, filter: Filter, host: str, wanted: bool) -> None:
        """What comes and goes again before anybody was told is no news."""
        news = self._news.setdefault(publisher, {})
        if news.pop((filter, host), wanted) is wanted:
            news[filter, host] = wanted
