"""The controller as a daemon: over the switches of a site, with a memory, taking requests over HTTP and in band."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from flowsieve.control.discovery.discoverer import Discoverer
from flowsieve.control.discovery.explorer import Explorer
from flowsieve.control.dispatcher import Dispatcher, filter_lease_of
from flowsieve.control.memory.journal import Allowed, Found, Past
from flowsieve.control.memory.rebuild import remade
from flowsieve.control.memory.recovery import snapshot
from flowsieve.control.partitions.configurators import Configurators, SharingSettings
from flowsieve.control.partitions.ownership import Ownership
from flowsieve.control.repair.damping import DampingSettings
from flowsieve.control.state import ControlState
from flowsieve.control.switches.switch_log import SwitchLog
from flowsieve.control.transition.live_transition import PUBLISHER_SECONDS
from flowsieve.errors import BadInput, FlowsieveError, JournalError, Refused
from flowsieve.flow.capacity.weights import events_of
from flowsieve.flow.last_hop import deliveries_of
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.event_secret import EventSecret
from flowsieve.serving.calls.handler import CallHandler
from flowsieve.serving.calls.host_moves import HostMoves
from flowsieve.serving.calls.key_rotation import KeyRotation
from flowsieve.serving.calls.leases import Promises
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.serving.chores import Chore, at_work
from flowsieve.serving.chosen_sets import first_entries, other_sets
from flowsieve.serving.collector import pass_over_what_is_there
from flowsieve.serving.config import Config, read_config
from flowsieve.serving.configuring import orders_secret, own_configurators
from flowsieve.serving.descriptors import raise_limit
from flowsieve.serving.event_router import EventRouter, packets_to
from flowsieve.serving.http.app import taking_calls
from flowsieve.serving.http.server import reserve
from flowsieve.serving.inband.inband_server import InbandServer
from flowsieve.serving.late_publishers import LatePublishers
from flowsieve.serving.late_resender import LateResender
from flowsieve.serving.memory import Memory, OpenJournal, memory_of
from flowsieve.serving.metrics.gauges import Sources
from flowsieve.serving.metrics.metrics import Metrics
from flowsieve.serving.offers import Offers
from flowsieve.serving.offers_section import OFFERS
from flowsieve.serving.site.site import Site, described, event_groups, host_behind, with_switches
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.recorder import TelemetryRecorder
from flowsieve.serving.telemetry.settings import TELEMETRY
from flowsieve.southbound.fabric import Connected, Fabric
from flowsieve.southbound.numbered import NumberedSwitches
from flowsieve.southbound.socket_address import ReservedAddress

log = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
SNAPSHOT_ENTRIES = 5_000  # after so many, the journal is made short
BOUNDED_ENTRIES = 100  # the same where requests are replayed one by one: for a capacity, or Bloom filters
LOOK_SECONDS = 1.0
RENEWALS = 3  # in a lease: whoever is there hears of another index within that, at the latest
LONGEST_PARTITION = 12  # bits
LEASES_OF_THE_UNAWARE = (
    4  # before the tag of a former index is used again, though some subscriber says nothing
)
LEAVING_SECONDS = 2.0  # in good order, once another controller leads
# Objects, and rounds: requests leave few cycles, and a full collection is slow.
COLLECT_AFTER = (20_000, 20, 50)


@dataclass(eq=False)
class Daemon:
    """A controller at work; `serving` makes one."""

    config: Config
    site: Site
    dispatcher: Dispatcher
    calls: CallHandler
    promises: Promises
    metrics: Metrics
    discoverer: Discoverer
    fabric: Fabric
    memory: Memory
    keys: KeyRotation | None = None  # without it, events are not signed
    explorer: Explorer | None = None
    offers: Offers | None = None
    configurators: Configurators | None = None  # without them, it decides on all tables itself
    reports: ReportIntake | None = None

    async def control(self) -> Mapping[str, Any] | None:
        """Who shares the work of control; None if nobody does."""
        told = None if self.memory.told is None else dict(await self.memory.told())
        if self.configurators is not None:
            told = {**(told or {}), "sharing": self.configurators.told()}
        return told

    async def reload(self) -> int:
        """Take up what has changed in the configuration; returns how many flow operations follow.

        Contents, addresses and network stay: they are what the journal is about. What is wrong changes nothing.
        """
        config, state = read_config(self.config.path), self.dispatcher.state
        more = self.site.more(config)
        if config.base(state.topology) != self.config.base(state.topology):
            raise BadInput(
                f"{config.path} now has another schema, index or network; that takes a new start, with a new state"
            )
        for what in (
            "state",
            "http",
            "inband",
            "inband_rate",
            "event_mac",
            "guard",
            "guard_rate",
            "failover",
            "policy",
        ):
            if getattr(config.service, what) != getattr(self.config.service, what):
                raise BadInput(f"{config.path} now has another {what}; that takes a restart")
        if config.control != self.config.control:
            raise BadInput(f"{config.path} now has another [control]; that takes a restart")
        if config.telemetry.folder != self.config.telemetry.folder:
            raise BadInput(f"{config.path} now has another folder for telemetry; that takes a restart")
        async with self.promises.allowing(config.service.lease):
            make = partial(config.fresh, self.site.topology)
            new = await remade(lambda: self.dispatcher.state, self.dispatcher.ledger, make)
            state = self.dispatcher.state
            if (new.subscriptions.keys(), new.advertisements.keys()) != (
                state.subscriptions.keys(),
                state.advertisements.keys(),
            ):
                raise BadInput(
                    f"{config.path} now has a table_capacity with no room for all that was promised"
                )
            asked = self.dispatcher.replace(new)
            self.calls.leases.seconds, self.calls.most = config.service.lease, config.service.most_calls
        self.dispatcher.patience = config.service.deadline
        self.dispatcher.filter_lease = filter_lease_of(config.service.lease)
        if self.offers is not None:
            self.offers.auto = config.service.auto_offers
        if self.reports is not None:
            self.reports.settings = config.telemetry
        if self.keys is not None:
            self.keys.period = config.service.key_rotation
        if more and self.explorer is not None:  # before they are known by name, and may connect
            await self.explorer.become(partial(with_switches, switches=more))
        self.config = config
        self.tell_sets()
        self.site.take(config)
        self.discoverer.discovery.names = self.site.names
        if self.explorer is not None:
            await self.explorer.forget()
        return asked

    def tell_sets(self) -> None:
        """Say so where hosts are in other sets than the configuration names."""
        known, state = self.dispatcher.publishers, self.dispatcher.state
        if known is not None:
            known.other_sets = other_sets(
                self.config, state, self.site.folder, filter_lease_of(self.config.service.lease)
            )
            if known.other_sets is not None:
                log.warning("%s", known.other_sets)


@asynccontextmanager
async def serving(
    config: Config, site: Site, *, memory: Memory | None = None, take_over: bool = False
) -> AsyncIterator[Daemon]:
    """A controller that takes requests, for the time of an `async with` block; switches go on without it.

    Its state and its addresses are its own before it says a word to a switch. With `take_over`, switches are taken
    that another controller holds.
    """
    service, metrics, router = config.service, Metrics(), EventRouter()
    if memory is None:
        memory = memory_of(config, site)
        await memory.win()
    remembered = await memory.open(config.base(site.topology), metrics.appended, take_over)
    journal, secret = remembered.journal, remembered.secret
    reserved: list[ReservedAddress] = []
    try:
        reserved = await reserve(site.calls)
        if not journal.number:
            await journal.append(first_entries(config, Past(), site.topology))
        state, ledger = await memory.recovered(journal)
        if state.found and (now := described(state.topology, site.topology)) != state.topology:
            await journal.append([Found(now)])
            state.grow(now)
        if not config.finds_hosts:
            service.policy.check(state.topology.hosts)
        if ledger.policy != service.policy:  # before anybody is told by the one of now
            either = ledger.policy | service.policy if state.advertisements else service.policy
            await journal.append([Allowed(either)])
            ledger.allow(either)
        tokens = Tokens(secret, state.topology, ledger.homes)
        site.tell_tokens(tokens)
        site.announce()
        configurators = _configurators(config, state, memory.ownership, secret)
        fabric = site.fabric(router, remembered.claim)
        switches = NumberedSwitches(fabric, lambda: dispatcher.state.topology)
        dispatcher = Dispatcher(
            state,
            switches,
            config.index.encoding,
            deliveries_of(state.topology, config.index.encoding.family),
            patience=service.deadline,
            journal=journal,
            ledger=ledger,
            punts=service.punts,
            damping=DampingSettings(),
            watcher=metrics,
            guarding=config.guarding(partial(site.sources, family=config.index.encoding.family)),
            detour_room=config.detour_room,
            filter_lease=filter_lease_of(service.lease),
            deciding=configurators,
        )
        dispatcher.transition.publisher_patience = min(PUBLISHER_SECONDS, service.lease / RENEWALS)
        dispatcher.transition.retirement.subscriber_patience = LEASES_OF_THE_UNAWARE * service.lease
        switch_log = SwitchLog()
        router.add(switch_log.heard)
        router.add(switches.translated(dispatcher.heard))
        async with (
            dispatcher,
            configurators or nullcontext(),
            fabric,
            at_work(partial(_tell_standing_by, fabric, site)),
        ):
            await _connected(dispatcher, fabric)
            keys = _keys(config, secret, dispatcher)
            reports = ReportIntake(config.telemetry)
            calls = _handler(config, site, dispatcher, tokens, keys, metrics, fabric, memory, reports)
            promises = Promises(calls.leases, ledger, dispatcher.scribe)
            await _promise(promises, service.lease)
            discoverer = Discoverer(
                fabric,
                site.names,
                lambda: dispatcher.state.topology,
                closed=lambda: dispatcher.fences.closed | dispatcher.state.down,
            )
            explorer = _explorer(config, dispatcher, discoverer, tokens, calls)
            inband = InbandServer(
                calls.call,
                fabric.send_packet,
                lambda *place: host_behind(dispatcher.state.topology, *place),
                _moves(dispatcher, discoverer, tokens, explorer),
            )
            behind = LatePublishers.of(
                dispatcher,
                lambda: calls.groups,
                partial(site.sources, family=config.index.encoding.family),
                switches.send_packet,
                fabric.inject_packet,
            )
            async with discoverer:
                with router.heard_by(discoverer.heard):
                    for switch in dispatcher.reachable:
                        discoverer.heard(Connected(switch))
                    daemon = Daemon(
                        config, site, dispatcher, calls, promises, metrics, discoverer, fabric, memory, keys
                    )
                    daemon.configurators, daemon.reports = configurators, reports
                    daemon.tell_sets()
                    offers = daemon.offers = Offers(
                        memory.values(OFFERS), dispatcher, tokens.operator, service.auto_offers
                    )
                    await offers.load()
                    metrics.watch(_sources(daemon, journal, inband, behind.late))
                    chores: list[Chore] = [
                        partial(_keep_short, dispatcher),
                        promises.run,
                        behind.notices.run,
                        offers.run,
                        _recorder(config, site, dispatcher, reports).run,
                    ]
                    if configurators is not None and config.control.balance:
                        chores.append(
                            partial(_divide, dispatcher, configurators, config.control.divide_every)
                        )
                    if config.finds:
                        daemon.explorer = explorer
                        await _exploring(daemon, explorer)
                        chores.append(explorer.run)
                    # Not before: hosts whose links are not found yet would be told that they are cut off.
                    with router.heard_by(packets_to(behind.before(inband.heard))):
                        async with (
                            taking_calls(calls, dispatcher, reserved, metrics, daemon.control, offers),
                            at_work(*chores),
                        ):
                            pass_over_what_is_there()
                            yield daemon
                await inband.close()
                await behind.late.close()
            if not memory.lost.is_set():
                await _compact(dispatcher)
            switch_log.end()
    finally:
        for each in reserved:
            each.close()
        await journal.close()


def _configurators(
    config: Config, state: ControlState, ownership: Ownership, secret: bytes
) -> Configurators | None:
    """Those who decide on tables, where this controller does not."""
    control, sample = config.control, state.settings.sample
    if not control.shared_out:
        return None
    settings = SharingSettings(
        control.configurators,
        control.slice_size,
        control.balance,
        control.listen,
        min(LONGEST_PARTITION, config.index.plan.bits),
    )
    events = None if sample is None else events_of(sample)
    return Configurators(ownership, orders_secret(secret), settings, events)


def _explorer(
    config: Config, dispatcher: Dispatcher, discoverer: Discoverer, tokens: Tokens, calls: CallHandler
) -> Explorer:
    """What makes the network follow what is found, as far as anything is to be found, and hosts that move."""

    def told(topology: Topology) -> None:
        tokens.topology = topology
        calls.groups = event_groups(topology, dispatcher.encoding.family)

    return Explorer(dispatcher, discoverer, told, links=config.finds_links, hosts=config.finds_hosts)


def _moves(dispatcher: Dispatcher, discoverer: Discoverer, tokens: Tokens, explorer: Explorer) -> HostMoves:
    return HostMoves(dispatcher, tokens, explorer.become, discoverer.discovery.is_down, discoverer.is_linked)


async def _exploring(daemon: Daemon, explorer: Explorer) -> None:
    """Have the network found, if it was not yet."""
    dispatcher = daemon.dispatcher
    if not dispatcher.state.found and daemon.fabric.standing_by is None:
        await explorer.first(CONNECT_SECONDS)
        await _connected(dispatcher, daemon.fabric)


def _keys(config: Config, secret: bytes, dispatcher: Dispatcher) -> KeyRotation | None:
    if not config.service.event_mac:
        return None
    rotation = config.service.key_rotation
    return KeyRotation(EventSecret(secret), dispatcher.ledger, dispatcher.scribe, rotation)


def _handler(
    config: Config,
    site: Site,
    dispatcher: Dispatcher,
    tokens: Tokens,
    keys: KeyRotation | None,
    metrics: Metrics,
    fabric: Fabric,
    memory: Memory,
    reports: ReportIntake,
) -> CallHandler:
    return CallHandler(
        dispatcher,
        event_groups(dispatcher.state.topology, config.index.encoding.family),
        site.interface,
        tokens=tokens,
        keys=keys,
        lease=config.service.lease,
        observer=metrics,
        most=config.service.most_calls,
        standing_by=lambda: memory.doubt or fabric.standing_by,
        reports=reports,
    )


def _recorder(config: Config, site: Site, dispatcher: Dispatcher, reports: ReportIntake) -> TelemetryRecorder:
    """What has telemetry landed, in its folder or with the state."""
    return TelemetryRecorder(
        reports,
        config.telemetry.folder or site.folder / TELEMETRY,
        lambda: dispatcher.state.subscriptions.values(),
        lambda: dispatcher.index,
    )


def _sources(daemon: Daemon, journal: OpenJournal, inband: InbandServer, late: LateResender) -> Sources:
    dispatcher, calls = daemon.dispatcher, daemon.calls
    return Sources(
        dispatcher,
        connected=lambda: dispatcher.reachable,
        suppressed=lambda: dispatcher.suppressed,
        queues={"calls": lambda: calls.under_way, "journal": lambda: dispatcher.scribe.waiting},
        clients=lambda: len(calls.leases),
        journal_bytes=lambda: journal.size,
        inband=lambda: asdict(inband.counters),
        late_events=lambda: asdict(late.counters),
        differences=lambda: (*daemon.discoverer.differences, *daemon.site.differences),
        floods=lambda: daemon.discoverer.floods,
        sharing=None if daemon.configurators is None else daemon.configurators.told,
        telemetry=daemon.reports,
    )


async def serve(
    config: Config, site: Site, ready: Callable[[Daemon, float], None], *, take_over: bool = False
) -> None:
    """Run until a signal asks to end; SIGHUP asks to read the configuration again, SIGUSR1 for new keys for events."""
    raise_limit()
    stopped, reread = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, reread.set)
    loop.add_signal_handler(
        signal.SIGUSR1, log.warning, "no new keys for events: the controller is not ready"
    )
    memory, told = memory_of(config, site), False

    async def lead() -> None:
        nonlocal config, told
        start = time.perf_counter()
        gc.disable()  # what is loaded now is large and stays: collecting it would be wasted time
        gc.set_threshold(*COLLECT_AFTER)
        async with serving(config, site, memory=memory, take_over=take_over) as daemon:
            gc.freeze()
            gc.enable()
            _tell_start(daemon)
            if not told:
                ready(daemon, time.perf_counter() - start)
                told = True
            loop.add_signal_handler(signal.SIGUSR1, _rotate, daemon)
            await _until(stopped, reread, daemon)
            config = daemon.config

    try:
        async with own_configurators(config.path, config.control):
            while await _before(stopped, memory.win()):
                await _while_leading(lead(), memory.lost)
    finally:
        await memory.leave()


async def _while_leading(work: Coroutine[Any, Any, None], lost: asyncio.Event) -> None:
    """Do some work until it ends; once another controller leads it has to, be it in the middle of its start."""
    doing, losing = asyncio.create_task(work), asyncio.create_task(lost.wait())
    try:
        await asyncio.wait({doing, losing}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            await asyncio.wait({doing}, timeout=LEAVING_SECONDS)
        if doing.done():
            doing.result()
    except JournalError as error:
        if not lost.is_set():
            raise
        log.warning("%s", error)
    finally:
        for each in (doing, losing):
            each.cancel()
        await asyncio.gather(doing, losing, return_exceptions=True)


async def _before(stopped: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether some work was done before a signal asked to end."""
    doing, ending = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
        return doing.done() and not stopped.is_set()
    finally:
        for each in (doing, ending):
            each.cancel()
        await asyncio.gather(doing, ending, return_exceptions=True)


