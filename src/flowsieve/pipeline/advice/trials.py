"""Dz, receivers and bloom on one workload and network: each is played on the embedded network, and counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.label_packets import holders, offers_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput, Refused
from flowsieve.flow.entry import Flow
from flowsieve.flow.host_sets import HostSets
from flowsieve.flow.interest import Interest
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.bloom import HEADER as BLOOM_HEADER
from flowsieve.header.receivers import HEADER as RECEIVERS_HEADER
from flowsieve.network.locality import hosts_by_locality
from flowsieve.network.tree import center_tree
from flowsieve.pipeline.advice.recommendation import BLOOM, DZ, RECEIVERS, HeaderTrial
from flowsieve.pipeline.evaluation.evaluation import CHUNK, Bench
from flowsieve.pipeline.matching.boxes import BoxTable
from flowsieve.pipeline.receiver_sets.host_wants import WORD, HostWants, audiences_of, sets_of
from flowsieve.pipeline.receiver_sets.learning import LINKS, STARTS, learn, set_sizes
from flowsieve.pipeline.receiver_sets.tree_places import TreePlaces
from flowsieve.scenario.index_section import (
    DEFAULT_FILTERS_PER_PACKET,
    BloomSection,
    IndexSection,
    LabelSection,
    ReceiverSection,
    regular_index,
)
from flowsieve.scenario.network_section import Network
from flowsieve.scenario.play import Played, Stage, publish, silent
from flowsieve.scenario.play import Progress as Watcher
from flowsieve.scenario.read import EventStep, RequestStep, Scenario

MOST_SUBSCRIPTIONS = 2_000  # that are played; of more, every so manieth
MOST_EVENTS = 4_000  # that are sent
MOST_SAMPLED = 5_000  # earlier ones that dz are spent on
ONE_BY_ONE = 10  # subscriptions that come by themselves, for the operations that one takes


@dataclass(frozen=True, eq=False)
class TriedLoad:
    """What is played: who offers and wants what, events that dz are spent on, and later ones that are sent."""

    setting: Scenario
    offers: tuple[Request, ...]
    wishes: tuple[Request, ...]
    earlier: EventBatch
    later: EventBatch
    given: int  # subscriptions, of which `wishes` are some


def load_of(setting: Scenario, wishes: Sequence[Request], events: EventBatch, publishers: int) -> TriedLoad:
    """A workload on a scenario's network; events that say no host come from those that may publish them, in turn."""
    offers = [*setting.asked(Side.PUBLISHER).values()]
    hosts = [host for host in setting.topology.hosts if setting.topology.reachable(host)]
    if not offers:
        everything, number = Filter.parse("True", setting.schema), min(publishers, len(hosts))
        chosen = [hosts[i * len(hosts) // number] for i in range(number)]
        named = {host for host in events.hosts.tolist() if host in setting.topology.hosts}
        offers = [
            Request(Op.ADVERTISE, f"advised-{host}", host, everything) for host in (sorted(named) or chosen)
        ]
    events = _published(events, offers)
    if not len(events):
        raise BadInput("none of the events lies in what publishers have advertised", place=str(setting.path))
    if not wishes:
        right = "give --subscriptions F, with id, host and filter"
        raise BadInput(f"nobody subscribes in the scenario's steps; {right}", place=str(setting.path))
    half = len(events) // 2
    every = -(-len(wishes) // MOST_SUBSCRIPTIONS)
    return TriedLoad(
        setting,
        tuple(offers),
        tuple(wishes[::every]),
        _some(events.take(np.arange(half)), MOST_SAMPLED),
        _some(events.take(np.arange(half, len(events))), MOST_EVENTS),
        len(wishes),
    )


def _some(events: EventBatch, most: int) -> EventBatch:
    return events.take(np.arange(len(events))[:: max(1, -(-len(events) // most))])


def _published(events: EventBatch, offers: Sequence[Request]) -> EventBatch:
    """The events that lie in what their publishers offer; one from nowhere is somebody's who offers it."""
    may: dict[str, NDArray[np.bool_]] = {}
    for offer in offers:
        assert offer.filter is not None
        held = offer.filter.matches_batch(events)
        may[offer.endpoint] = may[offer.endpoint] | held if offer.endpoint in may else held
    hosts, names = events.hosts.copy(), [*may]
    for at in np.flatnonzero(hosts == "").tolist():
        turn = [names[(at + i) % len(names)] for i in range(len(names))]
        hosts[at] = next((name for name in turn if may[name][at]), "")
    good = np.zeros(len(events), np.bool_)
    for name, held in may.items():
        good |= held & (hosts == name)
    return replace(events, hosts=hosts).take(good)


def indexes(load: TriedLoad) -> dict[str, IndexSection | LabelSection]:
    """The three ways; the one that the scenario has keeps its settings."""
    own, path, schema = load.setting.index, load.setting.path, load.setting.schema
    sample = load.earlier if len(load.earlier) else None
    dz = replace(own, label_hosts=None) if isinstance(own, IndexSection) else regular_index(path, schema)
    receivers = own if isinstance(own, ReceiverSection) else ReceiverSection(path, schema, RECEIVERS_HEADER)
    if receivers.sets is None:
        receivers = replace(receivers, sets=_learned(load))
    copies = Shares(DEFAULT_FILTERS_PER_PACKET)
    bloom = own if isinstance(own, BloomSection) else BloomSection(path, schema, BLOOM_HEADER, copies, sample)
    return {DZ: replace(dz, sample=dz.sample or sample), RECEIVERS: receivers, BLOOM: bloom}


def _learned(load: TriedLoad) -> HostSets | None:
    """Sets learned from the earlier events, where a network has more hosts than one has room for."""
    topology, tree = load.setting.topology, center_tree(load.setting.topology)
    hosts = hosts_by_locality(topology, tree)
    wanted = [(each.endpoint, each.filter) for each in load.wishes if each.filter is not None]
    try:
        sizes = set_sizes(len(hosts))
    except BadInput:  # one set will do, or none
        return None
    nobody = np.full(len(load.earlier), -1, np.int64)
    found = HostWants.of(hosts, wanted).keys(load.earlier, nobody)
    shared = {key: times for key, times in found.items() if len(key) > WORD.itemsize}
    if not shared:
        return None
    audiences = audiences_of(len(hosts), [*shared], [*shared.values()])
    places = TreePlaces.of(hosts, topology, tree)
    parts = [learn(audiences, places, sizes, start, LINKS) for start in STARTS]
    return HostSets(sets_of(hosts, min(parts, key=audiences.cost)))


def try_all(load: TriedLoad, watch: Watcher = silent) -> dict[str, HeaderTrial]:
    """What each of the three costs."""
    ways = indexes(load)
    trials = {}
    for done, (name, index) in enumerate(ways.items()):
        watch("trials", done, len(ways))
        trials[name] = _tried(load, index)
    watch("trials", len(ways), len(ways))
    return trials


def _tried(load: TriedLoad, index: IndexSection | LabelSection) -> HeaderTrial:
    obstacle = _does_not_fit(load.setting, index)
    if obstacle:
        return HeaderTrial(obstacle)
    network = {each.name: getattr(load.setting, each.name) for each in fields(Network)}
    if isinstance(index, LabelSection):
        network |= {"trees": 1, "tables": None}
    first, last = load.wishes[:-ONE_BY_ONE], load.wishes[-ONE_BY_ONE:]
    steps = (_asking(load.setting, (*load.offers, *first)),)
    stage = Stage(Scenario(**network, index=index, steps=steps))
    try:
        stage.serve(steps[0])
        in_all, busiest = _one_by_one(stage, load.setting, last)
    except BadInput as error:  # the exact cover of a filter that has too many dz
        return HeaderTrial(str(error))
    played = Played(stage)
    publish(played, EventStep(load.setting.path, load.later))
    counts = played.counts
    sent, wanted = max(1, counts.events - counts.rejected), max(1, counts.wanted)
    over_links = sum(stage.network.link_packets.values())
    return HeaderTrial(
        unwanted_per_wanted=counts.false_positives / wanted,
        packets_per_event=len(played.packets.joined()["event"]) / sent,
        link_packets_per_event=over_links / sent,
        carried_per_wanted=(over_links + counts.deliveries) / wanted,
        entries_max=max(map(len, stage.tables().values())),
        operations_per_request=in_all,
        operations_busiest_switch=busiest,
        refused=len(stage.refused),
        filters_held=0 if isinstance(index, IndexSection) else _most_held(stage),
        publisher_us_per_event=_encoding_us(index, load.later)
        if isinstance(index, IndexSection)
        else _matching_us(load),
        sets=stage.plane.figures().get("sets"),
    )


def _asking(setting: Scenario, requests: Sequence[Request]) -> RequestStep:
    return RequestStep(setting.path, tuple(requests), (0,) * len(requests))


def _does_not_fit(setting: Scenario, index: IndexSection | LabelSection) -> str | None:
    """Why labels cannot be had on a network, whatever is subscribed."""
    if not isinstance(index, LabelSection):
        return None
    try:
        entries = index.fixed_entries(setting.topology, setting.host_sets)
    except (BadInput, Refused) as error:
        return str(error)
    fullest = max(entries, key=lambda switch: entries[switch])
    if setting.capacity is not None and entries[fullest] > setting.capacity:
        room = f"it has room for {setting.capacity}"
        return f"{entries[fullest]} entries at switch {fullest}, whatever is subscribed; {room}"
    return None


def _one_by_one(stage: Stage, setting: Scenario, wishes: Sequence[Request]) -> tuple[float, float]:
    """Serve subscriptions that come by themselves: operations of one, in all switches and in the busiest of all."""
    changed: Counter[str] = Counter()
    before = stage.plane.operations
    held = stage.tables()
    for wish in wishes:
        stage.serve(_asking(setting, [wish]))
        now = stage.tables()
        changed.update({switch: _differences(held[switch], now[switch]) for switch in now})
        held = now
    number = max(1, len(wishes))
    return (stage.plane.operations - before) / number, max(changed.values(), default=0) / number


def _differences(before: tuple[Flow, ...], after: tuple[Flow, ...]) -> int:
    """How many entries are not as they were."""
    one, other = ({flow.key: flow for flow in table} for table in (before, after))
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())


def _most_held(stage: Stage) -> int:
    """The filters that the publisher holds that holds most: those that overlap what it offers."""
    advertised: Mapping[str, Interest] = stage.plane.interests(Side.PUBLISHER)
    offers, held = offers_of(advertised.values()), Counter[str]()
    for each in stage.plane.interests(Side.SUBSCRIBER).values():
        for filter in each.filters:
            held.update(holders(filter, offers))
    return max(held.values(), default=0)


def _matching_us(load: TriedLoad) -> float:
    """Microseconds that it takes here to match an event against all subscriptions."""
    boxes = BoxTable.of(load.setting.schema, [each.filter for each in load.wishes if each.filter is not None])
    bench = Bench.of((), boxes)
    some = load.later.take(np.arange(min(CHUNK, len(load.later))))
    bench.matched(some, lists=True)  # the first time takes longer
    return _timed_us(lambda: bench.matched(some, lists=True), len(some))


def _encoding_us(index: IndexSection, events: EventBatch) -> float:
    """Microseconds that it takes here to find the dz of an event."""
    index.plan.encode_batch(events)
    return _timed_us(lambda: index.plan.encode_batch(events), len(events))


def _timed_us(work: Callable[[], object], events: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6 / max(1, events)
