"""The `[schema]` and `[index]` of a scenario: how its filters become dz and its events packets, or what labels name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from flowsieve.config.files import read_json
from flowsieve.config.toml import Section
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Attribute, Schema, listed, nearest_of, shown
from flowsieve.control.cover_rule import AUTO, DEFAULT_BUDGET, Budget
from flowsieve.errors import BadScenario
from flowsieve.flow.host_sets import HostSets
from flowsieve.flow.labelling import Labelling
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_labelled import BloomSettings
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.header.bloom import HEADER as BLOOM
from flowsieve.header.bloom import BloomLabels
from flowsieve.header.encoding import Encoding, encoding_of
from flowsieve.header.receivers import HEADER as RECEIVERS
from flowsieve.header.tag import DZ_HEADERS, LABEL_HEADERS
from flowsieve.index.covers.cover import MOST_LISTED
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan, plan_from_json
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology

MAX_DZ = "max_dz_per_filter"
INDEX_KEYS = ("header", "bits", "dimensions", MAX_DZ, "plan", "sample")
BLOOM_KEYS = ("copies", "filters_per_packet")
RECEIVER_KEYS = ("sets",)
LABELS = "labels"  # which hosts send them, where all others send dz
DEFAULT_HEADER = "ipv6"
LABELLED_BESIDE = "ipv6"  # the header that has room for labels beside it
DEFAULT_FILTERS_PER_PACKET = 16
MOST_COPIES = 1000
MOST_FILTERS_PER_PACKET = 1000
ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class IndexSection:
    """How filters become dz, and events packets.

    `budget` is the most dz that a filter may have, 0 for its exact cover, `auto` for as many as are worth their room;
    they are spent where the events of the `sample` fall, if there is one. Where packets of some hosts name
    their receivers instead, `label_hosts` says of which, and `sets` which receivers share a set, where that is given.
    """

    path: Path
    schema: Schema
    header: str
    plan: IndexPlan
    budget: Budget
    sample: EventBatch | None
    label_hosts: HostPatterns | None = None
    sets: HostSets | None = None
    bloom: BloomSettings | None = None  # where labels are Bloom filters

    @property
    def encoding(self) -> Encoding:
        """How dz stand in packets."""
        return encoding_of(self.header)

    def cover(self, wanted: Filter) -> DzSet:
        """The dz that stand for a filter where it is known of no table: under `auto` the usual number of them."""
        budget = DEFAULT_BUDGET if self.budget == AUTO else self.budget
        return self.plan.cover(wanted, budget, self._traffic)

    def check_cover(self, wanted: Filter) -> None:
        """Reject a filter whose exact cover is asked for and has too many dz to be listed."""
        if self.budget == 0 and self.plan.count_cover(wanted) > MOST_LISTED:
            self.cover(wanted)  # which says what would be right

    @property
    def labels(self) -> ReceiverSection | None:
        """How the packets of hosts that do not send dz name their receivers, if there are such hosts."""
        return (
            None
            if self.label_hosts is None
            else ReceiverSection(self.path, self.schema, RECEIVERS, self.sets)
        )

    @cached_property
    def _traffic(self) -> EventSample | None:
        return None if self.sample is None else EventSample.of(self.plan, self.sample)


@dataclass(frozen=True)
class LabelSection(ABC):
    """That packets say for whom they are: publishers match events themselves, and there is no plan."""

    path: Path
    schema: Schema
    header: str
    meaning: ClassVar[str] = "labels"

    def check_cover(self, wanted: Filter) -> None:  # noqa: B027  # there is nothing to check, whatever the label
        """Any filter will do: it has no dz."""

    @abstractmethod
    def fixed_entries(self, topology: Topology, host_sets: int = 1) -> dict[str, int]:
        """How many entries each switch has whatever is subscribed, with hosts in so many sets at least."""


@dataclass(frozen=True)
class ReceiverSection(LabelSection):
    """That packets have a bit for each host that they are for, and which hosts share a set, where that is given."""

    sets: HostSets | None = None
    meaning: ClassVar[str] = "labels that name receivers"

    def labelling(self, topology: Topology, host_sets: int = 1) -> Labelling:
        """The bits of a network's hosts; without sets, neighbours share one. Several have trees of their own."""
        assign = None if self.sets is None else self.sets.assign
        return Labelling.make(topology, assign, partitions=host_sets)

    def fixed_entries(self, topology: Topology, host_sets: int = 1) -> dict[str, int]:
        tables = self.labelling(topology, host_sets).tables()
        return {switch: len(table) for switch, table in tables.items()}


