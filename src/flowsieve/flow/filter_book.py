"""Which filters are wanted by whom and may be published by whom, and so at which ports tables have to know them.

A filter has to be known at a port if somebody behind it wants it, and somebody who is not behind it has advertised
events that match it; unless a filter that covers it has to be known there as well. All of this is told filter by
filter, so that a request costs what it touches: the filters that it names, and those that they cover.

Publishers hear of a change after the tables, each at its own time. Until all of them hold it, a wish that comes or goes
is *unsure*: some may send the bits of its filter, and some may not. So tables know it, but nothing that it covers is
left out for its sake, unless that came or goes by the same step: then whoever sends the one sends the other. Whatever
publishers hold, between what is sure and what may be, a packet for a filter finds its own bits in all tables on its
way, or those of a filter that covers it and that its publisher is sure to hold. So the steps need no order among
themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from flowsieve.content.canonical import canonical
from flowsieve.content.filter import Filter
from flowsieve.flow.asked_filters import AskedFilters
from flowsieve.flow.covering import Covering
from flowsieve.flow.held_filters import HeldFilter, HeldFilters
from flowsieve.flow.tables.bloom_tables import BloomLabelling

Moment = tuple[object, ...]  # of publishers: what has the same one, they send all of it or nothing
Parts = Mapping[Moment | None, int]  # ports at which a filter is wanted; by None what is sure
PortChanges = dict[int, tuple[int, int]]  # of each pattern: ports before and now


class _Mark(NamedTuple):
    """That a host's wish is unsure since a step, and what it was before that."""

    step: int
    moment: Moment
    before: _Mark | None


