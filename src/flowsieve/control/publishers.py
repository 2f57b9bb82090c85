"""Publishers that match events themselves: what each was told of others' filters, and how long it may go on with it.

Where packets name their receivers, a publisher's host (its matcher) holds the filters that overlap what it has
advertised, as a version of the state here, under a lease. It asks for what is new, and by that says what it holds.
A subscription is served once every publisher concerned holds it, or is past the lease that it was given before: so no
event is sent without regard to what was acknowledged. The labels of one that is past it are dropped at its port from
then on, should it send some nevertheless, and not before: what was sent under a lease is owed to those who had asked.

The rule behind it: with the last page of a version a host gets a lease, and pages are made of all that there is at that
moment. So whoever has a lease that was given after a change holds that change, and only leases from before count.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from flowsieve.control.core import Core
from flowsieve.errors import Busy, Denied
from flowsieve.flow.publisher_filters import FilterChange
from flowsieve.protocol.filter_page import FilterPacking, FilterPage, HeldVersion, Row

log = logging.getLogger(__name__)

MARGIN_SECONDS = 0.1  # beyond a lease, for clocks that do not go alike
DRIFT = 0.01  # how much one goes faster than another
ROWS = 2000  # filters on a page
QUICK_SECONDS = 0.005  # in which all filters may be told to one host, as often as it asks
REST = 20  # times as long as it takes beyond that, before it is told again
REPLACED = "another matcher of this host has taken the place of this one"
NEWS = 100_000  # changes that are kept for a host; one that is further behind is told all of it
SESSIONS = 256  # of a host that others have taken the place of, and that are not to come back
PAGE_CHARACTERS = 200_000  # of filters and their receivers on a page
NUMBER_CHARACTERS = 6  # of a receiver's number, and what is around it


class Gates(Protocol):
    """What lets a host's labels in at its port."""

    def ready(self, host: str) -> bool:
        """Whether all labels are let in that the host is about to send, by what it would be told now."""
        ...

    def shut(self, host: str) -> bool:
        """Whether they can be, and are from now on, to be dropped."""
        ...

    def open(self, host: str) -> None:
        """Have them let in again."""
        ...

    async def followed(self, host: str) -> None:
        """Wait until the host's switch does what was asked last."""
        ...


@dataclass(slots=True, eq=False)
class _Publisher:
    """One host: what it `held` when it asked last, what is new since, and until when it may publish with it.

    `others` is until when another matcher of the same host may, which is gone or has to be.
    """

    promised: float
    session: str = ""
    replaced: deque[str] = field(default_factory=lambda: deque(maxlen=SESSIONS))
    others: float = 0.0
    held: int | None = None  # None: nothing of this epoch
    since: int = 0  # the version of which it was told all; what it held before does not count
    newest: int = 0  # the version that was the last to bring something new for it
    news: list[tuple[int, FilterChange]] = field(default_factory=list)
    pages: tuple[int, list[Row]] | None = None  # all of a version, while it is being told
    rest: float = 0.0  # until when it is not told all again, which takes its time
    silenced: bool = False
    stirred: asyncio.Event = field(default_factory=asyncio.Event)  # there is something to be told
    waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    def begin(self) -> None:
        """It holds nothing that we know of."""
        self.held, self.pages, self.news = None, None, []

    def holds(self, version: int) -> None:
        """It has said that it holds a version."""
        self.held, self.pages = version, None
        self.news = [each for each in self.news if each[0] > version]
        for wanted, told in self.waiting:
            if wanted <= version and not told.done():
                told.set_result(None)


