"""The controller as a daemon: over a lab's switches, with a memory, taking requests over HTTP and in band."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from flowsieve.control.damping import DampingSettings
from flowsieve.control.discoverer import Discoverer
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.journal import Past
from flowsieve.control.picture import Picture
from flowsieve.control.recovery import recover, snapshot
from flowsieve.control.sqlite_journal import SqliteJournal, look
from flowsieve.control.switches import Connected, Packet, SwitchEvent
from flowsieve.errors import BadInput, FlowsieveError, JournalError
from flowsieve.flow.diff import changes_between
from flowsieve.lab.blueprint import HOST_INTERFACE
from flowsieve.lab.control import controlled, switch_addresses
from flowsieve.lab.deliveries import deliveries
from flowsieve.lab.lab import Lab
from flowsieve.network.names import Names
from flowsieve.serving.config import Config, read_config
from flowsieve.serving.desk import Desk
from flowsieve.serving.gauges import Sources
from flowsieve.serving.http import taking_calls
from flowsieve.serving.inband import InbandServer
from flowsieve.serving.metrics import Metrics
from flowsieve.serving.tokens import Tokens, kept_secret
from flowsieve.southbound.openflow.fabric import OpenFlowFabric

log = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
SNAPSHOT_ENTRIES = 5_000  # after so many, the journal is made short
LOOK_SECONDS = 1.0


class Daemon:
    """A controller at work; `serving` makes one."""

    def __init__(
        self,
        config: Config,
        lab: Lab,
        dispatcher: Dispatcher,
        desk: Desk,
        metrics: Metrics,
        discoverer: Discoverer,
    ) -> None:
        self.config = config
        self.discoverer = discoverer
        self.lab = lab
        self.dispatcher = dispatcher
        self.desk = desk
        self.metrics = metrics

    def reload(self) -> int:
        """Take up what has changed in the configuration; how many flow operations that asks for.

        Contents, addresses and network stay: they are what the journal is about. What is wrong changes nothing.
        """
        config, state = read_config(self.config.path), self.dispatcher.state
        config.check_network(state.topology)
        if config.base(state.topology) != self.config.base(state.topology):
            raise BadInput(
                f"{config.path} now has another schema, index or network; that takes a new start, with a new state"
            )
        for what in ("state", "http", "inband", "inband_rate"):
            if getattr(config.service, what) != getattr(self.config.service, what):
                raise BadInput(f"{config.path} now has another {what}; that takes a restart")
        past = Past(snapshot(state, self.dispatcher.ledger))
        new, _ = recover(past, partial(config.fresh, state.topology))
        if (new.subscriptions.keys(), new.advertisements.keys()) != (
            state.subscriptions.keys(),
            state.advertisements.keys(),
        ):
            raise BadInput(f"{config.path} now has a table_capacity with no room for all that was promised")
        asked = self.dispatcher.replace(new)
        self.desk.leases.seconds, self.desk.most = config.service.lease, config.service.most_calls
        self.dispatcher.patience = config.service.deadline
        self.config = config
        return asked


@asynccontextmanager
async def serving(config: Config, lab: Lab) -> AsyncIterator[Daemon]:
    """A controller that takes requests, for the time of an `async with` block; switches go on without it."""
    topology, service = lab.topology, config.service
    config.check_network(topology)
    folder, metrics, ears = folder_of(config, lab), Metrics(), Ears()
    journal = SqliteJournal(folder / "journal.db", config.base(topology), metrics.appended)
    try:
        state, ledger = recover(journal.load(config.encoding.plan.schema), partial(config.fresh, topology))
        tokens = Tokens(kept_secret(folder / "secret"), topology)
        _tell_tokens(lab, tokens)
        async with controlled(
            lab,
            state,
            config.encoding.tag,
            patience=service.deadline,
            journal=journal,
            ledger=ledger,
            punts=service.punts,
            damping=DampingSettings(),
            watcher=metrics,
            heard=ears,
        ) as dispatcher:
            await _connected(dispatcher)
            desk = _desk(config, lab, dispatcher, tokens, metrics)
            inband = InbandServer(desk, dispatcher.switches.send_packet, partial(host_at, lab))
            discoverer = Discoverer(
                dispatcher.switches,
                _names(lab),
                topology,
                closed=lambda: dispatcher.fences.closed | dispatcher.state.down,
            )
            async with discoverer:
                ears.inband, ears.discoverer = inband, discoverer
                for switch in dispatcher.reachable:
                    discoverer.heard(Connected(switch))
                metrics.watch(_sources(dispatcher, desk, journal, inband, discoverer))
                where = [f"unix:{lab.requests}", *service.http]
                async with taking_calls(desk, dispatcher, where, metrics):
                    chore = asyncio.create_task(_keep_short(dispatcher))
                    try:
                        yield Daemon(config, lab, dispatcher, desk, metrics, discoverer)
                    finally:
                        chore.cancel()
                        await asyncio.gather(chore, return_exceptions=True)
                ears.inband = ears.discoverer = None
                await inband.close()
            await _compact(dispatcher)
    finally:
        await journal.close()


class Ears:
    """Hands on what switches tell to those who listen, from when on they do."""

    def __init__(self) -> None:
        self.inband: InbandServer | None = None
        self.discoverer: Discoverer | None = None

    def __call__(self, event: SwitchEvent) -> None:
        if self.inband is not None and isinstance(event, Packet):
            self.inband.heard(event)
        if self.discoverer is not None:
            self.discoverer.heard(event)


def _desk(config: Config, lab: Lab, dispatcher: Dispatcher, tokens: Tokens, metrics: Metrics) -> Desk:
    family = config.encoding.tag.group.family
    return Desk(
        dispatcher,
        {host: event_group(lab, host, family) for host in lab.topology.hosts},
        HOST_INTERFACE,
        tokens=tokens,
        lease=config.service.lease,
        observer=metrics,
        most=config.service.most_calls,
    )


def _names(lab: Lab) -> Names:
    hosts = {lab.addresses(host).mac: host for host in lab.topology.hosts}
    return Names({lab.datapath_id(switch): switch for switch in lab.topology.switches}, hosts)


def _sources(
    dispatcher: Dispatcher, desk: Desk, journal: SqliteJournal, inband: InbandServer, discoverer: Discoverer
) -> Sources:
    return Sources(
        dispatcher,
        connected=lambda: dispatcher.reachable,
        suppressed=lambda: dispatcher.suppressed,
        queues={"calls": lambda: desk.under_way, "journal": lambda: dispatcher.scribe.waiting},
        clients=lambda: len(desk.leases),
        journal_bytes=lambda: journal.size,
        inband=lambda: asdict(inband.counters),
        differences=lambda: discoverer.differences,
    )


async def serve(config: Config, lab: Lab, ready: Callable[[Daemon, float], None]) -> None:
    """Run until a signal asks to end; SIGHUP asks to read the configuration again."""
    start = time.perf_counter()
    stopped, reread = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, reread.set)
    gc.disable()  # what is remembered is large, and stays: nothing of it is worth looking through
    async with serving(config, lab) as daemon:
        gc.freeze()
        gc.enable()
        ready(daemon, time.perf_counter() - start)
        ending = asyncio.create_task(stopped.wait())
        while not ending.done():
            asked = asyncio.create_task(reread.wait())
            await asyncio.wait({ending, asked}, return_when=asyncio.FIRST_COMPLETED)
            if reread.is_set():
                reread.clear()
                _reload(daemon)
            asked.cancel()


async def would_change(config: Config, lab: Lab) -> dict[str, dict[str, int]]:
    """What a controller would change in each switch if it started now; nothing is changed."""
    config.check_network(lab.topology)
    past = look(folder_of(config, lab) / "journal.db", config.encoding.plan.schema, config.base(lab.topology))
    state, _ = recover(past, partial(config.fresh, lab.topology))
    rewritten = deliveries(lab, config.encoding.tag.group.family)
    found: dict[str, dict[str, int]] = {}
    async with OpenFlowFabric(switch_addresses(lab)) as fabric:
        await fabric.wait_connected()
        for switch in lab.topology.switches:
            picture = Picture(config.encoding.tag, rewritten.get(switch))
            strays = picture.read(await fabric.read(switch))
            _, ops = picture.steps(changes_between(picture.held, state.table(switch)), None, ())
            if strays or ops:
                found[switch] = dict(Counter(op.kind.name.lower() for op in [*strays, *ops]))
    return found


def folder_of(config: Config, lab: Lab) -> Path:
    """Where the controller remembers: as the configuration says, or with the lab, as long as that is up."""
    return config.service.state or lab.directory / "controller"


def event_group(lab: Lab, host: str, family: int) -> str:
    """Where events for a host come in."""
    addresses = lab.addresses(host)
    return addresses.events_ipv6 if family == 6 else addresses.events_ipv4


def host_at(lab: Lab, switch: str, port: int) -> str | None:
    """The host at a port of a switch, if there is one."""
    near = lab.topology.neighbours(switch)
    name = near[port - 1] if 1 <= port <= len(near) else None
    return name if name in lab.topology.hosts else None


def _reload(daemon: Daemon) -> None:
    try:
        log.info("the configuration was read again: %d flow operations follow", daemon.reload())
    except FlowsieveError as error:
        log.error("the configuration stays as it was: %s", error)


def _tell_tokens(lab: Lab, tokens: Tokens) -> None:
    """Leave each host's token where `flowsieve lab exec` finds it; a real host gets it from its operator."""
    folder = lab.directory / "tokens"
    folder.mkdir(mode=0o700, exist_ok=True)
    for host in lab.topology.hosts:
        with os.fdopen(os.open(folder / host, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(tokens.of(host))


async def _connected(dispatcher: Dispatcher) -> None:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await dispatcher.settled()
    except TimeoutError:
        few = "; ".join(f"{switch}: {why}" for switch, why in list(dispatcher.troubles.items())[:3])
        log.warning("not all switches are there after %.0f s: %s", CONNECT_SECONDS, few)


async def _keep_short(dispatcher: Dispatcher) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if dispatcher.scribe.since_snapshot >= SNAPSHOT_ENTRIES:
            await _compact(dispatcher)


async def _compact(dispatcher: Dispatcher) -> None:
    try:
        await dispatcher.scribe.compact(lambda: snapshot(dispatcher.state, dispatcher.ledger))
    except JournalError as error:
        log.error("%s", error)