@dataclass(frozen=True)
class BloomSection(LabelSection):
    """That packets have the bits of the filters that they match, and in how many packets an event is sent."""

    copies: Shares
    sample: EventBatch | None  # by which entries are merged that do not fit
    meaning: ClassVar[str] = "labels that are Bloom filters"

    @property
    def labels(self) -> BloomLabels:
        """How filters stand in packets: with as many bits as suit the number of them that a packet is made for."""
        return BloomLabels.tuned(self.copies.filters)

    @property
    def settings(self) -> BloomSettings:
        """The same for a controller."""
        return BloomSettings(self.labels, self.copies, self.sample)

    def fixed_entries(self, topology: Topology, host_sets: int = 1) -> dict[str, int]:
        tables = BloomLabelling.make(topology, self.labels).tables({})
        return {switch: len(table) for switch, table in tables.items()}


def read_contents(top: Section) -> IndexSection | LabelSection | None:
    """The index of a scenario, or that it has none since packets are labelled; None after a mistake."""
    index = top.section("index")
    header = index.table.get("header")
    if not isinstance(header, str) or header not in LABEL_HEADERS:
        return read_index(top, (*DZ_HEADERS, *LABEL_HEADERS))
    schema = read_schema(top)
    bloom = header == BLOOM
    index.only((*INDEX_KEYS, *(BLOOM_KEYS if bloom else RECEIVER_KEYS)))
    kept = ("header", "sample") if bloom else ("header",)
    for key in index.table:
        if key in INDEX_KEYS and key not in kept:
            why = "publishers match events themselves, and no dz of a filter stands in a table"
            index.wrong(key, f"{key} means nothing with header {shown(header)}: {why}; right is without it")
    copies = _read_copies(index) if bloom else None
    sets = None if bloom else _read_sets(index)
    if schema is None:
        return None
    if copies is not None:
        return BloomSection(top.path, schema, header, copies, _read_sample(index, schema))
    return None if bloom else ReceiverSection(top.path, schema, header, sets)


def _read_sets(index: Section) -> HostSets | None:
    """Which hosts share a set; the file is made by `flowsieve sets`."""
    path = index.file("sets", "sets.json")
    if path is not None:
        with index.mistakes.kept():
            data, _ = read_json(path, "sets of hosts, as `flowsieve sets` writes them")
            with index.mistakes.kept(str(path)):
                return HostSets.from_json(data)
    return None


def read_served(top: Section) -> IndexSection | None:
    """The index that a controller serves; None after a mistake.

    Where packets are labelled it has no bits: every filter is all of the space, and publishers see to the rest.
    """
    index = top.section("index")
    if index.table.get("header") not in LABEL_HEADERS:
        return read_index(top, (*DZ_HEADERS, *LABEL_HEADERS))
    read = read_contents(top)
    if not isinstance(read, LabelSection):
        return None
    plan = RegularPlan.make(read.schema, 0)
    bloom = read.settings if isinstance(read, BloomSection) else None
    sets = read.sets if isinstance(read, ReceiverSection) else None
    return IndexSection(read.path, read.schema, read.header, plan, 1, None, sets=sets, bloom=bloom)


def labels_of(index: IndexSection, sets: HostSets | None) -> LabelSection:
    """The labels of an index that a controller serves with some, with hosts in some sets."""
    if (bloom := index.bloom) is not None:
        return BloomSection(index.path, index.schema, index.header, bloom.copies, bloom.sample)
    return ReceiverSection(index.path, index.schema, index.header, sets)


def _read_copies(index: Section) -> Shares | None:
    """In how many packets an event is sent, and for how many filters each is made."""
    filters = _from_one(index, "filters_per_packet", MOST_FILTERS_PER_PACKET) or DEFAULT_FILTERS_PER_PACKET
    if index.table.get("copies", ADAPTIVE) == ADAPTIVE:
        return Shares(filters)
    number = _from_one(index, "copies", MOST_COPIES, f", or {ADAPTIVE!r}")
    return None if number is None else Shares(filters, number)


def _from_one(index: Section, key: str, most: int, or_else: str = "") -> int | None:
    """A whole number of something that there is one of at least."""
    value = index.table.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        index.wrong(key, f"{key} is {shown(value)}; right is a whole number from 1 to {most:,}{or_else}")
        return None
    return value


def read_index(top: Section, headers: Collection[str] = DZ_HEADERS) -> IndexSection | None:
    """The index of a scenario, or None after a mistake that leaves no schema or no plan.

    `headers` are what a mistake there says would have been right.
    """
    schema = read_schema(top)
    index = top.section("index")
    index.only((*INDEX_KEYS, LABELS, *(RECEIVER_KEYS if LABELS in index else ())))
    header = index.choice("header", headers) or DEFAULT_HEADER
    label_hosts, sets = _read_label_hosts(index, header), _read_sets(index)
    budget = _read_budget(index)
    if schema is None:
        return None
    plan_of = _read_plan if "plan" in index else _make_plan
    plan = plan_of(index, schema, encoding_of(header))
    sample = _read_sample(index, schema)
    if plan is None:
        return None
    return IndexSection(
        top.path,
        schema,
        header,
        plan,
        budget,
        sample,
        label_hosts,
        sets,
    )