class Publishers:
    """`follow` what a step of the state asks for; `ask` is what hosts do; `holding` waits for some of them.

    `lease` is how long a publisher may go on with what it holds. One that has not been heard of since we began may have
    been given `before` seconds by a controller that is no more.
    """

    def __init__(self, core: Core, gates: Gates, lease: Callable[[], float], before: float = 0.0) -> None:
        self.epoch, self.version = os.urandom(8).hex(), 0
        self._core, self._gates, self._lease = core, gates, lease
        self.other_sets: str | None = None  # why hosts are not in the sets that somebody has chosen, if so
        self._known: dict[str, _Publisher] = {}
        self.paused = False  # whether nobody is told anything, since switches do not know all of it yet
        self._first = time.monotonic() + _within(before)

    @property
    def behind(self) -> dict[str, str]:
        """The publishers that do not hold all that they should, and why that is."""
        found = {}
        for host in self._core.state.filters.publishers:
            known = self._publisher(host)
            if known.silenced:
                found[host] = "its labels are dropped at its port until it holds the filters of others"
            elif known.held is None or known.news:
                found[host] = "it has not taken in the filters of others"
        return found

    def follow(self, told: Mapping[str, Sequence[FilterChange]]) -> None:
        """A step of the state has news for some publishers: a version, or several where that would be a long page."""
        first = self.version + 1
        for host, changes in told.items():
            known = self._publisher(host)
            for version, some in enumerate(_pages(changes), first):
                self.version = max(self.version, version)
                known.newest = version
                if known.held is not None or known.pages is not None:  # else it gets all of it anyway
                    known.news += [(version, change) for change in some]
            if len(known.news) > NEWS:
                known.begin()
            known.stirred.set()

    def begin_anew(self) -> None:
        """Another state decides from now on: all publishers are told all of it."""
        self.version += 1
        for known in self._known.values():
            known.newest = self.version
            known.begin()
            known.stirred.set()

    async def ask(self, host: str, session: str, held: HeldVersion | None, patience: float) -> FilterPage:
        """What a host is told that holds so much: at once if something is new, else when it is, or patience ends."""
        if self.paused:
            raise Busy("switches do not know all filters yet; ask again in a second")
        if not self._gates.ready(host):
            raise Busy(
                "the switch of this host has not heard yet whom the host may address; ask again in a second"
            )
        known = self._greeted(host, session, held)
        start = self._note(known, held)
        page = self._next(host, known, start)
        if page is None and known.silenced:
            await self._let_in_again(host, known, patience)
        elif page is None:
            known.stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await known.stirred.wait()
        if known.session != session:
            raise Denied(REPLACED)
        return page or self._next(host, known, 0) or self._step(known)

    async def holding(self, hosts: Iterable[str]) -> None:
        """Wait until none of these publishers can send an event without regard to all that there is now."""
        await asyncio.gather(*map(self._caught_up, hosts))

    # One publisher.

    def _publisher(self, host: str) -> _Publisher:
        if host not in self._known:
            self._known[host] = _Publisher(self._first)
        return self._known[host]

    def _greeted(self, host: str, session: str, held: HeldVersion | None) -> _Publisher:
        """A host whose matcher asks; another one than before takes its place.

        The first one that we hear of is the one that our predecessor knew, if it holds something.
        """
        known = self._publisher(host)
        if session in known.replaced:
            raise Denied(REPLACED)
        if session != known.session:
            if known.session or held is None:
                known.others = max(known.others, known.promised)
            if known.session:
                known.replaced.append(known.session)
            known.session = session
            known.begin()
        return known

    def _note(self, known: _Publisher, held: HeldVersion | None) -> int:
        """Take note of what a host says that it holds; the row to go on from, of those that it is being told."""
        told = known.pages
        if held is None or held.epoch != self.epoch or held.version < known.since:
            known.begin()
        elif not held.rows:
            if told is not None or known.held is not None:
                known.holds(min(held.version, self.version))
        elif told is not None and held.version == told[0] and held.rows <= len(told[1]):
            return held.rows  # until it has the last page, it publishes with what it held before
        else:
            known.begin()
        return 0

    def _next(self, host: str, known: _Publisher, start: int) -> FilterPage | None:
        """What there is to be told now."""
        if start:
            return self._page(known, start)
        if known.held is None:
            if (begin := _now()) < known.rest:
                raise Busy("all filters were told to this host a moment ago; ask again in a second")
            rows = self._rows(self._core.state.filters.held_by(host))
            known.rest = _now() + REST * max(0.0, _now() - begin - QUICK_SECONDS)
            known.pages, known.news, known.since = (self.version, rows), [], self.version
            return self._page(known, 0)
        return self._step(known) if known.news else None

    async def _caught_up(self, host: str) -> None:
        known = self._publisher(host)
        wanted, end, others = known.newest, known.promised, known.others
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if known.held is not None and known.held >= wanted:
            told.set_result(None)
        known.waiting.append((wanted, told))
        try:
            await _done_by(others)
            await _done_by(end, told)
            if known.others > others:  # another has taken its place meanwhile, and it may still be publishing
                await _done_by(end)
            if not told.done() and self._gates.shut(host) and not known.silenced:
                known.silenced = True
                log.warning(
                    "host %s has not taken in what others subscribe to, and its lease is over; should it send labels, "
                    "they are dropped at its port",
                    host,
                )
        finally:
            known.waiting = [each for each in known.waiting if each[1] is not told]

    async def _let_in_again(self, host: str, known: _Publisher, patience: float) -> None:
        """A host that was silenced holds all that there is: its labels may come in again."""
        self._gates.open(host)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._gates.followed(host)
            if known.held is not None and known.held >= known.newest:
                known.silenced = False
                log.info("host %s holds what others subscribe to, and its labels are let in again", host)

    # Pages.

    def _page(self, known: _Publisher, start: int) -> FilterPage:
        """A page of all that a publisher has to hold; behind the last, what is new since they were made."""
        assert known.pages is not None
        version, rows = known.pages
        if start == len(rows):
            return self._step(known, anew=not start)
        end, room = start, PAGE_CHARACTERS
        while end < len(rows) and end - start < ROWS and room > 0:
            text, numbers = rows[end]
            room -= len(text) + len(numbers) * NUMBER_CHARACTERS
            end += 1
        return FilterPage(
            self.epoch,
            version,
            not start,
            True,
            tuple(rows[start:end]),
            (),
            self._core.state.sets.number_bits,
            packing=self._packing,
        )

    def _step(self, known: _Publisher, *, anew: bool = False) -> FilterPage:
        """What is new, up to the version that ends a page; with the last a lease, unless its labels are dropped."""
        news = list(_first_page(known.news))
        all_of_it = len(news) == len(known.news)
        lease = self._lease() if all_of_it and not known.silenced else 0.0
        if lease:
            known.promised = max(known.promised, _now() + _within(lease))
        add, remove = (tuple(self._rows(side.items())) for side in _net(news))
        bits, version = self._core.state.sets.number_bits, self.version if all_of_it else news[-1][0]
        return FilterPage(self.epoch, version, anew, False, add, remove, bits, lease, self._packing)

    @property
    def _packing(self) -> FilterPacking | None:
        """How events are packed where labels are Bloom filters."""
        bloom = self._core.state.settings.bloom
        return (
            None
            if bloom is None
            else FilterPacking(bloom.labels.k, bloom.copies.filters, bloom.copies.number)
        )

    def _rows(self, filters: Iterable[tuple[object, Sequence[str]]]) -> list[Row]:
        number = self._core.state.sets.number
        return [(str(filter), tuple(map(number, hosts))) for filter, hosts in filters]


