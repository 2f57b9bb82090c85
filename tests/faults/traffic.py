"""Applications that publish and subscribe on the hosts of a lab, and the judgement over what they logged.

The publishers' own logs tell what was sent and when, the subscribers' logs what arrived.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flowsieve.client.session import Client, connect
from flowsieve.client.stats import Stats
from flowsieve.content.filter import Filter
from flowsieve.lab.lab import Lab
from flowsieve.testing.dropped import Dropped, dropped, queue_drops

PATIENCE = 30.0  # seconds for anything to come about
QUIET = 1.0  # seconds without an arrival, after which none is expected any more
COMPLETE = 0.3  # and after which none is that nobody waits for, such as a second copy
RATE = 150.0  # events per second and publisher


@dataclass(frozen=True, slots=True)
class Sent:
    """An event as its publisher logged it."""

    at: float
    values: Mapping[str, int]


@dataclass(slots=True)
class Wanted:
    """A subscription, from its acknowledgement on, and what arrived for it: (publisher, number) of each event."""

    host: str
    filter: Filter
    since: float
    got: list[tuple[bytes, int]] = field(default_factory=list)


class App(threading.Thread):
    """An application on a host, on a thread and a loop of its own: that is how it gets into the host's namespace."""

    def __init__(
        self,
        lab: Lab,
        host: str,
        work: Callable[[Client], Awaitable[None]],
        publishes: bool,
        control: str,
        token: str = "",
    ) -> None:
        super().__init__(name=f"app on {host}", daemon=True)
        self.host = host
        self.publishes = publishes
        self.stats = Stats()
        self.failure: BaseException | None = None
        self._lab, self._work, self._control, self._token = lab, work, control, token
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with self._lab.inside(self.host):
                asyncio.run(self._talk())
        except BaseException as error:  # told when the application is ended
            self.failure = error

    async def _talk(self) -> None:
        async with connect(self._control, self.host, self._token) as client:
            work = asyncio.ensure_future(self._work(client))
            while not self._ended.is_set() and not work.done():
                await asyncio.sleep(0.02)
            self.stats = replace(client.stats)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            if not self._ended.is_set():
                work.result()

    def leave(self) -> None:
        """Have it end, at its own pace."""
        self._ended.set()

    def end(self) -> Stats:
        """Have it leave; what it counted. Raises what went wrong in it."""
        self.leave()
        self.join(PATIENCE)
        assert not self.is_alive(), f"{self.name} does not end"
        if self.failure is not None:
            raise self.failure
        return self.stats