async def _until(stopped: asyncio.Event, reread: asyncio.Event, daemon: Daemon) -> None:
    """Have a daemon at work until a signal asks to end, or another controller leads."""
    ends = [asyncio.create_task(each.wait()) for each in (stopped, daemon.memory.lost)]
    while not any(each.done() for each in ends):
        asked = asyncio.create_task(reread.wait())
        await asyncio.wait({*ends, asked}, return_when=asyncio.FIRST_COMPLETED)
        if reread.is_set():
            reread.clear()
            await _reload(daemon)
        asked.cancel()
    for each in ends:
        each.cancel()
    if stopped.is_set():
        log.info("the controller of %s ends; switches go on with what they hold", daemon.site.name)
    else:
        log.warning("another controller leads %s; this one stands by", daemon.site.name)


def _tell_start(daemon: Daemon) -> None:
    state = daemon.dispatcher.state
    log.info(
        "the controller of %s is at work: %d of %d switches are connected; %d subscriptions and %d advertisements "
        "are known; it takes calls at %s%s",
        daemon.site.name,
        len(daemon.dispatcher.reachable),
        len(state.topology.switches),
        len(state.subscriptions),
        len(state.advertisements),
        ", ".join(daemon.site.calls),
        " and in band" if daemon.config.service.inband else "",
    )