def _pages(changes: Sequence[FilterChange]) -> Iterator[Sequence[FilterChange]]:
    """Changes that come together, in parts none of which is more than a page; one at least."""
    start, room = 0, PAGE_CHARACTERS
    for at, change in enumerate(changes):
        room -= len(change.filter.text) + NUMBER_CHARACTERS
        if at > start and (room < 0 or at - start == ROWS):
            yield changes[start:at]
            start, room = at, PAGE_CHARACTERS - len(change.filter.text) - NUMBER_CHARACTERS
    yield changes[start:]


def _first_page(news: Sequence[tuple[int, FilterChange]]) -> Iterator[tuple[int, FilterChange]]:
    """The oldest of some news, in whole versions: as many as a page has room for, and one at least."""
    taken, room = 0, PAGE_CHARACTERS
    for _, some in groupby(news, key=lambda each: each[0]):
        part = list(some)
        room -= sum(len(change.filter.text) + NUMBER_CHARACTERS for _, change in part)
        if taken and (room < 0 or taken + len(part) > ROWS):
            return
        taken += len(part)
        yield from part


def _net(
    news: Iterable[tuple[int, FilterChange]],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What some changes come to, by filter: who wants it now and did not, who did and does not any more.

    A host comes to want something and ceases to by turns, so two changes of it are none.
    """
    net: dict[tuple[str, str], bool] = {}
    for _, (filter, host, wanted) in news:
        if net.pop((filter.text, host), None) is None:
            net[filter.text, host] = wanted
    add, remove = dict[str, list[str]](), dict[str, list[str]]()
    for (text, host), wanted in net.items():
        (add if wanted else remove).setdefault(text, []).append(host)
    return add, remove


def _now() -> float:
    return time.monotonic()


def _within(lease: float) -> float:
    """How long somebody else's clock may take for so many seconds."""
    return lease * (1 + DRIFT) + MARGIN_SECONDS if lease else 0.0


async def _done_by(end: float, *some: asyncio.Future[None]) -> None:
    """Wait until one of these is done, or it is that time."""
    left = end - _now()
    if left > 0 and some:
        await asyncio.wait(some, timeout=left, return_when=asyncio.FIRST_COMPLETED)
    elif left > 0:
        await asyncio.sleep(left)