class FilterBook:
    """All that is asked for and advertised, and where tables have to know it.

    `changes` says what follows for the tables, `follow` that they are on their way to it, `resolve` that all publishers
    hold what a step has changed.
    """

    def __init__(
        self,
        labelling: BloomLabelling,
        name: Callable[[Filter], str] = canonical,
        covering: Covering | None = None,
    ) -> None:
        """Filters with the same `name` are one; which cover others, a `covering` knows."""
        self._labelling = labelling
        self._name = name
        self.asked = AskedFilters(covering)
        self._unsure: dict[str, dict[str, _Mark]] = {}  # of a filter, by host
        self._steps: dict[int, list[tuple[str, str]]] = {}  # filters and hosts that are unsure since each
        self._offers: dict[str, Counter[Filter]] = {}  # of each publisher
        self._reached: dict[str, dict[str, int]] = {}  # for a filter, by publisher: ports that events come to
        self._wanted: dict[str, Parts] = {}
        self._patterns: dict[str, int] = {}
        self._alike: dict[int, set[str]] = {}  # the filters of a pattern: nearly always one
        self._ports: dict[int, int] = {}  # at which ports a pattern is asked for
        self._changed: set[str] = set()

    # What is asked for.

    def subscribe(self, host: str, filter: Filter, step: int | None = None) -> None:
        """A host wants a filter, by a step that publishers are to hear of; None if they all hold it."""
        text = self._name(filter)
        if text not in self._patterns:
            pattern = self._patterns[text] = self._labelling.labels.pattern(text)
            self._alike.setdefault(pattern, set()).add(text)
            self._reached[text] = {
                publisher: self._away(publisher)
                for publisher, offers in self._offers.items()
                if any(map(filter.overlaps, offers))
            }
        if self.asked.ask(text, filter, host):
            self._mark(text, host, step, coming=True)
        elif step is not None and host in self._unsure.get(text, {}):
            self._steps.setdefault(step, []).append((text, host))  # as sure as what came before it

    def unsubscribe(self, host: str, filter: Filter, step: int | None = None) -> None:
        text = self._name(filter)
        if self.asked.end(text, host):
            self._mark(text, host, step, coming=False)

    def advertise(self, host: str, filter: Filter) -> None:
        offers = self._offers.setdefault(host, Counter())
        offers[filter] += 1
        if offers[filter] == 1:
            for text, wanted in self.asked.covering.filters.items():
                if host not in self._reached[text] and wanted.overlaps(filter):
                    self._reached[text][host] = self._away(host)
                    self._changed.add(text)

    def unadvertise(self, host: str, filter: Filter) -> None:
        offers = self._offers[host]
        offers -= Counter([filter])
        if filter in offers:
            return
        for text, wanted in self.asked.covering.filters.items():
            if host in self._reached[text] and not any(map(wanted.overlaps, offers)):
                del self._reached[text][host]
                self._changed.add(text)

    def resolve(self, step: int) -> None:
        """All publishers hold what a step has changed, and what they sent before has arrived."""
        for text, host in self._steps.pop(step, ()):
            marks = self._unsure.get(text, {})
            if host in marks and marks[host].step == step:
                self._unmark(text, host)
                self._changed |= self.asked.touched(text)

    def doubt(self, step: int) -> None:
        """It is not known which publishers hold what: nothing is sure until this step is resolved."""
        for text, hosts in self.asked.hosts.items():
            for host in hosts:
                if host not in self._unsure.get(text, {}):
                    mark = _Mark(step, (step, text, host), None)
                    self._unsure.setdefault(text, {})[host] = mark
                    self._steps.setdefault(step, []).append((text, host))
        self._changed |= self.asked.hosts.keys()

    def relabel(self, labelling: BloomLabelling) -> None:
        """Go over to another tree or network: no table is on its way to anything yet."""
        self._labelling = labelling
        self._wanted, self._ports = {}, {}
        for reached in self._reached.values():
            for publisher in reached:
                reached[publisher] = self._away(publisher)
        self._changed = set(self.asked.hosts)

    def _mark(self, text: str, host: str, step: int | None, *, coming: bool) -> None:
        """A wish is not what it was; one that a step has changed already is again what it was before."""
        self._changed |= self.asked.touched(text)
        if step is None:
            return
        marks = self._unsure.setdefault(text, {})
        known = marks.get(host)
        if known is None:
            marks[host] = _Mark(step, (step, coming), None)
        elif known.step != step:  # who holds what of this is anybody's guess
            marks[host] = _Mark(step, (step, text, host), known)
        elif known.before is not None and known.before.step in self._steps:
            marks[host] = known.before
            return
        else:
            self._unmark(text, host)
            return
        self._steps.setdefault(step, []).append((text, host))

    def _unmark(self, text: str, host: str) -> None:
        del self._unsure[text][host]
        if not self._unsure[text]:
            del self._unsure[text]

    def _away(self, publisher: str) -> int:
        """The ports that a publisher is not behind: those that its events may leave by."""
        return self._labelling.everywhere & ~self._labelling.behind[publisher]

    # What follows.

    def changes(self) -> PortChanges:
        """The ports at which each pattern is asked for now, and those at which it has to be, where these differ.

        A filter is asked for where it has to be known and none that covers it is sure to be.
        """
        covering = self.asked.covering
        now = {text: self._parts(text) for text in self._changed}
        moved = {text for text, parts in now.items() if parts != self._wanted.get(text, {})}
        affected = moved.union(*(covering.below(text) for text in moved))

        def parts_of(text: str) -> Parts:
            return now[text] if text in now else self._wanted.get(text, {})

        found: PortChanges = {}
        for pattern in {self._patterns[text] for text in affected}:
            before, after = self._ports.get(pattern, 0), 0
            for text in self._alike[pattern]:
                above = [parts_of(each) for each in covering.above(text)]
                for moment, ports in parts_of(text).items():
                    after |= ports & ~_union(_sure_with(parts, moment) for parts in above)
            if after != before:
                found[pattern] = before, after
        return found

    def follow(self, changes: PortChanges) -> None:
        """Tables are on their way to what follows from all that is asked for."""
        for pattern, (_, now) in changes.items():
            self._ports[pattern] = now
            if not now:
                del self._ports[pattern]
        for text in self._changed:
            self._wanted[text] = self._parts(text)
            if not self._wanted[text]:
                del self._wanted[text]
        for text in self._changed:
            if not self.asked.hosts[text] and text not in self._unsure:
                self._forget(text)
        self._changed = set()

    def asked_at(self, pattern: int) -> int:
        """The ports at which tables are to know a pattern."""
        return self._ports.get(pattern, 0)

    def held(self) -> HeldFilters:
        """What publishers are to hold."""
        return HeldFilters(dict(self.asked.held()), self._labelling.nearness)

    def held_in_between(self) -> HeldFilters:
        """All filters that some publisher may hold; what covers them, as far as all publishers hold it."""
        if not self._unsure:
            return self.held()
        found = {}
        for text, filter in self.asked.covering.filters.items():
            hosts = frozenset(host for some in self._moments(text).values() for host in some)
            if hosts:
                above = frozenset(
                    each for each in self.asked.covering.above(text) if None in self._moments(each)
                )
                found[text] = HeldFilter(filter, hosts, above)
        return HeldFilters(found, self._labelling.nearness)

    def in_between(self) -> frozenset[int]:
        """The patterns of filters that come or go."""
        unsure = set(self._unsure).union(*(self.asked.covering.below(text) for text in self._unsure))
        return frozenset(self._patterns[text] for text in unsure)

    def wishes_of(self, step: int) -> dict[tuple[str, str], bool]:
        """The filters and hosts of which publishers are to hear by a step, and whether that is wanted.

        What a later step has changed again, they hear by that one.
        """
        return {
            (text, host): host in self.asked.hosts[text]
            for text, host in self._steps.get(step, ())
            if (mark := self._unsure.get(text, {}).get(host)) is not None and mark.step == step
        }

    def waits_of(self, step: int) -> set[int]:
        """The other steps by which publishers hear of what a step has asked for."""
        marks = (self._unsure.get(text, {}).get(host) for text, host in self._steps.get(step, ()))
        return {mark.step for mark in marks if mark is not None} - {step}

    @property
    def steps(self) -> list[int]:
        """Those that are not resolved, in their order."""
        return sorted(self._steps)

    def filter_of(self, text: str) -> Filter:
        return self.asked.covering.filters[text]

    def ways_of(self, step: int) -> int:
        """The ports that events for the filters may leave by which a step has changed."""
        return _union(
            self._labelling.behind[host] & _union(self._reached[text].values())
            for text, host in self._steps.get(step, ())
            if text in self._reached
        )

    def _parts(self, text: str) -> Parts:
        """At which ports a filter, or one that covers it, has to be known, and at which moments."""
        reached = _union(self._reached[text].values())
        behind = self._labelling.behind
        found = {
            moment: _union(behind[host] for host in hosts) & reached
            for moment, hosts in self._moments(text).items()
        }
        return {moment: ports for moment, ports in found.items() if ports}

    def _moments(self, text: str) -> dict[Moment | None, list[str]]:
        """The hosts that want a filter, by the moments at which publishers know of it.

        A host that has one that covers it at the same moment, or surely, is not among them.
        """
        marks, above = self._unsure.get(text, {}), self.asked.covering.above(text)
        found: dict[Moment | None, list[str]] = {}
        if not marks and not self.asked.hosts[text]:
            return found
        covered = set[str]().union(*map(self._sure_hosts, above))
        unsure = [self._unsure[each] for each in above if each in self._unsure]
        for host in self.asked.hosts[text].keys() | marks.keys():
            moment = marks[host].moment if host in marks else None
            if host not in covered and not any(
                host in marked and marked[host].moment == moment for marked in unsure
            ):
                found.setdefault(moment, []).append(host)
        return found

    def _sure_hosts(self, text: str) -> Collection[str]:
        hosts = self.asked.hosts[text].keys()
        return hosts - self._unsure[text].keys() if text in self._unsure else hosts

    def _forget(self, text: str) -> None:
        self.asked.forget(text)
        pattern = self._patterns.pop(text)
        self._alike[pattern].discard(text)
        if not self._alike[pattern]:
            del self._alike[pattern]
        del self._reached[text]


def _sure_with(parts: Parts, moment: Moment | None) -> int:
    """The ports at which a filter is known whenever one of that moment is."""
    sure = parts.get(None, 0)
    return sure if moment is None else sure | parts.get(moment, 0)


def _union(some: Iterable[int]) -> int:
    found = 0
    for each in some:
        found |= each
    return found