async def _reload(daemon: Daemon) -> None:
    try:
        asked = await daemon.reload()
        log.info("the configuration was read again: %d flow operations follow", asked)
        await _compact(daemon.dispatcher)  # what follows from it is not in the journal's entries
    except FlowsieveError as error:
        log.error("the configuration stays as it was: %s", error)


def _rotate(daemon: Daemon) -> None:
    if daemon.keys is None:
        log.warning("no new keys for events: they are not signed, since event_mac is false")
    else:
        log.info("new keys for events were asked for; they are used when all clients have them")
        daemon.keys.rotate()


async def _tell_standing_by(fabric: Fabric, site: Site) -> None:
    log.error(
        "%s; this controller stands by and changes nothing. If the other one is to go, stop it and start this one "
        "with --take-over: it sets the switches to what %s remembers, and what was asked of the other one is gone",
        await fabric.stood_by(),
        site.folder,
    )


async def _connected(dispatcher: Dispatcher, fabric: Fabric) -> None:
    """Wait until all switches are where they should be, for a while, or turn out to be another controller's."""
    waits = [asyncio.create_task(each) for each in (dispatcher.settled(), fabric.stood_by())]
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    except TimeoutError:
        few = "; ".join(f"{switch}: {why}" for switch, why in list(dispatcher.troubles.items())[:3])
        log.warning("not all switches are there after %.0f s: %s", CONNECT_SECONDS, few)
    except Refused as reason:
        log.error("not all that was promised can be served: %s", reason)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _promise(promises: Promises, lease: float) -> None:
    """Allow leases of that length; where the journal cannot be written, no new interest is promised one."""
    try:
        await promises.allow(lease)
    except JournalError as error:
        log.error("%s", error)


async def _keep_short(dispatcher: Dispatcher) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        state = dispatcher.state
        most = BOUNDED_ENTRIES if state.bounded or state.bloom is not None else SNAPSHOT_ENTRIES
        if dispatcher.scribe.since_snapshot >= most:
            await _compact(dispatcher)


async def _divide(dispatcher: Dispatcher, configurators: Configurators, every: float) -> None:
    """Now and then, have the space divided by where requests are."""
    while True:
        await asyncio.sleep(every)
        partitions = configurators.division()
        if partitions is not None:
            log.info("the space is divided into %d partitions, by where requests are", len(partitions))
            try:
                await dispatcher.divide(partitions)
            except JournalError as error:
                log.error("%s", error)


async def _compact(dispatcher: Dispatcher) -> None:
    try:
        await dispatcher.scribe.compact(lambda: snapshot(dispatcher.state, dispatcher.ledger))
    except JournalError as error:
        log.error("%s", error)