class Traffic:
    """Who publishes and subscribes in a lab, and what came of it; `outages` excuse what was lost in them."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.control = f"unix:{lab.requests}"  # where applications find the controller
        self.sent: dict[bytes, dict[int, Sent]] = {}
        self.wanted: list[Wanted] = []
        self.outages: list[tuple[float, float]] = []
        self.dropped = 0  # packets that came to a switch's port outside outages, and found its queue full
        self.missed: set[tuple[bytes, int]] = (
            set()
        )  # events that some subscription did not get, outside outages
        self.cut_off: set[str] = set()  # hosts that are gone for good
        self.apps: list[App] = []
        self.controls: dict[str, str] = {}  # the same of those hosts that have another way
        self._before, self._queues = dropped(lab), queue_drops(lab)
        self._random = random.Random(1)

    # Applications.

    async def publish(self, host: str, rate: float = RATE) -> None:
        """Have an application on a host publish random events from now on."""
        began = threading.Event()
        seed = self._random.random()

        async def work(client: Client) -> None:
            await client.advertise("True")
            log = self.sent[client.publisher] = {}
            dice, start, number = random.Random(seed), time.monotonic(), 0
            began.set()
            while True:
                while number < (time.monotonic() - start) * rate:
                    values = {"a": dice.randrange(256), "b": dice.randrange(256)}
                    at = time.monotonic()
                    log[client.publish_nowait(values)] = Sent(at, values)
                    number += 1
                await asyncio.sleep(0.002)

        await self._begin(host, work, began, publishes=True)

    async def subscribe(self, host: str, *filters: str) -> None:
        """Have an application on a host subscribe; returns when all of it is acknowledged."""
        began = threading.Event()

        async def work(client: Client) -> None:
            async with asyncio.TaskGroup() as tasks:
                for text in filters:
                    subscription = await client.subscribe(text)
                    wanted = Wanted(host, subscription.filter, time.monotonic())
                    self.wanted.append(wanted)

                    async def listen(subscription=subscription, wanted=wanted) -> None:  # type: ignore[no-untyped-def]
                        async for event in subscription:
                            wanted.got.append((event.publisher, event.seq))

                    tasks.create_task(listen())
                began.set()

        await self._begin(host, work, began, publishes=False)

    async def come_and_go(self, host: str, *filters: str) -> None:
        """Have an application subscribe to one filter after the other, and end each before the next but one comes."""
        began = threading.Event()

        async def work(client: Client) -> None:
            before = None
            for text in filters:
                subscription = await client.subscribe(text)
                if before is not None:
                    await before.cancel()
                before = subscription
            if before is not None:
                await before.cancel()
            began.set()

        await self._begin(host, work, began, publishes=False)

    async def populate(self) -> None:
        """Two publishers, and subscribers on some hosts."""
        hosts = list(self.lab.topology.hosts)
        await self.publish(hosts[0])
        await self.publish(hosts[len(hosts) // 2])
        for number, host in enumerate(hosts[1:8]):
            await self.subscribe(host, f"{20 * number} <= a < {20 * number + 90}", f"b < {30 + 10 * number}")

    async def _begin(
        self, host: str, work: Callable[[Client], Awaitable[None]], began: threading.Event, publishes: bool
    ) -> None:
        app = App(self.lab, host, work, publishes, self.control_of(host), self.token(host))
        self.apps.append(app)
        async with asyncio.timeout(PATIENCE):
            while not began.is_set():
                if app.failure is not None:
                    raise app.failure
                await asyncio.sleep(0.01)

    def token(self, host: str) -> str:
        """What a host shows to its controller; nothing, where that believes everybody."""
        return ""

    def control_of(self, host: str) -> str:
        """How the applications of a host reach their controller."""
        return self.controls.get(host, self.control)

    def stop(self) -> None:
        """Have all applications end, whatever they are at."""
        for app in self.apps:
            app.leave()
        for app in self.apps:
            app.join(PATIENCE)

    # Judgement.

    async def compare(self) -> int:
        """Let all that is under way arrive, then compare the logs; how many events were lost, all excused."""
        there = [app for app in self.apps if app.host not in self.cut_off]
        stats = await all_ended([app for app in there if app.publishes])
        await self._quiet()
        stats += await all_ended([app for app in there if not app.publishes])
        await self._count_dropped()
        lost = sum(self._missing(wanted) for wanted in self.wanted if wanted.host not in self.cut_off)
        assert len(self.missed) <= self.dropped, (  # one dropped packet is one event's, for however many
            f"{len(self.missed)} events were missed, and the queues of ports dropped {self.dropped} packets; "
            f"in all: {self.machine_dropped.to_json()}"
        )
        assert sum(each.duplicates for each in stats) == 0
        assert sum(each.malformed for each in stats) == sum(each.forged for each in stats) == 0
        assert sum(each.overflow for each in stats) == 0
        return lost

    async def _count_dropped(self) -> None:
        """What was dropped on a machine too busy to forward: the law lets it, and it is counted."""
        before = Dropped(self._queues)
        await self._count_anew()
        self.dropped += Dropped(self._queues).since(before).by_machine

    async def _count_anew(self) -> None:
        """What was dropped so far does not count."""
        self._queues = await asyncio.to_thread(queue_drops, self.lab)

    @property
    def machine_dropped(self) -> Dropped:
        """What was dropped where since all began, outages included."""
        return dropped(self.lab).since(self._before)

    async def _quiet(self) -> None:
        """Wait until nothing has arrived for a while: a short one, where nothing is missing."""
        count, since, end = -1, time.monotonic(), time.monotonic() + PATIENCE
        looked = -1  # how much had arrived when it was last looked whether that is all
        while time.monotonic() < min(since + QUIET, end):
            if count != (count := sum(len(wanted.got) for wanted in self.wanted)):
                since = time.monotonic()
            elif looked != count and time.monotonic() > since + COMPLETE:
                looked = count
                if self._complete():
                    return
            await asyncio.sleep(0.02)

    def _complete(self) -> bool:
        """Whether all that is wanted has arrived."""
        there = [wanted for wanted in self.wanted if wanted.host not in self.cut_off]
        return all({event for event, _ in self._expected(wanted)} <= set(wanted.got) for wanted in there)

    def _expected(self, wanted: Wanted) -> Iterator[tuple[tuple[bytes, int], Sent]]:
        """The events that a subscription is to get, and how they were sent."""
        for publisher, log in self.sent.items():
            for number, event in log.items():
                if event.at >= wanted.since and wanted.filter.matches(event.values):
                    yield (publisher, number), event

    def _missing(self, wanted: Wanted) -> int:
        """How many events a subscription missed while something was broken; else queues dropped what it missed."""
        got = Counter(wanted.got)
        doubled = [event for event, times in got.items() if times > 1]
        assert not doubled, f"{wanted.host} got {len(doubled)} events twice, {doubled[:3]} among them"
        lost = 0
        for name, event in self._expected(wanted):
            if name not in got:
                excused = any(begin < event.at < until for begin, until in self.outages)
                assert excused or self.dropped, (
                    f"{wanted.host} missed event {name[1]}, sent {event.at - wanted.since:.3f} s after "
                    f"{wanted.filter.text!r} was acknowledged, and no queue of a port dropped a packet"
                )
                if excused:
                    lost += 1
                else:
                    self.missed.add(name)
        strange = [each for each in got if each[1] not in self.sent.get(each[0], {})]
        assert not strange, f"{wanted.host} got {len(strange)} events that nobody logged"
        return lost


async def all_ended(apps: Sequence[App]) -> list[Stats]:
    """Have applications leave, all at the same time; what they counted."""
    for app in apps:
        app.leave()
    return [await asyncio.to_thread(app.end) for app in apps]