def _read_budget(index: Section) -> Budget:
    """How many dz a filter may have."""
    if index.table.get(MAX_DZ, AUTO) == AUTO:
        return AUTO
    number = index.whole(MAX_DZ, MOST_LISTED, f", where 0 asks for the exact cover, or {AUTO!r}")
    return AUTO if number is None else number


def _read_label_hosts(index: Section, header: str) -> HostPatterns | None:
    """The hosts whose packets name their receivers, while those of all others say what is in them."""
    given = index.table.get(LABELS)
    if given is None:
        return None
    if header != LABELLED_BESIDE:
        right = f"right is header = {shown(LABELLED_BESIDE)}, or no {LABELS}"
        index.wrong(LABELS, f"labels are IPv6 addresses, and events go by header {shown(header)}; {right}")
        return None
    if not isinstance(given, list) or not given or not all(isinstance(each, str) and each for each in given):
        right = 'right is a list of hosts, such as ["h1", "gate-*"]; for all of them, header = "receivers"'
        index.wrong(LABELS, f"{LABELS} is {shown(given)}; {right}")
        return None
    return HostPatterns(tuple(given))


def check_label_hosts(top: Section, index: IndexSection, topology: Topology) -> None:
    """Hosts that are said to send labels are there, where it is said which there are."""
    for name in index.label_hosts.names if index.label_hosts is not None else ():
        if name not in topology.hosts:
            top.section("index").wrong(
                LABELS, f"there is no host {shown(name)} to send labels{nearest_of(name, topology.hosts)}"
            )


def read_schema(top: Section) -> Schema | None:
    """The `[schema]` of a scenario; None after a mistake."""
    section = top.section("schema")
    if not section.table:
        top.wrong(
            "schema",
            'there is no attribute; right is a [schema] such as price = { type = "int", min = 0, max = 9 }',
        )
    attributes = []
    for name, table in section.table.items():
        with section.kept(name):
            attributes.append(Attribute.parse(name, table))
    return Schema(tuple(attributes)) if attributes and len(attributes) == len(section.table) else None


def regular_index(path: Path, schema: Schema) -> IndexSection:
    """The index of a scenario that says nothing of it: all attributes in turn, and covers that follow the room."""
    plan = RegularPlan.make(schema, None, None, encoding_of(DEFAULT_HEADER).room)
    return IndexSection(path, schema, DEFAULT_HEADER, plan, AUTO, None)


def _make_plan(index: Section, schema: Schema, encoding: Encoding) -> IndexPlan | None:
    bits = index.whole("bits", encoding.room, f", the room that an address has behind {encoding.tag.group}")
    with index.kept("dimensions"):
        dimensions = _dimensions(index, schema)
        with index.kept("bits"):
            return RegularPlan.make(schema, bits, dimensions, encoding.room)
    return None


def _dimensions(index: Section, schema: Schema) -> list[str] | None:
    names = index.table.get("dimensions")
    if names is None:
        return None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        right = f"right is a list of attributes, such as {list(schema.names[:2])}"
        raise BadScenario(f"dimensions is {shown(names)}; {right}")
    for name in names:
        if name not in schema:
            hint = nearest_of(name, schema.names) or f"; right are some of {listed(schema.names)}"
            raise BadScenario(f"there is no attribute {shown(name)} to be a dimension{hint}")
        if names.count(name) > 1:
            raise BadScenario(f"dimension {shown(name)} is there twice; right is once")
    return names


def _read_plan(index: Section, schema: Schema, encoding: Encoding) -> IndexPlan | None:
    for key in ("bits", "dimensions"):
        if key in index:
            index.wrong(
                key, f"{key} is given beside a plan; right is one or the other, for a plan has its own {key}"
            )
    path = index.file("plan", "plan.json")
    return None if path is None else read_plan(index, path, schema, encoding)


def read_plan(section: Section, path: Path, schema: Schema, encoding: Encoding) -> IndexPlan | None:
    """The plan in a file; None after a mistake."""
    with section.mistakes.kept():
        data, _ = read_json(path, "an index plan")
        with section.mistakes.kept(str(path)):
            return plan_from_json(data, schema, encoding.room)
    return None


def _read_sample(index: Section, schema: Schema) -> EventBatch | None:
    """The events of the sample that lie in the content space."""
    path = index.file("sample", "events.csv")
    if path is not None:
        with index.mistakes.kept():
            from flowsieve.scenario.event_files import read_events  # it takes a while to be imported

            events = read_events(path, schema)
            faulty, _ = events.faults()
            return events.take(~faulty)
    return None
